//! The counters of a collector, and the statistics that are read from them.

use std::time::Duration;

use pantile_base::sync::atomic::{AtomicU64, Ordering};

/// Defines the statistics once: fields for readers, and the counters behind them.
macro_rules! statistics {
    (
        counters { $($(#[doc = $counter_doc:literal])+ $(#[serde($($serde:tt)+)])? $counter:ident,)+ }
        maxima { $($(#[doc = $maximum_doc:literal])+ $maximum:ident,)+ }
        gauges { $($(#[doc = $gauge_doc:literal])+ $gauge:ident,)+ }
    ) => {
        /// What a collector has done since the database was opened, and what is waiting now.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct CollectorStats {
            $($(#[doc = $counter_doc])+ $(#[cfg_attr(feature = "serde", serde($($serde)+))])? pub $counter: u64,)+
            $($(#[doc = $maximum_doc])+ pub $maximum: u64,)+
            $($(#[doc = $gauge_doc])+ pub $gauge: u64,)+
        }

        impl CollectorStats {
            /// What happened after `earlier` was read. Counters are differences; all other values
            /// are as they are now.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($counter: self.$counter.saturating_sub(earlier.$counter),)+ ..*self }
            }
        }

        /// Counts what a collector has done. Written once per step or block, so
        /// shared cache lines do not matter.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[doc = $counter_doc])+ pub $counter: AtomicU64,)+
            $($(#[doc = $maximum_doc])+ pub $maximum: AtomicU64,)+
        }

        impl Counters {
            /// The counters as statistics. The values of what is waiting are
            /// left at zero.
            pub fn snapshot(&self) -> CollectorStats {
                CollectorStats {
                    $($counter: self.$counter.load(Ordering::Relaxed),)+
                    $($maximum: self.$maximum.load(Ordering::Relaxed),)+
                    ..CollectorStats::default()
                }
            }
        }
    };
}

statistics! {
    counters {
        /// Blocks freed.
        blocks_reclaimed,
        /// The part of `blocks_reclaimed` that was bypassed: no transaction could see into the
        /// block, although one that had begun before it still ran (TB-Collect 4.4, second case).
        #[serde(rename = "blocks_passed_over")]
        blocks_bypassed,
        /// The part of `blocks_reclaimed` that was compacted to save space: the share theta of the
        /// block had not been superseded yet.
        blocks_compacted,
        /// Old versions whose space was freed.
        versions_reclaimed,
        /// Live versions copied out of blocks; with one-shot, superseded ones copied into its own.
        survivors_relocated,
        /// Versions visited while following a chain, visits by a background thread included.
        versions_traversed,
        /// Tombstones dropped because they hid nothing any more.
        tombstones_dropped,
        /// Tiles dropped because all versions of their blocks were visible to every transaction.
        tiles_dropped,
        /// Block headers written to the medium.
        headers_written,
        /// How many times a committing thread did some of the collector's work.
        steps,
    }
    maxima {
        /// The longest of these steps, in microseconds.
        pause_us_max,
    }
    gauges {
        /// Blocks in `gc_pending_queue`s now: mostly superseded, but a transaction may still see
        /// the superseded versions.
        pending_blocks,
        /// Blocks in `local_gc_queue`s now: no transaction can see into them.
        queued_blocks,
        /// Blocks in `local_gc_queue_frozen`s now: they are being emptied and freed.
        frozen_blocks,
        /// Blocks in `long_tx_gc_queue`s now: a long transaction bypasses them.
        long_tx_blocks,
        /// Orphaned tiles that are kept now, for chains that long transactions walk.
        kept_tiles,
        /// How many blocks of the mean size the `local_gc_queue`s may now hold together before they
        /// are processed.
        queue_capacity,
        /// Old versions that wait now one by one, in a collector that frees versions instead of
        /// blocks.
        waiting_versions,
        /// Bytes of DRAM that the entries of `waiting_versions` take, and tiles that threads may
        /// still be looking at although their blocks have none any more.
        queue_bytes,
        /// Deleted tuples whose tombstones wait now, until they hide nothing any more.
        waiting_tombstones,
    }
}

/// Adds to one of the counters.
pub fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

impl Counters {
    /// Counts block headers that were written to the medium.
    pub fn headers_written(&self, by: u64) {
        add(&self.headers_written, by);
    }

    /// Counts a step that took this long.
    pub fn step(&self, took: Duration) {
        add(&self.steps, 1);
        self.pause_us_max.fetch_max(took.as_micros() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_differences_and_gauges_are_not() {
        let before = CollectorStats {
            blocks_reclaimed: 5,
            pause_us_max: 7,
            queued_blocks: 9,
            ..CollectorStats::default()
        };
        let after = CollectorStats { blocks_reclaimed: 8, queued_blocks: 4, ..before };
        let between = after.since(&before);
        assert_eq!((between.blocks_reclaimed, between.pause_us_max, between.queued_blocks), (3, 7, 4));
    }
}
