//! Samples of a running database: history, statistics page.

use std::time::Duration;

use crate::engine::core::Core;
use crate::engine::ending::HeldBy;
use crate::engine::latencies::{Counts, percentile};
use crate::engine::measures::Looked;
use crate::engine::still_open::{age, describe};
use crate::types::figures::{Figures, History, Sample};
use crate::types::page::{Page, PageReader, PageTransaction};
use crate::types::stats::ReadingProcess;

/// How often a sample is taken while something happens.
const EVERY: Duration = Duration::from_secs(1);
/// A sample of a large database takes at most this part of the time.
const COST: u32 = 200;

/// What a page shows of each list, at most.
const TRANSACTIONS: usize = 64;
const TABLES: usize = 64;
const SECONDS: usize = 120;
const MINUTES: usize = 60;

impl Core {
    /// Takes a sample if it is time. Returns when the next is due, or `None` if none
    /// is before something happens: the last one says so, and stays true.
    pub fn observe(&self) -> Option<Duration> {
        let now = self.registry.clock().elapsed();
        let mut rings = self.insight.rings.lock();
        let every = EVERY.max(rings.cost * COST);
        let due = rings.taken.map_or(now, |taken| taken + every);
        if due > now && !rings.is_quiet {
            return Some(due - now);
        }
        let activity = self.activity();
        let has_happened = activity != rings.activity;
        if !has_happened && rings.is_quiet {
            return None;
        }
        if due > now {
            return Some(due - now);
        }
        (rings.activity, rings.is_quiet, rings.taken) = (activity, !has_happened, Some(now));
        // What asks for memory takes this lock.
        drop(rings);
        self.sample(now);
        let cost = self.registry.clock().elapsed().saturating_sub(now);
        self.insight.rings.lock().cost = cost;
        has_happened.then_some(every.max(cost * COST))
    }

    /// Grows when a transaction begins or ends.
    fn activity(&self) -> u64 {
        let (commits, aborts) = self.counters.ended();
        self.buffers.turns() + commits + aborts
    }

    fn sample(&self, now: Duration) {
        let looked = self.look();
        let counts = self.insight.latencies.counts();
        let (figures, is_quiet, history, growth) = {
            let mut rings = self.insight.rings.lock();
            let figures = self.figures_of(&looked, &counts, &rings.counted);
            rings.counted = counts;
            rings.add(Sample::of(&figures, now.as_millis() as u64));
            (figures, rings.is_quiet, rings.newest(SECONDS, MINUTES), rings.growth())
        };
        if self.options.without_page || self.options.is_read_only() {
            return;
        }
        let facts = self.store.medium().facts();
        let data_file = facts.file.as_ref().map(|file| file.path());
        self.insight.publisher.publish(data_file, || {
            let page = Page {
                is_quiet,
                medium: facts.name.clone(),
                limit_bytes: facts.limit,
                full_in_seconds: growth.map(|rate| (figures.room_bytes as f64 / rate) as u64),
                figures,
                history,
                ..Page::default()
            };
            self.with_lists(page, looked.holders)
        });
    }

    fn with_lists(&self, page: Page, mut holders: Vec<HeldBy>) -> Page {
        let more_transactions = holders.len().saturating_sub(TRANSACTIONS) as u64;
        // The oldest come first among those that hold back as much.
        holders.sort_by_key(|by| std::cmp::Reverse(by.held.bytes + by.held.dram));
        let transactions = holders.iter().take(TRANSACTIONS).map(|by| self.for_page(by)).collect();
        let mut tables = self.space_by_table();
        let more_tables = tables.len().saturating_sub(TABLES) as u64;
        tables.sort_by_key(|table| std::cmp::Reverse(table.bytes));
        tables.truncate(TABLES);
        let readers = self.reading_processes().iter().map(reader_for_page).take(TRANSACTIONS).collect();
        Page { transactions, more_transactions, tables, more_tables, readers, ..page }
    }

