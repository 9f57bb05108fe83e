//! Freeing versions one by one: removing them from chains, and waiting until
//! their slots can be rewritten.
//!
//! A version is retired only by the thread that removes it from its chain. A
//! link is removed with one compare-and-swap, or under the tuple's lock. A
//! retired version waits until no thread can be on its way to it (T6) and until
//! the durable watermark has passed the moment when it was retired (T1).

use std::collections::VecDeque;
use std::sync::Arc;

use pantile_base::sync::{Mutex, MutexGuard};
use pantile_base::{Address, TableId, Timestamp};
use pantile_cc::{Clock, Epoch, EpochManager, Grace};
use pantile_reclaim::parts::{Counters, EmptyChunks, Sweep, add};
use pantile_reclaim::{CollectorStats, Context, GcOptions, LongerChain, OldVersion, Visit};
use pantile_store::{Link, Store, StoreError};

use crate::free_slots::FreeSlots;

const SHARDS: usize = 16;
/// The fewest retired versions that make a batch, unless an epoch has passed.
const BATCH: usize = 64;
/// The same for collectors that write block headers for them: the larger the
/// batch, the fewer headers.
const MARKED_BATCH: usize = 4096;
/// Number of batches whose slots one step frees.
const BATCHES_PER_STEP: usize = 4;
/// Number of steps of a shard between two that look at all shards (T18).
const OFTEN: u32 = 64;

/// Whether block headers say on the medium which slots are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Marks {
    /// No: recovery relies on timestamps (Zen 3.4).
    None,
    /// Yes, written once for the versions of a batch, block by block.
    Batched,
}

/// Frees versions.
pub(crate) struct Freeing {
    slots: Arc<FreeSlots>,
    epochs: EpochManager,
    marks: Marks,
    shards: Box<[Mutex<Retired>]>,
    chores: Mutex<Chores>,
    pub counters: Counters,
}

#[derive(Default)]
struct Retired {
    /// Removed from their chains, and not yet in a batch.
    fresh: Vec<(TableId, Address)>,
    began: Timestamp,
    batches: VecDeque<Batch>,
    steps: u32,
}

/// Versions retired at about the same time.
struct Batch {
    versions: Vec<(TableId, Address)>,
    grace: Grace,
    at: Timestamp,
}

impl Batch {
    /// Frees the slots and returns how many; `None` if it is too early.
    fn recycle(&self, slots: &FreeSlots, store: &Store) -> Option<usize> {
        let mut addresses = Vec::with_capacity(self.versions.len());
        let mut freed = 0;
        for of_table in self.versions.chunk_by(|a, b| a.0 == b.0) {
            addresses.clear();
            addresses.extend(of_table.iter().map(|(_, address)| *address));
            freed += slots.recycle(store, of_table[0].0, &addresses, self.at)?;
        }
        Some(freed)
    }
}

#[derive(Default)]
struct Chores {
    done: Epoch,
    sweep: Sweep,
    chunks: EmptyChunks,
}

impl Freeing {
    pub fn new(options: GcOptions, marks: Marks) -> Self {
        Self {
            slots: Arc::default(),
            epochs: EpochManager::new(options.epoch),
            marks,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            chores: Mutex::default(),
            counters: Counters::default(),
        }
    }

    fn shard(&self, of: usize) -> &Mutex<Retired> {
        &self.shards[of % SHARDS]
    }

    /// The slots that can be rewritten.
    pub fn slots(&self) -> Arc<FreeSlots> {
        Arc::clone(&self.slots)
    }

    /// Retires a version that is no longer in a chain, or that no reader can
    /// reach.
    pub fn retire(&self, cx: &Context<'_>, table: TableId, version: Address) {
        let mut shard = self.shard(cx.slot.index()).lock();
        if shard.fresh.is_empty() {
            shard.began = cx.registry.now();
        }
        shard.fresh.push((table, version));
    }

    /// Retires a version and all older ones, which no transaction sees.
    fn retire_tail(&self, cx: &Context<'_>, table: TableId, version: Address) {
        let mut at = version;
        let mut visited = 1;
        while let Some(link) = cx.store.link(at) {
            if !cx.store.take_link(at, link) {
                break;
            }
            self.retire(cx, table, at);
            at = link.address;
            visited += 1;
        }
        self.retire(cx, table, at);
        add(&self.counters.versions_traversed, visited);
    }

