//! Waiting for a condition, and noticing a test that hangs.
//!
//! Nothing here decides how fast something must be. The bound is only there so
//! that a test that hangs fails instead of running for ever.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// No test comes near this, not even on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// A bound on a loop that comes to an end by itself.
#[derive(Debug)]
pub struct Patience(Instant);

impl Patience {
    /// Begins now.
    #[allow(clippy::new_without_default, reason = "when it is made matters")]
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// Called once in each turn of the loop.
    ///
    /// # Panics
    /// With the explanation, when the loop has run for ten minutes.
    #[track_caller]
    pub fn check(&self, explain: impl FnOnce() -> String) {
        assert!(self.0.elapsed() < PATIENCE, "{}", explain());
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// If it does not hold within ten minutes.
#[track_caller]
pub fn await_that(what: &str, mut condition: impl FnMut() -> bool) {
    let patience = Patience::new();
    while !condition() {
        patience.check(|| format!("waited in vain: {what}"));
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a case in a thread of its own, and names it if it fails or hangs.
///
/// # Panics
/// If the case panics or takes longer than ten minutes.
pub fn run_case<T: Send + 'static>(name: &str, case: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name(name.to_owned());
    let thread = thread
        .spawn(move || {
            // Nobody listens any more if it took too long.
            let _ = sender.send(case());
        })
        .expect("a thread");
    match receiver.recv_timeout(PATIENCE) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout) => panic!("{name}: hangs"),
        Err(RecvTimeoutError::Disconnected) => {
            let _ = thread.join();
            panic!("{name}: failed, see above")
        }
    }
}

/// Runs cases 1, 2, and so on until one returns that its fault did not happen.
/// Returns how many did.
///
/// # Panics
/// As [`run_case`].
pub fn run_cases(what: &str, case: impl Fn(u64) -> bool + Clone + Send + 'static) -> u64 {
    let is_hit = |nth: &u64| {
        let (case, nth) = (case.clone(), *nth);
        run_case(&format!("{what} {nth}"), move || case(nth))
    };
    let hits = (1..).take_while(is_hit).count() as u64;
    println!("{what}: {hits} cases");
    hits
}
