//! Pacing: how much may wait to be freed, and how much has to be freed now.
//!
//! Waiting saves copies: more versions of a block die, so fewer have to be moved. But it costs
//! space, and chains grow. The published collector lets a fixed share of the data wait (TB-Collect
//! 4.3). Adaptive pacing follows section 6.2: the share shrinks as more versions of each tuple are
//! stored, as the space will be used up sooner, and as less space is left.
//!
//! The space target is a promise. What is taken beyond it has to be freed. The space that will be
//! taken while emptied blocks wait to become free has to be freed as well (`docs/design.md`,
//! "Space").

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_cc::Clock;
use pantile_store::Store;

use crate::options::{GcOptions, Pacing};

/// The shares of the free medium at which there is no hurry and at which
/// nothing may wait.
const ROOM: (f64, f64) = (0.3, 0.1);
/// The same two limits for the seconds until the rest is used up.
const TIME: (f64, f64) = (20.0, 2.0);
/// Space is short below this share of the medium.
const SHORT: f64 = 0.1;
/// While space is short, this share of the used bytes is to be won.
const SHORT_SHARE: u64 = 16;
/// Bytes beyond the target that may be taken, at most.
const SLACK: u64 = 16 << 20;
/// The same of a small database: this share of the live bytes, besides what is
/// kept ready, a chunk, and what may be taken at rest.
const SLACK_SHARE: u64 = 2;
/// The same, besides what is kept ready, while so little is updated that what is
/// won stays won for this time, or for a shorter one where less is won.
const SLACK_AT_REST: u64 = 1 << 20;
const REST: Duration = Duration::from_secs(8);
/// Bytes superseded in that time below which next to nothing is updated.
const RESTING: f64 = 1024.0;
/// How long an emptied block waits until it is free, before it was measured:
/// for a state record, transactions that began before, and a sync.
const DELAY: Duration = Duration::from_millis(250);
/// Looks, and state records, in the time in which the space that the target
/// leaves to the dead fills up. What waits for them takes space, too.
const LOOKS: u64 = 48;
const RECORDS: u64 = 24;
/// The least number of bytes between two looks or two records.
const LEAST_BYTES: u64 = 512 << 10;
/// Bytes to copy for 256 superseded ones from which on versions get lanes by their
/// lives.
const DEAR: u64 = 32;
/// The longest life that is thought typical, in seconds.
const MOST_LIFE: f64 = 1e6;
/// The longest time between two looks while something is updated: an epoch.
const LONGEST_LOOK: Duration = Duration::from_millis(40);
/// While something is updated, what is taken beyond the target goes back to the
/// system only if it has been beyond for this time: what the next blocks take is
/// not worth emptying chunks for, nor the system's work.
const LASTING: Duration = Duration::from_millis(400);
/// How often the rate of updates is measured.
const RATE_TIME: Duration = Duration::from_millis(250);

/// Decides how much may wait.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    capacity_bytes: AtomicU64,
    block_bytes: AtomicU64,
    is_short: AtomicBool,
    /// Bytes that emptied blocks have to bring.
    excess: AtomicU64,
    /// Bytes that have to go back to the system.
    chunk_excess: AtomicU64,
    /// Whether next to nothing is updated.
    is_resting: AtomicBool,
    /// Whether more is taken than promised.
    is_beyond: AtomicBool,
    /// The same if what is kept for readers counted, too.
    is_beyond_without_kept: AtomicBool,
    /// Whether something will have to go once less is updated.
    is_calming: AtomicBool,
    /// Whether nothing more is updated: the database is being closed.
    is_ending: AtomicBool,
    /// Whether the next look is due whenever the last one was.
    is_outdated: AtomicBool,
    /// Bytes superseded so far.
    superseded: AtomicU64,
    /// How long emptied blocks have lately waited until they were free, in
    /// microseconds.
    delay: AtomicU64,
    /// The next look is due when this many bytes have been superseded.
    look_at: AtomicU64,
    /// Bytes between two state records; 0 if any number will do.
    record_bytes: AtomicU64,
    /// Bytes to copy for 256 superseded ones.
    price: AtomicU64,
    last: Mutex<Last>,
}

/// What was seen at an earlier look.
#[derive(Debug, Default)]
struct Last {
    used: u64,
    used_at: Timestamp,
    superseded: u64,
    superseded_at: Timestamp,
    /// Bytes superseded per second.
    rate: f64,
    /// Whether versions have lanes by their lives.
    is_dear: bool,
    /// The least that was taken beyond the target, in this period and in the one
    /// before it, and when this one began.
    beyond: [u64; 2],
    beyond_since: Timestamp,
}

