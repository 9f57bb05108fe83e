//! How long a cache line takes from one core to another.

use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crate::error::{Error, Result};

/// Handovers of a run.
const HANDOVERS: u64 = 200_000;

/// Runs of which the fastest counts: whatever disturbs a run makes it slower.
const RUNS: usize = 7;

/// After this many looks in vain the other thread may be waiting for this core.
const LOOKS: u32 = 10_000;

/// A line that nothing else shares.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Seconds that one transfer of a contended line takes, from a store on one
/// core until another core has seen it: two threads pass a counter to and
/// fro. Takes some tens of milliseconds.
///
/// # Errors
/// [`Error::Setting`] with fewer than two cores, [`Error::Panicked`].
pub fn transfer_seconds() -> Result<f64> {
    if crate::machine::cores() < 2 {
        return Err(Error::Setting("a line has nowhere to go on a machine of one core".into()));
    }
    let runs: Vec<_> = (0..RUNS).map(|_| play(HANDOVERS)).collect::<Result<_>>()?;
    Ok(runs.into_iter().fold(f64::INFINITY, f64::min))
}

/// Seconds of one of this many handovers.
fn play(handovers: u64) -> Result<f64> {
    let line = Line::default();
    let began = Instant::now();
    thread::scope(|scope| {
        let other = scope.spawn(|| take_turns(&line, 1, handovers));
        take_turns(&line, 0, handovers);
        other.join()
    })
    .map_err(|_| Error::Panicked)?;
    debug_assert_eq!(line.0.into_inner(), handovers);
    Ok(began.elapsed().as_secs_f64() / handovers as f64)
}

/// Takes every second turn, from `first` on, until there have been this many.
fn take_turns(line: &Line, first: u64, handovers: u64) {
    for turn in (first..handovers).step_by(2) {
        let mut looks = 0;
        while line.0.load(Ordering::Acquire) != turn {
            hint::spin_loop();
            looks += 1;
            if looks % LOOKS == 0 {
                thread::yield_now();
            }
        }
        line.0.store(turn + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_is_taken() {
        for handovers in [1, 2, 1001] {
            assert!(play(handovers).unwrap() > 0.0);
        }
    }
}
