//! Runs cases, each under a deadline.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// A case takes milliseconds. One that takes this long hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs a case in a thread of its own, and names it if it fails or hangs.
pub fn run<T: Send + 'static>(name: &str, case: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name(name.to_owned());
    let thread = thread
        .spawn(move || {
            // Nobody listens any more if it took too long.
            let _ = sender.send(case());
        })
        .expect("a thread");
    match receiver.recv_timeout(DEADLINE) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout) => panic!("{name}: hangs"),
        Err(RecvTimeoutError::Disconnected) => {
            let _ = thread.join();
            panic!("{name}: failed, see above")
        }
    }
}

/// Runs cases 1, 2, and so on until one says that its fault did not happen;
/// tells how many did.
pub fn run_each(what: &str, case: impl Fn(u64) -> bool + Clone + Send + 'static) -> u64 {
    let is_hit = |nth: &u64| {
        let (case, nth) = (case.clone(), *nth);
        run(&format!("{what} {nth}"), move || case(nth))
    };
    let hits = (1..).take_while(is_hit).count() as u64;
    println!("{what}: {hits} cases");
    hits
}
