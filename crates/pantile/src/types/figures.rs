//! Figures of a running database: each is defined once, for programs, for the
//! statistics page, and for Prometheus.

/// Whether a figure only grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Counter,
    Gauge,
}

/// A figure as others name it.
pub(crate) struct Meaning {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

/// Figures that say what they mean.
pub(crate) trait Described {
    /// In the order of the values.
    const MEANINGS: &'static [Meaning];
}

macro_rules! figures {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $kind:ident, $help:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct $name {
            $(#[doc = $help] pub $field: u64,)+
        }

        impl $name {
            /// All of them, in their order.
            pub(crate) fn values(&self) -> Vec<u64> {
                vec![$(self.$field),+]
            }

            /// From that many values.
            pub(crate) fn from_values(values: &[u64]) -> Option<Self> {
                let mut values = values.iter().copied();
                let all = Self { $($field: values.next()?,)+ };
                values.next().is_none().then_some(all)
            }
        }

        impl Described for $name {
            const MEANINGS: &'static [Meaning] =
                &[$(Meaning { name: stringify!($field), kind: Kind::$kind, help: $help },)+];
        }
    };
}

figures! {
    /// What a database has done since it was opened, and what it takes, at one
    /// moment; see [`Database::figures`](crate::Database::figures).
    Figures {
        commits: Counter, "Transactions committed, read-only ones included.";
        aborts: Counter, "Transactions rolled back, for any reason.";
        contents_written: Counter, "Versions written by commits.";
        payload_bytes: Counter, "Bytes of the versions that commits have written.";
        copied_bytes: Counter, "Bytes of live versions that the collector has copied.";
        medium_written_bytes: Counter, "Bytes written to the medium, for whatever purpose.";
        syncs: Counter, "Syncs that reached the device.";
        blocks_reclaimed: Counter, "Blocks that the collector has freed.";
        versions_reclaimed: Counter, "Old versions whose space the collector has freed.";
        survivors_relocated: Counter, "Live versions that the collector has copied.";
        pin_warnings: Counter, "Transactions that held back more than allowed and were warned of.";
        pin_ends: Counter, "Transactions that held back more than allowed and were ended.";
        damaged_contents: Counter, "Contents found damaged.";
        upkeep_has_ended: Gauge, "1 if the upkeep in the background has ended by a panic.";
        running: Gauge, "Transactions that run.";
        ended_not_dropped: Gauge, "Transactions that were ended from outside and are not dropped yet.";
        oldest_micros: Gauge, "Age of the oldest transaction, in microseconds.";
        medium_bytes: Gauge, "Bytes taken on the medium.";
        live_bytes: Gauge, "Bytes of the newest versions of all rows.";
        obsolete_bytes: Gauge, "Bytes of superseded versions on the medium.";
        pinned_bytes: Gauge, "The part of the obsolete bytes that transactions hold back.";
        unfilled_bytes: Gauge, "Bytes of slots in used blocks that are not written yet.";
        free_bytes: Gauge, "Bytes of empty blocks and chunks.";
        room_bytes: Gauge, "Bytes that can still be written, by the limit and by the file system.";
        rows: Gauge, "Rows that exist.";
        dram_bytes: Gauge, "Bytes of memory that the database holds.";
        index_bytes: Gauge, "The part of the memory in indexes.";
        open_blocks: Gauge, "Blocks that commits append to.";
        sealed_blocks: Gauge, "Blocks that are full.";
        frozen_blocks: Gauge, "Blocks that are being emptied.";
        free_blocks: Gauge, "Blocks that belong to no table.";
        stale_entries: Gauge, "Index entries that wait to be cleaned up.";
        commit_p50_nanos: Gauge, "Half of the commits of the last second took at most this, in nanoseconds.";
        commit_p99_nanos: Gauge, "99 of 100 commits of the last second took at most this, in nanoseconds.";
        commit_max_nanos: Gauge, "The longest commit of the last second took at most this, in nanoseconds.";
    }
}

figures! {
    /// One sample of the history of a database. Counters are totals since the database was opened;
    /// see [`Database::history`](crate::Database::history).
    Sample {
        at_millis: Gauge, "When, in milliseconds since the database was opened.";
        commits: Counter, "Transactions committed, read-only ones included.";
        aborts: Counter, "Transactions rolled back, for any reason.";
        payload_bytes: Counter, "Bytes of the versions that commits have written.";
        copied_bytes: Counter, "Bytes of live versions that the collector has copied.";
        syncs: Counter, "Syncs that reached the device.";
        running: Gauge, "Transactions that run.";
        oldest_micros: Gauge, "Age of the oldest transaction, in microseconds.";
        medium_bytes: Gauge, "Bytes taken on the medium.";
        used_bytes: Gauge, "The part of them that is not free.";
        live_bytes: Gauge, "Bytes of the newest versions of all rows.";
        obsolete_bytes: Gauge, "Bytes of superseded versions on the medium.";
        pinned_bytes: Gauge, "The part of the obsolete bytes that transactions hold back.";
        commit_p50_nanos: Gauge, "Half of the commits since the last sample took at most this, in nanoseconds.";
        commit_p99_nanos: Gauge, "99 of 100 commits since then took at most this, in nanoseconds.";
        commit_max_nanos: Gauge, "The longest commit since then took at most this, in nanoseconds.";
    }
}

impl Sample {
    /// The sample that these figures give.
    pub(crate) fn of(figures: &Figures, at_millis: u64) -> Self {
        Self {
            at_millis,
            commits: figures.commits,
            aborts: figures.aborts,
            payload_bytes: figures.payload_bytes,
            copied_bytes: figures.copied_bytes,
            syncs: figures.syncs,
            running: figures.running,
            oldest_micros: figures.oldest_micros,
            medium_bytes: figures.medium_bytes,
            used_bytes: figures.medium_bytes.saturating_sub(figures.free_bytes),
            live_bytes: figures.live_bytes,
            obsolete_bytes: figures.obsolete_bytes,
            pinned_bytes: figures.pinned_bytes,
            commit_p50_nanos: figures.commit_p50_nanos,
            commit_p99_nanos: figures.commit_p99_nanos,
            commit_max_nanos: figures.commit_max_nanos,
        }
    }
}

/// The history of an open database, the oldest sample first.
///
/// There is no sample of a time in which nothing began and nothing ended: the figures stayed those
/// of the sample before.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct History {
    /// About one sample per second, for the last 10 minutes in which there was any.
    pub seconds: Vec<Sample>,
    /// About one sample per minute, for a day.
    pub minutes: Vec<Sample>,
}