    /// Walks from the newest version to the one that is linked to `old`.
    fn find(&self, store: &Store, newest: Address, old: &OldVersion) -> Option<(Address, Link)> {
        let (mut at, mut visited) = (newest, 1);
        let found = loop {
            match store.link(at) {
                Some(link) if link.address == old.address && link.begin_ts == old.begin_ts => {
                    break Some((at, link));
                }
                Some(link) if link.begin_ts > old.begin_ts => at = link.address,
                _ => break None,
            }
            visited += 1;
        };
        add(&self.counters.versions_traversed, visited);
        found
    }

    /// Removes a version that no transaction sees, and all older ones, from its
    /// chain. Returns false if that is not possible now, because a transaction
    /// holds the tuple's lock or may still see the version. A version that is
    /// not found has been retired by another thread.
    pub fn cut(&self, cx: &Context<'_>, old: &OldVersion) -> bool {
        if old.end_ts >= cx.registry.watermark() {
            return false;
        }
        let _pin = cx.registry.pin(cx.slot);
        if !old.linked {
            // The slot of a dropped table's version may belong to another table
            // by now.
            if cx.tuples.exists(old.table) {
                self.retire_tail(cx, old.table, old.address);
            }
            return true;
        }
        let visit = cx.tuples.visit_chain(old.table, old.tuple, &mut |newest| {
            if let Some((at, link)) = self.find(cx.store, newest, old)
                && cx.store.take_link(at, link)
            {
                self.retire_tail(cx, old.table, old.address);
            }
        });
        visit != Visit::Busy
    }

    /// Removes a version from the middle of a chain; older ones stay in the
    /// chain. Returns false if a transaction holds the tuple's lock.
    pub fn excise(&self, cx: &Context<'_>, old: &OldVersion) -> bool {
        let _pin = cx.registry.pin(cx.slot);
        let visit = cx.tuples.visit_chain(old.table, old.tuple, &mut |newest| {
            if let Some((at, _)) = self.find(cx.store, newest, old) {
                cx.store.skip_link(at, cx.store.link(old.address));
                self.retire(cx, old.table, old.address);
            }
        });
        visit != Visit::Busy
    }

    /// Removes from a chain the versions that no transaction sees: all that are
    /// older than a version with a `begin_ts` that `is_past`, and each that was
    /// visible between two times and that no transaction `may_see`. The caller
    /// holds the tuple's lock. Returns how many versions are left.
    pub fn prune(
        &self,
        cx: &Context<'_>,
        chain: &LongerChain,
        is_past: impl Fn(Timestamp) -> bool,
        may_see: impl Fn(Timestamp, Timestamp) -> bool,
    ) -> usize {
        let _pin = cx.registry.pin(cx.slot);
        let (table, mut end) = (chain.old.table, chain.old.end_ts);
        let (mut at, mut left, mut visited) = (chain.newest, 1, 0);
        while let Some(link) = cx.store.link(at) {
            if is_past(end) {
                if cx.store.take_link(at, link) {
                    self.retire_tail(cx, table, link.address);
                }
                break;
            }
            if may_see(link.begin_ts, end) {
                at = link.address;
                left += 1;
            } else {
                cx.store.skip_link(at, cx.store.link(link.address));
                self.retire(cx, table, link.address);
            }
            end = link.begin_ts;
            visited += 1;
        }
        add(&self.counters.versions_traversed, visited);
        left
    }

    /// Does some of the work for retired versions. From time to time it returns
    /// true: the caller should then process the lists of other threads too.
    pub fn step(&self, cx: &Context<'_>) -> Result<bool, StoreError> {
        let mut shard = self.shard(cx.slot.index()).lock();
        shard.steps = shard.steps.wrapping_add(1);
        let is_often = shard.steps.is_multiple_of(OFTEN);
        self.advance(cx, shard, BATCHES_PER_STEP, false)?;
        if is_often {
            self.run(cx)?;
        }
        Ok(is_often)
    }

    /// Does all of the work for retired versions that is due.
    pub fn run(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        for shard in &self.shards {
            if let Some(shard) = shard.try_lock() {
                self.advance(cx, shard, usize::MAX, false)?;
            }
        }
        self.chores(cx, false)
    }