/// Bytes beyond the target that may be taken at rest, if this much is kept ready.
fn slack_at_rest(ready: u64) -> u64 {
    (SLACK_AT_REST + ready).min(SLACK)
}

impl Pacer {
    /// Bytes that each queue may hold, if there are this many queues.
    pub fn capacity(&self, queues: usize) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed) / queues as u64
    }

    /// The same for all queues together, in blocks of the usual size.
    pub fn capacity_blocks(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed) / self.block_bytes.load(Ordering::Relaxed).max(1)
    }

    /// Whether little space is left.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Bytes that emptied blocks have to bring, those included that are being
    /// emptied.
    pub fn excess(&self) -> u64 {
        self.excess.load(Ordering::Relaxed)
    }

    /// Bytes that have to go back to the system, in whole chunks.
    pub fn chunk_excess(&self) -> u64 {
        self.chunk_excess.load(Ordering::Relaxed)
    }

    /// Whether nothing may wait in the queues for more of it to die. At rest
    /// nothing more dies.
    pub fn is_over(&self) -> bool {
        self.excess() > 0 || self.is_resting() && self.chunk_excess() > 0
    }

    /// Whether next to nothing is updated.
    pub fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Relaxed)
    }

    /// Whether more is taken than promised.
    pub fn is_beyond(&self) -> bool {
        self.is_beyond.load(Ordering::Relaxed)
    }

    /// Whether more would be taken than promised if nothing were kept for readers.
    pub fn is_beyond_without_kept(&self) -> bool {
        self.is_beyond_without_kept.load(Ordering::Relaxed)
    }

    /// Whether there will be something to do if no more is updated.
    pub fn is_calming(&self) -> bool {
        self.is_calming.load(Ordering::Relaxed)
    }

    /// Notes that nothing more is updated, and that what was seen last does not count.
    /// What is won from here on stays won.
    pub fn note_end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.is_outdated.store(!is_removed(Control::ClosingLooks), Ordering::Relaxed);
    }

    /// Whether a look is due whenever the last one was. It is not from then on.
    pub fn take_outdated(&self) -> bool {
        self.is_outdated.swap(false, Ordering::Relaxed)
    }

    /// Whether nothing more is updated.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Notes superseded bytes.
    pub fn owe(&self, bytes: u64) {
        self.superseded.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether so much has been superseded since the last look that the
    /// next should not wait for the end of the epoch.
    pub fn is_look_due(&self) -> bool {
        self.superseded() >= self.look_at.load(Ordering::Relaxed)
    }

    /// Bytes superseded so far.
    pub fn superseded(&self) -> u64 {
        self.superseded.load(Ordering::Relaxed)
    }

    /// Notes how much of the blocks that were chosen last is dead.
    pub fn note_price(&self, dead: u64, alive: u64) {
        self.price.store((alive << 8).checked_div(dead).unwrap_or(0).min(16 << 8), Ordering::Relaxed);
    }

    /// Whether so much is copied that lanes pay, which scatter a commit over more
    /// pages. They make copying cheaper, and are given up late.
    fn is_dear(&self) -> bool {
        let price = self.price.load(Ordering::Relaxed);
        let mut last = self.last.lock();
        last.is_dear = price >= if last.is_dear { DEAR / 4 } else { DEAR };
        last.is_dear
    }

    /// The bytes to copy for these superseded ones: (1 - d) / d of them, if d
    /// is the dead share of the blocks that are being emptied.
    pub fn copies_for(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.price.load(Ordering::Relaxed)) >> 8
    }

    /// Notes how long an emptied block has waited until it was free. The
    /// longest time counts, and is forgotten slowly.
    pub fn note_delay(&self, since: Timestamp, now: Timestamp) {
        let delay = Clock::duration(now.tick().saturating_sub(since.tick())).as_micros() as u64;
        let last = self.delay.load(Ordering::Relaxed);
        self.delay.store(delay.max(last - last / 64), Ordering::Relaxed);
    }

    /// Bytes that may be appended between two state records.
    pub fn record_bytes(&self) -> u64 {
        match self.record_bytes.load(Ordering::Relaxed) {
            0 => u64::MAX,
            bytes => bytes,
        }
    }

    /// Takes a look at the store. So much of it is alive, and so much dead and kept for those who have
    /// been running for long.
    pub fn look(&self, options: &GcOptions, store: &Store, (live_bytes, kept): (u64, u64), now: Timestamp) {
        let used = store.used_bytes();
        let (room, limit) = store.room();
        let room_share = room as f64 / limit.max(1) as f64;
        let is_short = room_share < SHORT;
        self.is_short.store(is_short, Ordering::Relaxed);
        self.block_bytes.store(store.mean_block_bytes(), Ordering::Relaxed);
        let share = match options.pacing {
            Pacing::Fixed => options.queue_share,
            Pacing::Adaptive => {
                let growth = used as f64 / live_bytes.max(1) as f64;
                let time_left = room as f64 / self.bytes_per_second(used, now).max(1.0);
                // Growth begins to count half way to the target.
                let target = options.space_target;
                let pressure = between(((1.0 + target) / 2.0, target), growth)
                    .max(between(ROOM, room_share))
                    .max(between(TIME, time_left));
                options.queue_share * (1.0 - pressure)
            }
        };
        self.capacity_bytes.store((used as f64 * share) as u64, Ordering::Relaxed);
        let (blocks, chunks) = match options.pacing {
            Pacing::Fixed => (0, 0),
            Pacing::Adaptive => self.beyond_target(options.space_target, store, (live_bytes, kept), now),
        };
        let blocks = if is_short { blocks.max(used / SHORT_SHARE) } else { blocks };
        self.excess.store(blocks, Ordering::Relaxed);
        self.chunk_excess.store(chunks, Ordering::Relaxed);
    }

    /// What is taken beyond the target, in blocks and in chunks.
    fn beyond_target(
        &self,
        target: f64,
        store: &Store,
        (live_bytes, kept): (u64, u64),
        now: Timestamp,
    ) -> (u64, u64) {
        let allowed = (live_bytes as f64 * target) as u64;
        let (taken, ready) = store.taken_bytes();
        let rate = self.update_rate(now);
        if rate >= 1.0 {
            // In that time as many bytes are superseded as are alive.
            let life = Duration::from_secs_f64((live_bytes as f64 / rate).min(MOST_LIFE));
            store.set_typical_life(self.is_dear().then(|| Clock::ticks(life)));
        }
        store.note_live_bytes(live_bytes);
        let working = (SLACK_AT_REST + ready + CHUNK_BYTES + live_bytes / SLACK_SHARE).min(SLACK);
        // At rest it costs little to leave room for the index image, too.
        let beside = store.image_bytes().min(allowed.saturating_sub(live_bytes) / 2);
        // What is kept comes on top of the promise: others are not emptied in its place.
        let at_rest = allowed - beside + slack_at_rest(ready) + kept;
        let used = store.used_bytes();
        let is_at_rest = self.is_at_rest(taken.saturating_sub(at_rest), working, rate);
        // A chunk is carved whole.
        let (allowed, carved) =
            if is_at_rest { (at_rest, 0) } else { (allowed + working + kept, CHUNK_BYTES) };
        self.is_beyond.store(used.max(taken) > allowed, Ordering::Relaxed);
        let dead = allowed.saturating_sub(ready + live_bytes + kept);
        let blocks = used + ready + carved;
        // At least half of what the target leaves to the dead stays to them,
        // however fast updates come.
        let soon = self.taken_soon(rate, dead).min(dead.saturating_sub(carved) / 2);
        let excess = (blocks + soon).saturating_sub(allowed);
        let record_bytes = if excess > 0 { (dead / RECORDS).max(LEAST_BYTES) } else { 0 };
        self.record_bytes.store(record_bytes, Ordering::Relaxed);
        self.look_at.store(self.superseded() + (dead / LOOKS).max(LEAST_BYTES), Ordering::Relaxed);
        let is_beyond_without_kept = (blocks + soon).max(taken) > allowed - kept;
        self.is_beyond_without_kept.store(is_beyond_without_kept, Ordering::Relaxed);
        let chunks = taken.saturating_sub(allowed);
        let lasting = self.lasting(chunks, now);
        (excess, if is_at_rest { chunks } else { lasting })
    }

    /// The least of what was taken beyond the target for some time, up to now.
    fn lasting(&self, beyond: u64, now: Timestamp) -> u64 {
        let mut last = self.last.lock();
        if Clock::duration(now.tick().saturating_sub(last.beyond_since.tick())) >= LASTING {
            (last.beyond, last.beyond_since) = ([u64::MAX, last.beyond[0]], now);
        }
        last.beyond[0] = last.beyond[0].min(beyond);
        last.beyond[0].min(last.beyond[1])
    }

    /// Whether so little is updated that what is won stays won. So much is `loose`,
    /// taken beyond what may be taken at rest.
    fn is_at_rest(&self, loose: u64, working: u64, rate: f64) -> bool {
        let kept_up = rate * REST.as_secs_f64();
        let is_at_rest = kept_up * working as f64 / (SLACK as f64) < loose as f64;
        self.is_resting.store(kept_up < RESTING, Ordering::Relaxed);
        self.is_calming.store(loose > 0 && !is_at_rest, Ordering::Relaxed);
        is_at_rest
    }

    /// Bytes that will be appended, copies included, until the blocks that the
    /// next look chooses are free.
    fn taken_soon(&self, rate: f64, dead: u64) -> u64 {
        let delay = match self.delay.load(Ordering::Relaxed) {
            0 => DELAY,
            delay => Duration::from_micros(delay),
        };
        let waiting = (rate * delay.as_secs_f64()) as u64;
        let looking = ((rate * LONGEST_LOOK.as_secs_f64()) as u64).min(dead / LOOKS);
        let updates = waiting + looking;
        updates + self.copies_for(updates)
    }

    /// Bytes superseded per second, lately.
    fn update_rate(&self, now: Timestamp) -> f64 {
        if self.is_ending() {
            return 0.0;
        }
        let mut last = self.last.lock();
        let time = Clock::duration(now.tick().saturating_sub(last.superseded_at.tick()));
        if time >= RATE_TIME {
            let superseded = self.superseded();
            let rate = (superseded - last.superseded) as f64 / time.as_secs_f64();
            (last.superseded, last.superseded_at) = (superseded, now);
            // Nothing at all is the end of a burst.
            last.rate = if rate > 0.0 { (last.rate + rate) / 2.0 } else { last.rate / 4.0 };
        }
        last.rate
    }

    /// The recent growth of used space.
    fn bytes_per_second(&self, used: u64, now: Timestamp) -> f64 {
        let mut last = self.last.lock();
        let seconds = Clock::duration(now.tick().saturating_sub(last.used_at.tick())).as_secs_f64();
        let rate = used.saturating_sub(last.used) as f64 / seconds.max(1e-3);
        if seconds > 1.0 {
            (last.used, last.used_at) = (used, now);
        }
        rate
    }
}

