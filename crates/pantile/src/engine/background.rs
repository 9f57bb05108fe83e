//! The thread of a collector that works in the background.

use std::sync::{Arc, Weak};
use std::time::Duration;

use pantile_base::sync::{Condvar, Mutex, thread};

use crate::engine::core::Core;
use crate::types::error::{Error, Result};

/// Runs as long as there are handles of the database.
pub(crate) struct Background {
    end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Background {
    /// Starts the thread of the database's collector, if it wants one. Where
    /// time is simulated there is none: committing threads do its rounds.
    ///
    /// # Errors
    /// [`Error::Io`] if the system cannot start a thread.
    pub fn start(core: &Arc<Core>) -> Result<Option<Self>> {
        let interval = core.reclaimer.background().filter(|_| core.options.simulated_time.is_none());
        let Some(interval) = interval else { return Ok(None) };
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let (core, ended) = (Arc::downgrade(core), Arc::clone(&end));
        let builder = thread::Builder::new().name("pantile-collect".into());
        let thread = builder
            .spawn(move || rounds(&core, interval, &ended))
            .map_err(|source| Error::Io { operation: "start the collector's thread".into(), source })?;
        Ok(Some(Self { end, thread: Some(thread) }))
    }
}

fn rounds(core: &Weak<Core>, interval: Duration, (ended, changed): &(Mutex<bool>, Condvar)) {
    loop {
        {
            let mut ended = ended.lock();
            if !*ended {
                changed.wait_for(&mut ended, interval);
            }
            if *ended {
                return;
            }
        }
        // `Background::drop` waits for the last round while its handle still
        // has the core, so this is never the last reference.
        let Some(core) = core.upgrade() else { return };
        core.run_background();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        *self.end.0.lock() = true;
        self.end.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A round that panicked has already said so on stderr.
            let _ = thread.join();
        }
    }
}