    /// Frees all that can be freed.
    pub fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        for shard in &self.shards {
            self.advance(cx, shard.lock(), usize::MAX, true)?;
        }
        self.chores(cx, true)
    }

    fn advance(
        &self,
        cx: &Context<'_>,
        mut shard: MutexGuard<'_, Retired>,
        most: usize,
        urgent: bool,
    ) -> Result<(), StoreError> {
        if self.is_batch_due(cx, &shard, urgent) {
            let mut versions = std::mem::take(&mut shard.fresh);
            versions.sort_unstable_by_key(|(table, address)| (table.0, address.offset()));
            if self.marks == Marks::Batched {
                self.mark(cx, &versions)?;
            }
            shard.batches.push_back(Batch { versions, grace: cx.registry.grace(), at: cx.registry.now() });
        }
        let mut freed = 0;
        for _ in 0..most {
            let Some(batch) = shard.batches.front_mut() else { break };
            if !batch.grace.is_over(cx.registry) {
                break;
            }
            let Some(slots) = batch.recycle(&self.slots, cx.store) else { break };
            freed += slots;
            shard.batches.pop_front();
        }
        if freed > 0 {
            add(&self.counters.versions_reclaimed, freed as u64);
        }
        Ok(())
    }

    fn batch(&self) -> usize {
        match self.marks {
            Marks::None => BATCH,
            Marks::Batched => MARKED_BATCH,
        }
    }

    fn is_batch_due(&self, cx: &Context<'_>, shard: &Retired, urgent: bool) -> bool {
        !shard.fresh.is_empty()
            && (urgent
                || shard.fresh.len() >= self.batch()
                || self.epochs.of(cx.registry.now()) > self.epochs.of(shard.began))
    }

    /// Writes the headers of the blocks that hold the versions.
    fn mark(&self, cx: &Context<'_>, versions: &[(TableId, Address)]) -> Result<(), StoreError> {
        let mut last = None;
        for (_, address) in versions {
            let block = cx.store.block_of(*address);
            if last == block {
                continue;
            }
            if let Some(block) = block {
                cx.store.write_header(block)?;
                self.counters.headers_written(1);
            }
            last = block;
        }
        Ok(())
    }

    /// Processes tombstones and empty chunks, about once per epoch.
    fn chores(&self, cx: &Context<'_>, urgent: bool) -> Result<(), StoreError> {
        let Some(mut chores) = self.chores.try_lock() else { return Ok(()) };
        let _pin = cx.registry.pin(cx.slot);
        chores.sweep.advance(cx, urgent, |table, address| {
            cx.store.supersede(address, cx.registry.now());
            self.retire(cx, table, address);
            add(&self.counters.tombstones_dropped, 1);
        });
        let epoch = self.epochs.of(cx.registry.now());
        if epoch <= chores.done && !urgent {
            return Ok(());
        }
        chores.done = epoch;
        let watermark = cx.registry.watermark();
        chores.chunks.advance(cx, urgent, watermark)
    }

    /// Measures a step that began at `began`.
    pub fn timed(&self, cx: &Context<'_>, began: Timestamp) {
        self.counters.step(Clock::duration(cx.registry.now().tick().saturating_sub(began.tick())));
    }

    /// Frees the superseded versions that an earlier run left behind. No
    /// transaction sees them.
    pub fn resume(&self, store: &Store) {
        store.superseded_versions(|table, versions| {
            self.slots.recycle(store, table, versions, Timestamp::ZERO);
        });
    }

    /// Forgets the waiting versions of a dropped table.
    pub fn forget(&self, table: TableId) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.fresh.retain(|(of, _)| *of != table);
            for batch in &mut shard.batches {
                batch.versions.retain(|(of, _)| *of != table);
            }
        }
    }

    /// What has been done and what is waiting: `listed` versions besides the
    /// retired ones.
    pub fn stats(&self, listed: usize) -> CollectorStats {
        let mut retired = 0;
        for shard in &self.shards {
            let shard = shard.lock();
            retired += shard.fresh.len() + shard.batches.iter().map(|b| b.versions.len()).sum::<usize>();
        }
        // Read last, so that whatever no longer waits has been counted as done.
        let mut stats = self.counters.snapshot();
        stats.waiting_versions = (listed + retired) as u64;
        stats.queue_bytes =
            (listed * size_of::<OldVersion>() + retired * size_of::<(TableId, Address)>()) as u64;
        stats
    }
}
