//! The state in DRAM after recovery, slot by slot, for callers that compare it
//! with the contents.

use std::ops::ControlFlow;

use pantile_base::share_out;
use pantile_base::sync::atomic::{AtomicU32, Ordering};

use pantile_base::limits::CHUNK_BYTES;
use pantile_base::{Address, TableId};

use crate::content::Content;
use crate::store::Store;
use crate::survey::finding::MediumLocation;

/// A filled slot of a block that is in use.
#[derive(Clone, Copy, Debug)]
pub struct FilledSlot<'a> {
    /// The table of its block.
    pub table: TableId,
    /// Its address.
    pub address: Address,
    /// The content; it may be void.
    pub content: Content<'a>,
    /// Whether the store counts its version as superseded.
    pub is_superseded: bool,
}

impl Store {
    /// The place of an address that came from an anchor.
    pub fn place_of(&self, address: Address) -> MediumLocation {
        let (chunk, index, block, slot) = self.locate(address);
        MediumLocation {
            offset: address.offset(),
            chunk: Some(chunk.number),
            block: Some(index),
            slot: Some(slot),
            table: Some(block.table().0),
            tuple: None,
        }
    }

    /// Shows every filled slot, from several threads, until `progress` returns `Break`. No thread may be writing.
    pub fn for_each_slot(
        &self,
        threads: usize,
        look: &(dyn Fn(FilledSlot<'_>) + Sync),
        progress: &(dyn Fn(u64, u64) -> ControlFlow<()> + Sync),
    ) {
        let end = self.chunks_on_medium();
        let next = AtomicU32::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return;
                }
                self.slots_of_chunk(number, look);
                if progress(u64::from(number) * CHUNK_BYTES, self.medium.len()).is_break() {
                    next.store(end, Ordering::Relaxed);
                }
            }
        };
        share_out(threads, |_| work());
    }

    fn slots_of_chunk(&self, number: u32, look: &(dyn Fn(FilledSlot<'_>) + Sync)) {
        let Some(chunk) = self.chunk(number) else { return };
        for (index, block) in (0..).zip(&chunk.blocks) {
            if !block.state().is_used() {
                continue;
            }
            for slot in 0..block.fill() {
                let address = chunk.address(index, slot);
                look(FilledSlot {
                    table: block.table(),
                    address,
                    content: self.content(address),
                    is_superseded: block.map.next_set(slot, slot + 1).is_some(),
                });
            }
        }
    }
}
