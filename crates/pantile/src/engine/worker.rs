//! The worker: a thread that does the work that no commit does.
//!
//! It sleeps while nothing is owed, so an idle database does not wake up.
//! Commits wake it, and so does the end of a transaction if that is what the
//! rest of the work waits for. While transactions begin, it takes a sample a second.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use pantile_base::sync::thread;

use crate::engine::alarm::{AWAKE, Alarm, Due, UNTIL_A_BEGIN, UNTIL_A_WRITE, UNTIL_AN_END};
use crate::engine::core::Core;
use crate::engine::images::Images;

/// How often the thread looks for a sample to take once there are no rounds any more.
const AFTER_THE_LAST: Duration = Duration::from_secs(1);

/// The thread. It runs as long as there are handles of the database.
pub(crate) struct Worker {
    alarm: Arc<Alarm>,
    images: Arc<Images>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread. If the system refuses it, and where time is
    /// simulated, committing threads do its rounds.
    pub fn start(core: &Arc<Core>) -> Option<Self> {
        let options = &core.options;
        if options.simulated_time.is_some() || options.without_worker || options.is_read_only() {
            return None;
        }
        let (alarm, weak) = (Arc::clone(&core.alarm), Arc::downgrade(core));
        let builder = thread::Builder::new().name("pantile-worker".into());
        let thread = builder.spawn(move || work(&weak, &alarm)).ok()?;
        core.rounds.leave_to_worker();
        let (alarm, images) = (Arc::clone(&core.alarm), Arc::clone(&core.images));
        Some(Self { alarm, images, thread: Some(thread) })
    }
}

fn work(core: &Weak<Core>, alarm: &Alarm) {
    // What the last round left the thread to sleep for.
    let mut last = AWAKE;
    loop {
        // `Worker::drop` waits for the last round while its handle still has
        // the core, so this is never the last reference.
        let Some(core) = core.upgrade() else { return };
        let due = round(&core);
        let next_sample = core.observe();
        let epoch = core.options.gc.epoch;
        drop(core);
        let what_for = match (due, next_sample) {
            (Due::In(_), _) => AWAKE,
            (_, None) => UNTIL_A_BEGIN,
            (Due::AfterAnEnd, _) => UNTIL_AN_END,
            (Due::AfterAWrite, _) => UNTIL_A_WRITE,
        };
        // Before a long sleep comes one of an epoch with the alarm set, and
        // another round. So whatever was done by a thread that did not yet see
        // the alarm is noticed, and that thread need not issue a fence.
        let limit = match due {
            Due::In(time) => Some(time),
            _ if what_for != last => Some(epoch),
            _ => next_sample,
        };
        if what_for != last || what_for == AWAKE {
            alarm.set(what_for);
        }
        if !alarm.sleep(what_for, limit) {
            return;
        }
        last = alarm.is_set_for();
    }
}

/// A round of upkeep, and an index image if one is due. One that has panicked is the last, but samples go on to be
/// taken, which say so.
fn round(core: &Arc<Core>) -> Due {
    let upkeep = || {
        let due = core.round();
        if let Some(making) = core.begin_image() {
            let maker = Arc::clone(core);
            core.images.make_apart(move || maker.make_image(making));
        }
        due
    };
    if !core.rounds.have_ended() {
        match catch_unwind(AssertUnwindSafe(upkeep)) {
            Ok(due) => return due,
            // It has said why on stderr.
            Err(_) => core.rounds.end(),
        }
    }
    // Otherwise the thread would not sleep.
    core.alarm.forget_record();
    Due::In(AFTER_THE_LAST)
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.alarm.end();
        if let Some(thread) = self.thread.take() {
            // If it has panicked, it has already said so on stderr.
            let _ = thread.join();
        }
        // Neither has the thread that makes an image the last reference.
        self.images.stop();
    }
}

#[cfg(test)]
#[path = "worker_test.rs"]
mod tests;