    fn for_page(&self, HeldBy { open, holder, held }: &HeldBy) -> PageTransaction {
        let transaction = describe(open, Some(*holder), self.registry.now());
        let mut tables = self.held_by_table(held);
        tables.truncate(TABLES);
        PageTransaction {
            id: transaction.id.map_or(0, |id| id.get()),
            name: transaction.label().unwrap_or_default(),
            place: transaction.place.map(ToString::to_string).unwrap_or_default(),
            isolation: transaction.isolation.map(|level| format!("{level:?}")).unwrap_or_default(),
            read_only: transaction.read_only,
            age_micros: transaction.age.as_micros() as u64,
            thread: transaction.thread.unwrap_or_default(),
            thread_id: transaction.thread_id.map_or(0, u64::from),
            ended: transaction.ended.map(|by| by.to_string()).unwrap_or_default(),
            held_bytes: held.bytes,
            held_blocks: held.blocks(),
            freed_bytes: held.bytes_alone,
            held_dram_bytes: held.dram,
            freed_dram_bytes: held.dram_alone,
            buffer_bytes: self.buffers.bytes_of(open.slot),
            tables,
        }
    }

    /// Counters and gauges of this moment.
    pub fn figures(&self) -> Figures {
        let counted = self.insight.rings.lock().counted;
        self.figures_of(&self.look(), &self.insight.latencies.counts(), &counted)
    }

    fn figures_of(&self, looked: &Looked, counts: &Counts, earlier: &Counts) -> Figures {
        let Looked { stats, space, holders, pinned_bytes } = looked;
        let now = self.registry.now();
        let oldest = holders.first().map(|by| age(&by.open, now));
        let percentile = |share| percentile(counts, earlier, share);
        Figures {
            commits: stats.commits,
            aborts: stats.aborts,
            contents_written: stats.contents_written,
            payload_bytes: stats.payload_bytes,
            copied_bytes: stats.copied_bytes,
            medium_written_bytes: stats.medium.bytes_written,
            syncs: stats.medium.syncs,
            blocks_reclaimed: stats.collector.blocks_reclaimed,
            versions_reclaimed: stats.collector.versions_reclaimed,
            survivors_relocated: stats.collector.survivors_relocated,
            pin_warnings: stats.pin_warnings,
            pin_ends: stats.pin_ends,
            damaged_contents: stats.damaged_contents,
            upkeep_has_ended: u64::from(stats.upkeep_has_ended),
            running: stats.running,
            ended_not_dropped: stats.ended_not_dropped,
            oldest_micros: oldest.map_or(0, |age| age.as_micros() as u64),
            medium_bytes: stats.medium_bytes,
            live_bytes: stats.live_bytes,
            obsolete_bytes: stats.obsolete_bytes,
            pinned_bytes: *pinned_bytes,
            unfilled_bytes: stats.unfilled_bytes,
            free_bytes: stats.free_bytes,
            room_bytes: self.room_bytes(stats.free_bytes),
            rows: stats.tuples,
            dram_bytes: stats.dram_bytes,
            index_bytes: stats.index_bytes,
            open_blocks: space.open_blocks,
            sealed_blocks: space.sealed_blocks,
            frozen_blocks: space.frozen_blocks,
            free_blocks: space.free_blocks,
            stale_entries: stats.stale_entries,
            commit_p50_nanos: percentile(0.5),
            commit_p99_nanos: percentile(0.99),
            commit_max_nanos: percentile(1.0),
        }
    }

    /// Bytes that can still be written: within the limit, and on the file system,
    /// which has given the free bytes already.
    fn room_bytes(&self, free_bytes: u64) -> u64 {
        let (room, _) = self.store.room();
        let file = self.store.medium().facts().file.as_ref();
        let device = file.and_then(|file| file.free_bytes());
        device.map_or(room, |device| room.min(device + free_bytes))
    }

    pub fn history(&self) -> History {
        self.insight.rings.lock().history()
    }

    /// When there is no room left, at the rate of the last minute.
    pub fn full_in(&self) -> Option<Duration> {
        let growth = self.insight.rings.lock().growth()?;
        let room = self.room_bytes(self.store.space().free_bytes());
        Duration::try_from_secs_f64(room as f64 / growth).ok()
    }
}

fn reader_for_page(reader: &ReadingProcess) -> PageReader {
    PageReader {
        process: reader.process.unwrap_or(0),
        age_micros: reader.age.map_or(0, |age| age.as_micros() as u64),
        held_bytes: reader.held_bytes,
    }
}
