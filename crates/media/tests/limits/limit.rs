//! A limit on file sizes, which stands in for a full device.

// Only system calls can set such a limit.
#![allow(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The limit of this process, held by one test at a time. No limit is set when
/// it is taken or after it is dropped.
pub struct FileLimit {
    _turn: MutexGuard<'static, ()>,
}

impl FileLimit {
    /// Waits until no other test uses the limit.
    pub fn take() -> Self {
        // A failed test has dropped its limit.
        Self { _turn: ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Lets the system return an error where it would end the process with a signal.
    pub fn ignore_signal(&self) {
        // SAFETY: nobody handles the signal.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }

    /// Prevents files of this process from growing beyond `bytes`.
    pub fn set(&self, bytes: u64) {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the limit is a valid one.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
    }

    pub fn lift(&self) {
        self.set(libc::RLIM_INFINITY);
    }
}

impl Drop for FileLimit {
    fn drop(&mut self) {
        self.lift();
        // SAFETY: nobody handles the signal.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    }
}
