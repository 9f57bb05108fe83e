//! The syncer: a thread that ends the commits that nobody waits for.
//!
//! The first commit of that kind starts it. One commit after the other waits for
//! its point; the sync for the first serves most of the others.

use std::sync::Arc;

use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::{Condvar, Mutex, thread};

use crate::types::options::Options;

/// Commits that the syncer has, at most. Each has a transaction slot.
const MOST: usize = TRANSACTION_SLOTS / 4;

/// What ends a commit.
type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    tasks: Vec<Task>,
    /// Tasks that the thread has taken and not ended.
    running: usize,
    /// `None` before the first commit, and if the system refuses the thread.
    thread: Option<thread::JoinHandle<()>>,
    /// The database is closed, or the thread has panicked.
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// The thread. It ends with the database.
#[derive(Default)]
pub(crate) struct Syncer(Arc<Shared>);

impl Syncer {
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

    /// Runs a task soon. If very many wait, waits for some of them.
    pub fn run_later(&self, task: Task) {
        let mut queue = self.0.queue.lock();
        while !queue.is_over && queue.tasks.len() + queue.running >= MOST {
            self.0.changed.wait(&mut queue);
        }
        if !queue.is_over {
            queue.tasks.push(task);
        }
        self.0.changed.notify_all();
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
            drop(queue);
            tasks.into_iter().for_each(|task| task());
            queue = self.queue.lock();
            queue.running = 0;
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
