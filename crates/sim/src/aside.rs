//! A call that pauses, beside which others go on.
//!
//! It runs in a thread of its own, which stops at each pause until it is
//! resumed. So one thread runs at any moment, and a seed still determines
//! everything.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

thread_local! {
    static OWN: RefCell<Option<Ends>> = const { RefCell::new(None) };
}

/// What the thread of a call has of it.
struct Ends {
    paused: Sender<()>,
    resumed: Receiver<()>,
}

/// A call that has begun.
pub(crate) struct Aside<T> {
    resume: Option<Sender<()>>,
    paused: Receiver<()>,
    thread: Option<JoinHandle<T>>,
}

/// What simulated time calls at each pause: stops the thread of a call. Other
/// threads go on.
pub(crate) fn pause() {
    OWN.with_borrow(|own| {
        if let Some(Ends { paused, resumed }) = own
            && paused.send(()).is_ok()
        {
            // If nobody resumes it any more, it goes on to its end.
            let _ = resumed.recv();
        }
    });
}

impl<T: Send + 'static> Aside<T> {
    /// The call runs up to its first pause when it is first resumed.
    pub fn new(call: impl FnOnce() -> T + Send + 'static) -> Self {
        let (pausing, paused) = channel();
        let (resume, resumed) = channel();
        let run = move || {
            let _ = resumed.recv();
            OWN.set(Some(Ends { paused: pausing, resumed }));
            call()
        };
        Self { resume: Some(resume), paused, thread: Some(std::thread::spawn(run)) }
    }

    /// Lets it run to its next pause. Returns what it returns, once it has
    /// ended.
    pub fn resume(&mut self) -> Option<T> {
        self.resume.as_ref()?.send(()).ok();
        match self.paused.recv() {
            Ok(()) => None,
            Err(_) => self
                .thread
                .take()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        }
    }
}

impl<T> Drop for Aside<T> {
    fn drop(&mut self) {
        self.resume = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
