//! Fills tables with several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::error::{Error, Result};
use crate::record::Second;

/// Receives the progress of long work.
pub trait Observer: Sync {
    /// Work of `steps` steps begins.
    fn begin(&self, what: &str, steps: u64);
    /// This many more steps are done.
    fn advance(&self, steps: u64);
    /// It is over.
    fn end(&self);
    /// A message of one line.
    fn note(&self, line: &str);
    /// A second of measuring is over.
    fn second(&self, _: &Second) {}
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
    fn note(&self, _: &str) {}
}

/// What long work needs beside its database.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Threads to use.
    pub threads: usize,
    /// Raised to stop early.
    pub stop: &'a AtomicBool,
    /// Receives the progress.
    pub observer: &'a dyn Observer,
}

impl Context<'_> {
    /// Works on the parts `0..parts` in order with several threads; `work`
    /// returns the number of steps of a part.
    ///
    /// # Errors
    /// The first error of `work`; [`Error::Interrupted`].
    pub fn in_parallel(
        &self,
        during: &'static str,
        parts: usize,
        work: impl Fn(usize) -> Result<u64> + Sync,
    ) -> Result<()> {
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let one_thread = || {
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part >= parts {
                    return;
                }
                let stopped = self.stop.load(Ordering::Relaxed);
                let done = if stopped { Err(Error::Interrupted { during }) } else { work(part) };
                match done {
                    Ok(steps) => self.observer.advance(steps),
                    Err(error) => {
                        next.store(parts, Ordering::Relaxed);
                        if let Ok(mut first) = failed.lock() {
                            first.get_or_insert(error);
                        }
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.threads.clamp(1, parts.max(1)) {
                scope.spawn(one_thread);
            }
            one_thread();
        });
        match failed.into_inner() {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(error),
            Err(_) => Err(Error::Panicked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn context(stop: &AtomicBool) -> Context<'_> {
        Context { threads: 3, stop, observer: &Silent }
    }

    #[test]
    fn every_part_is_worked_on_once() {
        let (sum, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let work = |part| {
            sum.fetch_add(part as u64, Ordering::Relaxed);
            Ok(1)
        };
        context(&stop).in_parallel("testing", 100, work).unwrap();
        assert_eq!(sum.into_inner(), 4950);
    }

    #[test]
    fn an_error_ends_the_work() {
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let work = |part| {
            if part == 5 {
                return Err(Error::Setting("no".into()));
            }
            done.fetch_add(1, Ordering::Relaxed);
            Ok(1)
        };
        let error = context(&stop).in_parallel("testing", 1_000_000, work).unwrap_err();
        assert_eq!(error.to_string(), "no");
        assert!(done.into_inner() < 1_000_000);
    }

    #[test]
    fn a_raised_flag_ends_the_work() {
        let stop = AtomicBool::new(true);
        let error = context(&stop).in_parallel("loading", 10, |_| Ok(1)).unwrap_err();
        assert_eq!(error.to_string(), "interrupted while loading; nothing was measured");
    }
}
