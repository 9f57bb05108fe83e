//! What a transaction keeps to itself until it commits, slot by slot.

use std::cell::RefCell;

use pantile_base::control::{Control, is_removed};
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::{Address, Padded, TableId, Timestamp, TupleId, return_free_memory};
use pantile_cc::Slot;
use pantile_reclaim::OldVersion;

use crate::engine::by_tuple::ByTuple;
use crate::engine::flights::Flight;
use crate::engine::holders::Holder;
use crate::engine::read_set::ReadSet;
use crate::engine::stale::StaleEntry;
use crate::engine::writes::{Pending, TableUse, Write};

/// A change that a savepoint can take back.
pub(crate) enum Undo {
    /// Forget the newest write, which was made by locking a tuple.
    Unlock,
    /// Restore what was pending.
    Restore { write: u32, pending: Pending },
    /// Clean up an index entry that was inserted.
    Entry(StaleEntry),
}

/// A state to which the buffers can be brought back, by the savepoints that were set
/// in it one after the other and are still valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The numbers of the first and the last savepoint of this state, and of all between.
    pub first: u64,
    pub last: u64,
    /// The lengths of [`Buffers::undo`] and [`Buffers::rows`].
    pub undo: usize,
    pub rows: usize,
}

/// A transaction's private memory, kept for the next one in the same slot
/// unless it is large.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Kept from one transaction to the next, so that cores do not contend for
    /// reference counts.
    pub tables: Vec<TableUse>,
    pub writes: Vec<Write>,
    /// What a serializable writer has read.
    pub reads: ReadSet,
    /// The commits in flight whose versions it has met. Filled through shared
    /// references, as the read set is.
    pub depends: RefCell<Vec<Flight>>,
    /// Their timestamps, as a row.
    pub dependencies: Vec<u8>,
    pub by_tuple: ByTuple,
    /// Rows to be written, one after the other.
    pub rows: Vec<u8>,
    pub undo: Vec<Undo>,
    /// The savepoints that are still valid, in order.
    pub savepoints: Vec<Mark>,
    /// The ids of rows that it has inserted and taken back, and since when no index
    /// leads to them.
    pub freed: Vec<(Timestamp, TableId, TupleId)>,
    /// As many are worth a look at what the other transactions may know of.
    pub worth_freeing: usize,
    /// Entries that the commit will make stale.
    pub stale: Vec<StaleEntry>,
    /// Which writes append a content, and the addresses they get.
    pub appends: Vec<u32>,
    pub addresses: Vec<Address>,
    /// The versions that the commit supersedes.
    pub superseded: Vec<OldVersion>,
    /// Elsewhere while a row is being changed, so it is counted by itself.
    pub scratch: Vec<u8>,
    /// Writes since the memory of the database was last checked.
    pub unchecked: u32,
    /// At how many bytes they are squeezed next (`engine/squeeze.rs`), and those of them
    /// that only savepoints need.
    pub squeeze_at: usize,
    pub(super) kept_states: usize,
    /// The capacities and the bytes of all others when they were last added up.
    counted: usize,
    bytes: u64,
}

/// Tables that buffers keep at most.
const TABLES_KEPT: usize = 64;

/// Bytes that the buffers of a slot keep at most from one transaction to the next.
const BYTES_KEPT: u64 = 512 << 10;

/// Bytes that all larger ones keep together, at most, and the part of the memory
/// limit. A load is many large transactions, and new memory for each would take as
/// long as the rows.
const LARGE_BYTES_KEPT: (u64, u64) = (16 << 20, 64);

/// Writes of a transaction after which the slot's next one may be large as well.
const LARGE_WRITES: usize = 1024;

/// Buffers of this size leave so much behind in the allocator that it is made to
/// give it back, which takes milliseconds. A transaction takes far longer to
/// fill them.
const BYTES_RETURNED: u64 = 8 << 20;

fn bytes_of<T>(buffer: &Vec<T>) -> usize {
    buffer.capacity() * size_of::<T>()
}

impl Buffers {
    /// The write of a tuple that the transaction has locked.
    #[inline]
    pub fn write_of(&self, table: TableId, tuple: TupleId) -> Option<u32> {
        self.by_tuple.find((table, tuple), &self.writes, &self.tables)
    }

    /// The same for a write that is being taken back.
    pub fn newest_write_of(&self, table: TableId, tuple: TupleId) -> Option<u32> {
        self.by_tuple.find_newest((table, tuple), &self.writes, &self.tables)
    }

