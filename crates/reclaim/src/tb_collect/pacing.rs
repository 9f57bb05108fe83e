//! How much may wait in the queues.
//!
//! Waiting pays: more versions of a block die meanwhile, and fewer have to be
//! moved. But it costs space, and chains grow. The published collector lets a
//! fixed share of the data wait (TB-Collect 4.3). This one follows section 6.2.
//! The share shrinks as more versions of each tuple are stored, as the space
//! will be used up sooner, and as less space is left.

use pantile_base::Timestamp;
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
/// Bytes beyond the target that are ignored.
const SLACK: u64 = 16 << 20;

/// Decides how much may wait.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    capacity_bytes: AtomicU64,
    block_bytes: AtomicU64,
    is_short: AtomicBool,
    is_over_target: AtomicBool,
    /// Bytes in use at the last look, and its time.
    last: Mutex<(u64, Timestamp)>,
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

    /// Whether little space is left, or the data takes more space than it
    /// should.
    pub fn is_compaction_due(&self) -> bool {
        self.is_short() || self.is_over_target.load(Ordering::Relaxed)
    }

    /// Takes a look at the store.
    pub fn look(&self, options: &GcOptions, store: &Store, live_bytes: u64, now: Timestamp) {
        let used = store.used_bytes();
        let (room, limit) = store.room();
        let room_share = room as f64 / limit.max(1) as f64;
        self.is_short.store(room_share < SHORT, Ordering::Relaxed);
        let target = (live_bytes as f64 * options.space_target) as u64;
        self.is_over_target.store(used > target.saturating_add(SLACK), Ordering::Relaxed);
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
    }

    /// The recent growth of used space.
    fn bytes_per_second(&self, used: u64, now: Timestamp) -> f64 {
        let mut last = self.last.lock();
        let seconds = Clock::duration(now.tick().saturating_sub(last.1.tick())).as_secs_f64();
        let rate = used.saturating_sub(last.0) as f64 / seconds.max(1e-3);
        if seconds > 1.0 {
            *last = (used, now);
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
}
