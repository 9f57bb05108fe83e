//! The syncer: a thread that ends the commits that nobody waits for.
//!
//! The first commit of that kind starts it. One commit after the other waits for
//! its point; the sync for the first serves most of the others. Unless somebody
//! waits after all, it takes its time: others may sync meanwhile, and what serves
//! them serves these as well.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::{Condvar, Instant, Mutex, thread};

use crate::types::options::Options;

/// Commits that the syncer has, at most. Each has a transaction slot.
const MOST: usize = TRANSACTION_SLOTS / 4;

/// For how long a commit that nobody waits for is left to the syncs of others. Its
/// slot holds back what it has superseded, so this is well below an epoch.
const LEISURE: Duration = Duration::from_millis(5);

/// How long the last handle of the database waits for commits that nobody waits for.
const AT_THE_END: Duration = Duration::from_secs(10);

/// What ends a commit.
type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    tasks: Vec<Task>,
    /// Tasks that the thread has taken and not ended.
    running: usize,
    /// How many tasks have come, how many of them have ended, and how many are to
    /// end at once.
    come: u64,
    ended: u64,
    urgent: u64,
    /// `None` before the first commit, and if the system refuses the thread.
    thread: Option<thread::JoinHandle<()>>,
    /// The database is closed, or the thread has panicked.
    is_over: bool,
    /// No handle of the database is left, so nobody else syncs.
    is_hurried: bool,
}

impl Queue {
    fn is_of_this_thread(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.thread().id() == thread::current().id())
    }

    fn is_urgent(&self) -> bool {
        self.is_over
            || self.is_hurried
            || self.urgent > self.ended
            || self.tasks.len() + self.running >= MOST / 2
    }
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    leisure: Duration,
}

/// The thread. It ends with the database.
pub(crate) struct Syncer(Arc<Shared>);

/// Asks for the end of what the syncer has.
pub(crate) struct Urge(Arc<Shared>);

impl Urge {
    /// Somebody waits for a task that has come.
    pub fn now(&self) {
        let mut queue = self.0.queue.lock();
        queue.urgent = queue.come;
        drop(queue);
        self.0.changed.notify_all();
    }
}

/// Belongs to the handles of the database. The last one ends the commits that nobody
/// waits for: each has the database open.
pub(crate) struct LastCommits(Arc<Shared>);

impl Drop for LastCommits {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.is_hurried = true;
        self.0.changed.notify_all();
        // A task may have woken what had the last handle.
        if queue.thread.is_none() || queue.is_of_this_thread() {
            return;
        }
        let (come, until) = (queue.come, Instant::now() + AT_THE_END);
        while !queue.is_over && queue.ended < come {
            if self.0.changed.wait_until(&mut queue, until).timed_out() {
                return;
            }
        }
    }
}

impl Default for Syncer {
    fn default() -> Self {
        Self::with_leisure(LEISURE)
    }
}

impl Syncer {
    fn with_leisure(leisure: Duration) -> Self {
        Self(Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), leisure }))
    }

    pub fn urge(&self) -> Urge {
        Urge(Arc::clone(&self.0))
    }

    pub fn last_commits(&self) -> LastCommits {
        LastCommits(Arc::clone(&self.0))
    }

    /// Starts the thread if it does not run. Where time is simulated, and where
    /// there is no worker, the caller that waits for a commit ends it.
    pub fn has_thread(&self, options: &Options) -> bool {
        let mut queue = self.0.queue.lock();
        if queue.is_over {
            return false;
        }
        if queue.thread.is_none() && options.simulated_time.is_none() && !options.without_worker {
            let shared = Arc::clone(&self.0);
            let named = thread::Builder::new().name("pantile-syncer".into());
            queue.thread = named.spawn(move || shared.run()).ok();
        }
        queue.thread.is_some()
    }

    /// Runs a task soon, or at once when urged to. If very many wait, waits for some of
    /// them.
    pub fn run_later(&self, task: Task) {
        let mut queue = self.0.queue.lock();
        // A task may have woken what leaves another: it does not wait for itself.
        while !queue.is_over && queue.tasks.len() + queue.running >= MOST && !queue.is_of_this_thread() {
            self.0.changed.wait(&mut queue);
        }
        let mut wakes = false;
        if !queue.is_over {
            queue.tasks.push(task);
            queue.come += 1;
            // Otherwise the thread is at work, or looks again in time.
            wakes = queue.tasks.len() == 1 && queue.running == 0 || queue.is_urgent();
        }
        drop(queue);
        if wakes {
            self.0.changed.notify_all();
        }
    }
}

/// Nobody waits for a thread that has panicked.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let left = {
            let mut queue = self.0.queue.lock();
            queue.is_over = true;
            queue.running = 0;
            std::mem::take(&mut queue.tasks)
        };
        self.0.changed.notify_all();
        drop(left);
    }
}

impl Shared {
    fn run(&self) {
        let _ending = Ending(self);
        let mut queue = self.queue.lock();
        loop {
            if queue.tasks.is_empty() {
                if queue.is_over {
                    drop(queue);
                    return;
                }
                self.changed.wait(&mut queue);
                continue;
            }
            let tasks = std::mem::take(&mut queue.tasks);
            queue.running = tasks.len();
            let until = Instant::now() + self.leisure;
            while !queue.is_urgent() && !self.changed.wait_until(&mut queue, until).timed_out() {}
            drop(queue);
            for task in tasks {
                // What it was to end has been told so, and the other commits have nothing to do with it.
                let _ = catch_unwind(AssertUnwindSafe(task));
            }
            queue = self.queue.lock();
            queue.ended += std::mem::take(&mut queue.running) as u64;
            self.changed.notify_all();
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        let thread = {
            let mut queue = self.0.queue.lock();
            queue.is_over = true;
            queue.thread.take()
        };
        self.0.changed.notify_all();
        // The last commit may have had the last handle of the database.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "syncer_test.rs"]
mod tests;