    fn capacities(&mut self) -> usize {
        self.writes.capacity()
            + self.reads.capacities()
            + self.by_tuple.capacity()
            + self.rows.capacity()
            + self.undo.capacity()
            + self.savepoints.capacity()
            + self.freed.capacity()
            + self.stale.capacity()
            + self.appends.capacity()
            + self.addresses.capacity()
            + self.superseded.capacity()
            + self.tables.capacity()
    }

    /// The bytes that they take, if a buffer has grown since the last call.
    #[inline]
    pub fn grown(&mut self) -> Option<u64> {
        (self.capacities() != self.counted || self.reads.is_counted_apart()).then(|| self.count())
    }

    #[cold]
    fn count(&mut self) -> u64 {
        self.counted = self.capacities();
        let entries = self.undo.iter().filter_map(|undo| match undo {
            Undo::Entry(entry) => Some(entry),
            Undo::Unlock | Undo::Restore { .. } => None,
        });
        let keys = entries.chain(&self.stale).map(StaleEntry::key_bytes).sum::<u64>();
        let lists =
            bytes_of(&self.tables) + bytes_of(&self.writes) + bytes_of(&self.undo) + bytes_of(&self.stale);
        let kept = bytes_of(&self.savepoints) + bytes_of(&self.freed);
        let commit = bytes_of(&self.appends) + bytes_of(&self.addresses) + bytes_of(&self.superseded);
        let rows = bytes_of(&self.rows);
        self.bytes = keys
            + (size_of::<Self>() + self.by_tuple.bytes() + lists + kept + self.reads.count() + commit + rows)
                as u64;
        self.total()
    }

    fn total(&self) -> u64 {
        self.bytes + bytes_of(&self.scratch) as u64
    }

    #[inline]
    pub fn clear(&mut self) {
        self.by_tuple.clear(self.writes.len());
        self.writes.clear();
        self.reads.clear();
        self.depends.get_mut().clear();
        self.dependencies.clear();
        self.rows.clear();
        self.undo.clear();
        self.savepoints.clear();
        debug_assert!(self.freed.is_empty(), "the cleaner has them");
        self.worth_freeing = 0;
        self.stale.clear();
        self.appends.clear();
        self.addresses.clear();
        self.superseded.clear();
        self.begin_unsqueezed();
        // Nothing keeps a dropped index or table but those that use it.
        let is_old = |t: &TableUse| t.table.is_dropped() || t.indexes_version != t.table.indexes_version();
        if self.tables.len() > TABLES_KEPT || self.tables.iter().any(is_old) {
            self.tables.clear();
        }
    }

    /// The bytes that they take.
    fn count_grown(&mut self) -> u64 {
        self.grown().unwrap_or_else(|| self.total())
    }
}

/// The holder of a slot, and its buffers. One lock for both: a transaction takes it when
/// it begins and when it ends anyway.
#[derive(Default)]
struct Occupied {
    /// None while a transaction has them.
    idle: Option<Box<Buffers>>,
    /// The transaction that has the slot.
    holder: Option<Holder>,
    /// Holders so far.
    turns: u64,
}

impl Occupied {
    fn occupy(&mut self, holder: Holder) -> u64 {
        self.turns += 1;
        self.holder = Some(Holder { turn: self.turns, ..holder });
        self.turns
    }
}

/// The buffers of a slot.
#[derive(Default)]
struct OfSlot {
    occupied: Mutex<Occupied>,
    /// What they take, idle or not.
    bytes: AtomicU64,
}

/// The buffers of all slots.
pub(crate) struct SlotBuffers {
    /// Apart from each other: two slots are two cores.
    by_slot: Box<[Padded<OfSlot>]>,
    /// What idle ones beyond [`BYTES_KEPT`] take, and may take.
    large: AtomicU64,
    large_limit: u64,
}

impl SlotBuffers {
    /// None yet, in a database with this limit of memory.
    pub fn new(memory_limit: u64) -> Self {
        let by_slot = (0..TRANSACTION_SLOTS).map(|_| Padded::default()).collect();
        let large_limit = LARGE_BYTES_KEPT.0.min(memory_limit / LARGE_BYTES_KEPT.1);
        Self { by_slot, large: AtomicU64::new(0), large_limit }
    }

    /// The buffers of a slot, and which of its transactions the holder is.
    pub fn take(&self, slot: Slot, holder: Holder) -> (Box<Buffers>, u64) {
        let of_slot = &self.by_slot[slot.index()];
        let mut occupied = of_slot.occupied.lock();
        let turn = occupied.occupy(holder);
        (self.take_idle(of_slot, &mut occupied).unwrap_or_default(), turn)
    }

