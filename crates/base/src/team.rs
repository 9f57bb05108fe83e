//! Sharing work out over threads, as many as the system allows.

use std::io;
use std::ops::Range;

use crate::sync::thread::{self, Scope, ScopedJoinHandle};

/// Runs `work` for each number below `shares`, each in a thread of its own, the
/// first in the calling one. Returns the results in order. What the system
/// refuses a thread for, the calling thread does itself.
///
/// # Panics
/// If `work` does.
pub fn share_out<R: Send>(shares: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    share_out_while(|| true, shares, work)
}

/// Shares the numbers below `end` out in ranges that follow each other, as
/// [`share_out`] does.
///
/// # Panics
/// If `work` does.
pub fn share_range<R: Send>(shares: usize, end: u64, work: impl Fn(Range<u64>) -> R + Sync) -> Vec<R> {
    let part = end.div_ceil(shares.max(1) as u64);
    share_out(shares, |n| {
        let from = (n as u64 * part).min(end);
        work(from..(from + part).min(end))
    })
}

/// [`share_out`] that counts threads as refused once `allowed` returns false.
fn share_out_while<R: Send>(
    allowed: impl Fn() -> bool,
    shares: usize,
    work: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let start = |n| allowed().then(|| start(scope, move || work(n)).ok())?;
        let others: Vec<_> = (1..shares).map_while(start).collect();
        let mine = work(0);
        let refused: Vec<R> = (1 + others.len()..shares).map(work).collect();
        let theirs = others.into_iter().map(|other| other.join().expect("a share of work does not panic"));
        std::iter::once(mine).chain(theirs).chain(refused).collect()
    })
}

#[cfg(not(pantile_shuttle))]
fn start<'s, 'e, R: Send + 's>(
    scope: &'s Scope<'s, 'e>,
    share: impl FnOnce() -> R + Send + 's,
) -> io::Result<ScopedJoinHandle<'s, R>> {
    thread::Builder::new().spawn_scoped(scope, share)
}

#[cfg(pantile_shuttle)]
fn start<'s, 'e, R: Send + 's>(
    scope: &'s Scope<'s, 'e>,
    share: impl FnOnce() -> R + Send + 's,
) -> io::Result<ScopedJoinHandle<'s, R>> {
    Ok(scope.spawn(share))
}

#[cfg(all(test, not(pantile_shuttle)))]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_shares_are_done_in_order() {
        for shares in [1, 2, 7, 40] {
            let expected: Vec<usize> = (0..shares).map(|n| n * n).collect();
            assert_eq!(share_out(shares, |n| n * n), expected);
        }
    }

    /// EAGAIN, as with `ulimit -u`.
    #[test]
    fn refused_threads_leave_no_share_undone() {
        for allowed in 0..5 {
            let begun = AtomicUsize::new(0);
            let allow = || begun.fetch_add(1, Ordering::Relaxed) < allowed;
            let results = share_out_while(allow, 5, |n| n + 1);
            assert_eq!(results, [1, 2, 3, 4, 5], "{allowed} threads");
            assert!(begun.into_inner() <= allowed + 1, "refused once, it asks no more");
        }
    }
}
