//! Signals that ask the command to stop.

use std::{fs, io, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls `stop` whenever Ctrl-C is pressed, and unless `only_interrupts` whenever the command is to
/// terminate or its terminal goes. If the caller ignores the latter, that stays so: `nohup pantile ...`
/// goes on without its terminal. Ctrl-C counts also where a shell has started the command in the background.
pub fn on_stop(only_interrupts: bool, stop: impl Fn() + Send + 'static) -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    let is_ignored = |signal| signal == SIGHUP && ignored & (1u64 << (SIGHUP - 1)) != 0;
    let wanted = [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|&signal| (signal == SIGINT || !only_interrupts) && !is_ignored(signal));
    let mut signals = Signals::new(wanted.collect::<Vec<_>>())?;
    let each = move || signals.forever().for_each(|_| stop());
    thread::Builder::new().name("signals".into()).spawn(each).map(drop)
}

/// The signals that a process ignores, a bit for each, from what Linux says of it. Other systems do not say.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_status() {
        let status = "Name:\tpantile\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored(status), 1 << (SIGHUP - 1) | 1 << 12);
        assert_eq!(ignored(""), 0);
    }
}