/// 0 at the calm end of a range, 1 at the alarming end, linear between them.
fn between((calm, alarm): (f64, f64), value: f64) -> f64 {
    ((value - calm) / (alarm - calm)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_rises_towards_the_alarm_from_either_side() {
        let growth = |g: f64| (between((1.2, 1.8), g) * 100.0).round();
        assert_eq!([1.0, 1.2, 1.5, 1.8, 9.0].map(growth), [0.0, 0.0, 50.0, 100.0, 100.0]);
        assert_eq!(
            [0.5, 0.3, 0.2, 0.1, 0.0].map(|r| (between(ROOM, r) * 100.0).round()),
            [0.0, 0.0, 50.0, 100.0, 100.0]
        );
    }

    #[test]
    fn commits_copy_in_proportion_to_what_they_supersede() {
        let pacer = Pacer::default();
        assert_eq!(pacer.copies_for(1000), 0, "nothing is being emptied yet");
        for (dead, alive, copies) in [(80, 20, 250), (50, 50, 1000), (37, 63, 1703), (1, 99, 16_000)] {
            pacer.note_price(dead, alive);
            assert!(pacer.copies_for(1000).abs_diff(copies) < 5, "{dead} of 100: {}", pacer.copies_for(1000));
        }
    }

    #[test]
    fn only_what_stays_beyond_the_target_goes_back() {
        let pacer = Pacer::default();
        let at = |looks: u32| Timestamp::new(Clock::ticks(Duration::from_millis(40) * looks), 0);
        // Now and then nothing is beyond.
        let seen: Vec<_> =
            (100..160).map(|n| pacer.lasting(if n % 8 == 0 { 0 } else { 9 << 20 }, at(n))).collect();
        assert!(seen.iter().all(|&lasting| lasting == 0), "{seen:?}");
        // From here on 3 MB always are.
        let seen: Vec<_> = (160..200).map(|n| pacer.lasting((3 + u64::from(n) % 5) << 20, at(n))).collect();
        assert!(seen[..5].iter().all(|&lasting| lasting == 0), "{seen:?}");
        assert!(seen[25..].iter().all(|&lasting| lasting == 3 << 20), "within a second: {seen:?}");
    }
}
