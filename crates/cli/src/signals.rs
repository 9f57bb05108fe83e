//! Signals that ask the command to stop.

use std::sync::Arc;
use std::{fs, io, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// Calls `stop` whenever Ctrl-C is pressed, and unless `only_interrupts` whenever the command is to
/// terminate or its terminal goes. If the caller ignores the latter, that stays so: `nohup pantile ...`
/// goes on without its terminal. Ctrl-C counts also where a shell has started the command in the background.
pub fn on_stop(only_interrupts: bool, stop: impl Fn() + Send + 'static) -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let others: &[_] = match (only_interrupts, is_ignored(SIGHUP, &status)) {
        (true, _) => &[],
        (false, true) => &[SIGTERM],
        (false, false) => &[SIGTERM, SIGHUP],
    };
    // A file that may not become as long is an error of the write, and not the end of the command.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let mut signals = Signals::new([&[SIGINT], others].concat())?;
    let each = move || signals.forever().for_each(|_| stop());
    thread::Builder::new().name("signals".into()).spawn(each).map(drop)
}

/// Whether a process ignores a signal, from what Linux says of it. Other systems do not say.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_status() {
        let status = "Name:\tpantile\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        let ignored = |status| (1..=64).filter(|&signal| is_ignored(signal, status)).collect::<Vec<_>>();
        assert_eq!(ignored(status), [SIGHUP, 13]);
        assert!(ignored("").is_empty());
    }
}
