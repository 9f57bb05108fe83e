//! Packing: while a database is compacted, copies go to the lowest free blocks that suit them, and
//! blocks are emptied if their contents fit further down. So the medium becomes as short as it can.

use pantile_base::sync::atomic::Ordering;

use crate::allocator::Allocator;
use crate::block::{BlockId, BlockRef};
use crate::geometry::Class;
use crate::store::Store;
use crate::stream::class_key;

/// As long as it exists, copies go down.
#[derive(Debug)]
pub struct Packing<'s>(&'s Store);

impl Drop for Packing<'_> {
    fn drop(&mut self) {
        self.0.packing.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The free blocks of each class, in the order of their places.
#[derive(Debug)]
pub struct FreePlaces([Vec<BlockId>; Class::COUNT]);

impl FreePlaces {
    fn bytes_below(&self, place: BlockId, class: Class) -> u64 {
        let below = self.0[class.number()].partition_point(|free| *free < place);
        below as u64 * u64::from(class.block_bytes())
    }
}

impl Store {
    /// Sends copies to the lowest free blocks.
    pub fn pack(&self) -> Packing<'_> {
        self.packing.fetch_add(1, Ordering::Relaxed);
        Packing(self)
    }

    /// The class of the lowest free block that copies of this stride may take:
    /// one of the classes up to `suited`. None if copies are not packed, or no
    /// such block is free.
    pub(crate) fn packed_class(&self, allocator: &Allocator, suited: Class, stride: u32) -> Option<Class> {
        if self.packing.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let first = |class: Class| Some((allocator.first(class)?, class));
        let lowest = classes(suited, stride).filter_map(first).min_by_key(|(place, _)| *place);
        lowest.map(|(_, class)| class)
    }

    /// Which blocks are free now.
    pub fn free_places(&self) -> FreePlaces {
        FreePlaces(self.allocator.lock().free_blocks_in_order())
    }

    /// The bytes of free blocks below a block that copies of its contents may
    /// take.
    pub fn free_below(&self, places: &FreePlaces, block: BlockRef) -> u64 {
        let Some((_, found)) = self.alive(block) else { return 0 };
        let (table, stride) = (found.table(), found.stride());
        let bytes = self.allocator.lock().held_bytes_of(class_key(table, stride));
        let suited = Class::for_next(stride, self.options.block_slots, bytes);
        classes(suited, stride).map(|class| places.bytes_below(block.id, class)).sum()
    }
}

/// The classes up to one whose blocks hold contents of this stride.
fn classes(suited: Class, stride: u32) -> impl Iterator<Item = Class> {
    Class::all().filter(move |class| *class <= suited && class.holds(stride))
}
