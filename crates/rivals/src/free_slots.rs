use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::limits::BLOCK_SLOTS;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::{Address, TableId, Timestamp};
use pantile_store::{BlockRef, FreeSlot, Refused, SlotReuse, Store};

const SHARDS: usize = 16;

/// The free slots of a store, in DRAM only. There are several lists, so that
/// threads seldom contend; each block is in one of them.
#[derive(Debug)]
pub struct FreeSlots {
    shards: Box<[Mutex<Shard>]>,
    /// Number of free slots, roughly. While it is 0, no thread looks for one.
    count: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    blocks: HashMap<BlockRef, Vacant, FixedState>,
    /// Blocks with free slots, by table and size.
    by_class: HashMap<(TableId, u32), Vec<BlockRef>, FixedState>,
}

/// The free slots of one block.
#[derive(Debug)]
struct Vacant {
    /// Any of its free slots.
    one: FreeSlot,
    count: u32,
    words: [u64; BLOCK_SLOTS / 64],
}

impl Default for FreeSlots {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), count: AtomicU64::new(0) }
    }
}

impl FreeSlots {
    fn shard(&self, block: BlockRef) -> &Mutex<Shard> {
        &self.shards[block.spread() % self.shards.len()]
    }

    /// Number of free slots.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Frees the slots of superseded versions of a table, as far as the store
    /// allows it ([`Store::free_slot`]). Returns how many became free; `None`
    /// if it is too early.
    ///
    /// # Panics
    /// If a slot is already free: it would be given to two versions.
    pub fn recycle(
        &self,
        store: &Store,
        table: TableId,
        versions: &[Address],
        at: Timestamp,
    ) -> Option<usize> {
        let mut freed = 0;
        for &version in versions {
            let Some(block) = store.block_of(version) else { continue };
            // The store is asked under the lock, because it forgets a dropped
            // table's slots once the blocks have become released.
            let mut shard = self.shard(block).lock();
            match store.free_slot(table, version, at) {
                Ok(slot) => shard.add(slot),
                Err(Refused::NotDurable) => return None,
                Err(_) => continue,
            }
            freed += 1;
        }
        self.count.fetch_add(freed as u64, Ordering::Relaxed);
        Some(freed)
    }
}

impl SlotReuse for FreeSlots {
    fn take(&self, class: (TableId, u32), hint: usize, most: usize, out: &mut Vec<FreeSlot>) {
        if self.count() == 0 {
            return;
        }
        let before = out.len();
        for n in 0..self.shards.len() {
            let left = most - (out.len() - before);
            if left == 0 {
                break;
            }
            self.shards[(hint + n) % self.shards.len()].lock().take(class, left, out);
        }
        self.count.fetch_sub((out.len() - before) as u64, Ordering::Relaxed);
    }

    fn give_back(&self, slots: &mut dyn Iterator<Item = FreeSlot>) {
        for slot in slots {
            self.shard(slot.block()).lock().add(slot);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn forget(&self, table: TableId) {
        for shard in &self.shards {
            let forgotten = shard.lock().forget(table);
            self.count.fetch_sub(forgotten, Ordering::Relaxed);
        }
    }
}

impl Shard {
    fn add(&mut self, slot: FreeSlot) {
        let block = slot.block();
        let vacant = self.blocks.entry(block).or_insert_with(|| {
            self.by_class.entry(slot.class()).or_default().push(block);
            Vacant { one: slot, count: 0, words: [0; BLOCK_SLOTS / 64] }
        });
        vacant.add(slot.number());
    }

    fn take(&mut self, class: (TableId, u32), most: usize, out: &mut Vec<FreeSlot>) {
        let Some(blocks) = self.by_class.get_mut(&class) else { return };
        let end = out.len() + most;
        while out.len() < end
            && let Some(block) = blocks.last()
        {
            let vacant = self.blocks.get_mut(block).expect("a listed block has free slots");
            vacant.take(end - out.len(), out);
            if vacant.count == 0 {
                self.blocks.remove(block);
                blocks.pop();
            }
        }
    }

    /// Returns how many slots were forgotten.
    fn forget(&mut self, table: TableId) -> u64 {
        self.by_class.retain(|(of, _), _| *of != table);
        let gone = self.blocks.extract_if(|_, vacant| vacant.one.class().0 == table);
        gone.map(|(_, vacant)| u64::from(vacant.count)).sum()
    }
}

impl Vacant {
    fn add(&mut self, slot: u32) {
        let (word, bit) = (&mut self.words[slot as usize / 64], 1 << (slot % 64));
        assert!(*word & bit == 0, "a slot is freed once");
        *word |= bit;
        self.count += 1;
    }

    /// Takes the first slots, in order.
    fn take(&mut self, most: usize, out: &mut Vec<FreeSlot>) {
        let mut left = most;
        for (n, word) in (0u32..).zip(&mut self.words) {
            while *word != 0 && left > 0 {
                out.push(self.one.sibling(64 * n + word.trailing_zeros()));
                *word &= *word - 1;
                self.count -= 1;
                left -= 1;
            }
        }
    }
}