    fn take_idle(&self, of_slot: &OfSlot, occupied: &mut Occupied) -> Option<Box<Buffers>> {
        let idle = occupied.idle.take()?;
        let bytes = of_slot.bytes.load(Ordering::Relaxed);
        if bytes > BYTES_KEPT {
            self.large.fetch_sub(bytes, Ordering::Relaxed);
        }
        Some(idle)
    }

    /// Notes who has a slot and needs no buffers.
    pub fn occupy(&self, slot: Slot, holder: Holder) {
        self.by_slot[slot.index()].occupied.lock().occupy(holder);
    }

    /// Holders of all slots so far.
    pub fn turns(&self) -> u64 {
        self.by_slot.iter().map(|of_slot| of_slot.occupied.lock().turns).sum()
    }

    /// The opposite of [`SlotBuffers::occupy`].
    pub fn leave(&self, slot: Slot) {
        self.by_slot[slot.index()].occupied.lock().holder = None;
    }

    /// The transaction that has the slot, if one has.
    pub fn holder(&self, slot: Slot) -> Option<Holder> {
        self.by_slot[slot.index()].occupied.lock().holder
    }

    /// Calls `change` with the transaction that has the slot. It does not end
    /// meanwhile.
    pub fn with_holder<R>(&self, slot: Slot, change: impl FnOnce(&mut Holder) -> R) -> Option<R> {
        self.by_slot[slot.index()].occupied.lock().holder.as_mut().map(change)
    }

    /// Keeps the buffers of a transaction that has ended, and what they take,
    /// within [`BYTES_KEPT`] and [`LARGE_BYTES_KEPT`]. Calls `ended` if the
    /// transaction was asked to end.
    pub fn keep(&self, slot: Slot, mut buffers: Box<Buffers>, ended: impl FnOnce()) {
        let is_large = buffers.writes.len() >= LARGE_WRITES;
        buffers.clear();
        let of_slot = &self.by_slot[slot.index()];
        let bytes = buffers.count_grown();
        let stays =
            bytes <= BYTES_KEPT || is_large && self.keeps_large(bytes) || is_removed(Control::Buffers);
        let kept = stays.then_some(buffers);
        if bytes >= BYTES_RETURNED && kept.is_none() {
            return_free_memory();
        }
        // The next holder of the slot takes its buffers after this call.
        of_slot.bytes.store(if kept.is_some() { bytes } else { 0 }, Ordering::Relaxed);
        let mut occupied = of_slot.occupied.lock();
        occupied.idle = kept;
        if occupied.holder.take().is_some_and(|holder| holder.ended.is_some()) {
            ended();
        }
    }

    /// Whether there is room for large buffers, which are then counted.
    fn keeps_large(&self, bytes: u64) -> bool {
        let fits = self.large.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.large_limit;
        if !fits {
            self.large.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// The buffers of a running transaction have grown.
    pub fn note(&self, slot: Slot, bytes: u64) {
        self.by_slot[slot.index()].bytes.store(bytes, Ordering::Relaxed);
    }

    /// The read set of a running transaction has grown by this.
    pub fn add(&self, slot: Slot, bytes: isize) {
        self.by_slot[slot.index()].bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What the buffers of a slot take, in bytes.
    pub fn bytes_of(&self, slot: Slot) -> u64 {
        self.by_slot[slot.index()].bytes.load(Ordering::Relaxed)
    }

    /// What all of them take, in bytes.
    pub fn bytes(&self) -> u64 {
        let buffers = self.by_slot.iter().map(|of_slot| of_slot.bytes.load(Ordering::Relaxed));
        size_of_val(&*self.by_slot) as u64 + buffers.sum::<u64>()
    }

    /// Drops those that are idle, so that they no longer refer to tables.
    pub fn forget(&self) {
        for of_slot in &self.by_slot {
            let mut occupied = of_slot.occupied.lock();
            let idle = self.take_idle(of_slot, &mut occupied);
            if idle.is_some() {
                of_slot.bytes.store(0, Ordering::Relaxed);
            }
            // They may be the last to refer to a large tree, whose end takes long.
            drop(occupied);
            drop(idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Buffers;

    #[test]
    fn only_growth_is_counted() {
        let mut buffers = Buffers { rows: Vec::with_capacity(100), ..Buffers::default() };
        assert!(buffers.grown().is_some());
        assert_eq!(buffers.grown(), None);
        // As while a row is being changed.
        let scratch = std::mem::replace(&mut buffers.scratch, vec![0; 1000]);
        assert_eq!(buffers.grown(), None);
        let bytes = buffers.count_grown();
        buffers.scratch = scratch;
        assert_eq!(bytes - buffers.count_grown(), 1000);
        buffers.writes.reserve(10);
        assert!(buffers.grown().is_some());
    }
}
