//! Decides whether the CPU's cycle counter can serve as a clock for all cores.

use crate::cores;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nanoseconds of one tick.
pub(crate) const TICK_NS: u64 = 32;

/// The result of the test at start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CycleCounter {
    /// Ticks per cycle, times 2^32.
    pub ticks_per_cycle: u64,
    /// A bound on the difference between two cores, in ticks.
    pub skew_ticks: u64,
}

/// The most cycles by which two cores may appear to differ before the counter
/// is refused: about 0.2 us. A commit waits for a smaller difference to pass.
const MAX_SKEW_CYCLES: u64 = 500;

/// The counter, if it can be trusted. Tested once per process.
pub(crate) fn cycle_counter() -> Option<CycleCounter> {
    if cfg!(any(pantile_shuttle, miri)) {
        // A model has its own time, and Miri has no counter.
        return None;
    }
    static FOUND: OnceLock<Option<CycleCounter>> = OnceLock::new();
    *FOUND.get_or_init(test)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) fn cycles() -> u64 {
    let mut core = 0;
    // SAFETY: reads a counter. `rdtscp` exists on every CPU on which
    // `cycle_counter` finds an invariant counter; elsewhere the value is not
    // used. It waits for earlier loads, so a timestamp drawn after a commit was
    // seen is not read before it.
    unsafe { core::arch::x86_64::__rdtscp(&mut core) }
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
pub(crate) fn cycles() -> u64 {
    0
}

fn test() -> Option<CycleCounter> {
    if !kernel_trusts_counter() {
        return None;
    }
    let skew = largest_warp()?;
    if skew > MAX_SKEW_CYCLES {
        return None;
    }
    let rate = ticks_per_cycle()?;
    // More than one if any difference was seen.
    let skew_ticks = (u128::from(skew) * u128::from(rate)).div_ceil(1 << 32) as u64 + 1;
    Some(CycleCounter { ticks_per_cycle: rate, skew_ticks })
}

/// The kernel compares the counter with other clocks and drops it as its clock
/// source when they disagree. So its choice is the best evidence.
fn kernel_trusts_counter() -> bool {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    cfg!(target_arch = "x86_64") && source.is_ok_and(|s| s.trim() == "tsc")
}

/// Ticks per cycle, from two readings of both clocks 2 ms apart.
fn ticks_per_cycle() -> Option<u64> {
    let (c0, t0) = both_clocks();
    std::thread::sleep(Duration::from_millis(2));
    let (c1, t1) = both_clocks();
    let (cycles, ns) = (c1.checked_sub(c0)?, (t1 - t0).as_nanos());
    let rate = ((ns << 32) / u128::from(TICK_NS)).checked_div(u128::from(cycles))?;
    u64::try_from(rate).ok().filter(|&r| r > 0)
}

/// Reads both clocks close together: takes the tightest of several tries.
fn both_clocks() -> (u64, Instant) {
    (0..8)
        .map(|_| {
            let before = cycles();
            let now = Instant::now();
            (cycles() - before, before, now)
        })
        .min_by_key(|&(gap, ..)| gap)
        .map_or((0, Instant::now()), |(gap, before, now)| (before + gap / 2, now))
}

/// Cores that are compared with the first one.
const MOST_COMPARED: usize = 15;

/// A bound on the cycles by which one core is behind another, as far as that can be seen. `None` if no
/// core is available, or if there are others and none may be compared. All are compared with the first
/// one, so two others may differ by twice as much.
fn largest_warp() -> Option<u64> {
    let cores = cores::allowed();
    let (&first, others) = cores.split_first()?;
    if others.is_empty() && !cores::is_only_one() {
        return None;
    }
    let mut worst = 0u64;
    // They are spread over all sockets.
    let step = others.len().div_ceil(MOST_COMPARED).max(1);
    for &core in others.iter().rev().step_by(step) {
        worst = worst.max(warp_between(first, core));
        if worst > MAX_SKEW_CYCLES {
            break;
        }
    }
    Some(worst.saturating_mul(2))
}

/// How often a reading must have passed from one core to the other.
const PASSES: u32 = 100;
/// On a busy machine the two threads may seldom run at once.
const LONGEST: Duration = Duration::from_millis(500);

fn warp_between(a: usize, b: usize) -> u64 {
    let latest = AtomicU64::new(0);
    let passes = [AtomicU32::new(0), AtomicU32::new(0)];
    std::thread::scope(|scope| {
        let watch = |core, own: usize| {
            let (latest, passes) = (&latest, [&passes[own], &passes[1 - own]]);
            std::thread::Builder::new().spawn_scoped(scope, move || watch_warp(core, latest, passes))
        };
        // Without two threads the cores cannot be compared, nor trusted.
        let threads = [watch(a, 0), watch(b, 1)];
        let warps = threads.map(|thread| thread.map_or(u64::MAX, |t| t.join().unwrap_or(u64::MAX)));
        warps.into_iter().max().unwrap_or(u64::MAX)
    })
}

/// Passes the highest reading back and forth. Returns the most by which a reading was ever below one
/// made before it on the other core, and the most there is if too few have passed to tell.
fn watch_warp(core: usize, latest: &AtomicU64, passes: [&AtomicU32; 2]) -> u64 {
    let is_bound = cores::bind_to(core);
    let (began, mut warp, mut last) = (Instant::now(), 0, 0);
    let are_enough = || passes.iter().all(|passes| passes.load(Ordering::Relaxed) >= PASSES);
    while is_bound && !are_enough() && began.elapsed() < LONGEST {
        for _ in 0..100 {
            let seen = latest.load(Ordering::SeqCst);
            let now = cycles();
            warp = warp.max(seen.saturating_sub(now));
            if seen > last {
                passes[0].fetch_add(1, Ordering::Relaxed);
            }
            last = latest.fetch_max(now, Ordering::SeqCst).max(now);
        }
    }
    if are_enough() { warp } else { u64::MAX }
}
