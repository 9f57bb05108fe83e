//! Space accounting: which bytes are used for what.

use std::collections::BTreeMap;

use pantile_base::{TableId, Timestamp};

use crate::allocator::Allocator;
use crate::block::{Block, BlockRef, BlockState, Chunk};
use crate::geometry::Class;
use crate::hold::Period;
use crate::shape::Shape;
use crate::store::Store;
use crate::stream::StreamFigures;

/// Space by use, in bytes unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Space {
    /// The part of the medium that has been taken in chunks and not handed
    /// back.
    pub medium_bytes: u64,
    /// DRAM of tiles.
    pub tile_bytes: u64,
    /// DRAM of what is known of each block, and of what is about to be written.
    pub block_bytes: u64,
    /// Contents appended since opening, content headers included.
    pub payload_bytes: u64,
    /// Copies of survivors made since opening, content headers included.
    pub copied_bytes: u64,
    /// Number of contents appended since opening.
    pub contents_appended: u64,
    /// Number of blocks that streams append to.
    pub open_blocks: u64,
    /// Number of full blocks.
    pub sealed_blocks: u64,
    /// Number of blocks that are being emptied.
    pub frozen_blocks: u64,
    /// Number of blocks that belong to no table.
    pub free_blocks: u64,
    /// Contents in the blocks that are not free, superseded contents included.
    pub contents_stored: u64,
    /// Their slots.
    pub stored_bytes: u64,
    /// Slots that hold superseded versions or are void.
    pub obsolete_bytes: u64,
    /// Slots of open blocks that are not written yet.
    pub unfilled_bytes: u64,
    /// Blocks that belong to no table, in bytes.
    pub free_block_bytes: u64,
    /// Chunks that are not divided into blocks, and what lies behind the last
    /// block, the reserve included.
    pub free_chunk_bytes: u64,
}

impl Space {
    /// Bytes that no version takes and no block is reserved for.
    pub fn free_bytes(&self) -> u64 {
        self.free_block_bytes + self.free_chunk_bytes
    }
}

/// Space of one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableBlocks {
    /// Its blocks.
    pub blocks: u64,
    /// Number of its blocks that are not full.
    pub open_blocks: u64,
    /// The bytes of its blocks.
    pub bytes: u64,
    /// Number of contents in its blocks.
    pub contents: u64,
    /// Number of those contents that have been superseded or are void.
    pub obsolete: u64,
    /// The bytes of the slots of superseded and void contents.
    pub obsolete_bytes: u64,
}

/// Blocks that are in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateBlocks {
    /// Number of blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the slots of contents that have not been superseded.
    pub live_bytes: u64,
    /// Bytes of the slots of superseded and void contents.
    pub obsolete_bytes: u64,
    /// Bytes of slots that are not written.
    pub unfilled_bytes: u64,
}

/// Where a transaction reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader {
    /// At this timestamp,
    pub at: Timestamp,
    /// and perhaps at any later one.
    pub by_statement: bool,
    /// It may use tables that existed when it began,
    pub began: Timestamp,
    /// and perhaps those that were created after that.
    pub uses_newer_tables: bool,
}

/// A dropped table, for those who may use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DroppedTable {
    /// When it existed.
    pub period: Period,
    /// Bytes of DRAM that are kept with it.
    pub dram: u64,
}

impl DroppedTable {
    /// Whether a transaction may use it (I-37).
    fn is_used_by(&self, reader: &Reader) -> bool {
        let Reader { at, began, uses_newer_tables, .. } = *reader;
        self.period.has(at) || self.period.has(began) || uses_newer_tables && began <= self.period.until
    }
}

/// What one reader keeps from being reclaimed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// By table: the bytes of `bytes`, and their blocks.
    pub tables: BTreeMap<TableId, (u64, u64)>,
    /// Slots of superseded versions, in blocks that it sees into.
    pub bytes: u64,
    /// The part of `bytes` in blocks that no other reader sees into.
    pub bytes_alone: u64,
    /// DRAM of links over blocks that are gone, which it may walk along.
    pub dram: u64,
    /// The part of `dram` that no other reader may walk along.
    pub dram_alone: u64,
    /// Dropped tables are kept for it.
    pub has_dropped: bool,
}

impl Held {
    /// Blocks of `bytes`.
    pub fn blocks(&self) -> u64 {
        self.tables.values().map(|(_, blocks)| blocks).sum()
    }

    fn note(&mut self, table: TableId, bytes: u64, alone: bool) {
        let of_table = self.tables.entry(table).or_default();
        *of_table = (of_table.0 + bytes, of_table.1 + 1);
        self.bytes += bytes;
        self.bytes_alone += if alone { bytes } else { 0 };
    }

    fn note_dram(&mut self, bytes: u64, alone: bool) {
        self.dram += bytes;
        self.dram_alone += if alone { bytes } else { 0 };
    }
}

/// Calls `note` with the number of each reader that `holds` something, and
/// whether it is the only one.
fn note_held(readers: &[Reader], holds: impl Fn(&Reader) -> bool, mut note: impl FnMut(usize, bool)) {
    let mut holders = readers.iter().enumerate().filter(|(_, reader)| holds(reader)).map(|(n, _)| n);
    let Some(first) = holders.next() else { return };
    let mut rest = holders.peekable();
    note(first, rest.peek().is_none());
    rest.for_each(|n| note(n, false));
}

impl Store {
    /// Superseded bytes in the blocks that are held for a process.
    pub fn obsolete_in_held_blocks(&self, hold: u64) -> u64 {
        let held = self.holds.look();
        let _chunks = self.chunks_lock.read();
        let is_held = |chunk: &Chunk, index| held.holds_for(hold, chunk.block_ref(index));
        let blocks = self.used().filter(|(chunk, index, _)| is_held(chunk, *index));
        blocks.map(|(_, _, block)| u64::from(block.map.count()) * u64::from(block.stride())).sum()
    }

    /// The blocks in which everything had been superseded or moved by a time. Who
    /// reads at that time or later needs none of them.
    pub fn dead_blocks(&self, by: Timestamp) -> Vec<BlockRef> {
        let _chunks = self.chunks_lock.read();
        let is_dead = |block: &Block| {
            let is_full = matches!(block.state(), BlockState::Sealed | BlockState::Frozen);
            // The count comes first: times are noted before it (`Block::supersede`).
            let is_empty = is_full && block.map.count() == block.slots();
            is_empty && block.max_ts().max(block.left_at()) <= by.get()
        };
        let dead = self.used().filter(|(_, _, block)| is_dead(block));
        dead.map(|(chunk, index, _)| chunk.block_ref(index)).collect()
    }
}

impl Store {
    /// Adds up the space of each table. Looks at every block.
    pub fn space_by_table(&self) -> BTreeMap<TableId, TableBlocks> {
        let mut tables = BTreeMap::<_, TableBlocks>::new();
        let _chunks = self.chunks_lock.read();
        for (chunk, _, block) in self.used() {
            let stride = u64::from(block.stride());
            let table = tables.entry(block.table()).or_default();
            table.blocks += 1;
            table.open_blocks += u64::from(block.state() == BlockState::Open);
            table.bytes += u64::from(chunk.geometry.block_bytes);
            table.contents += u64::from(block.fill());
            table.obsolete += u64::from(block.map.count());
            table.obsolete_bytes += u64::from(block.map.count()) * stride;
        }
        tables
    }

    /// The blocks of each table by their state, those of no table under `None`. Looks at
    /// every block.
    pub fn space_by_state(&self) -> BTreeMap<(Option<TableId>, BlockState), StateBlocks> {
        let mut states = BTreeMap::<_, StateBlocks>::new();
        let _chunks = self.chunks_lock.read();
        let end = self.allocator.lock().end;
        for chunk in self.all_chunks() {
            for (index, block) in (0..).zip(&chunk.blocks) {
                let state = block.state();
                // There is no space behind those that have never been used.
                if chunk.end_of(index) > end && state == BlockState::Free {
                    continue;
                }
                let is_of_table = matches!(state, BlockState::Open | BlockState::Sealed | BlockState::Frozen);
                let blocks = states.entry((is_of_table.then(|| block.table()), state)).or_default();
                blocks.blocks += 1;
                blocks.bytes += u64::from(chunk.geometry.block_bytes);
                if is_of_table {
                    let (stride, obsolete) = (u64::from(block.stride()), block.map.count());
                    blocks.live_bytes += u64::from(block.fill().saturating_sub(obsolete)) * stride;
                    blocks.obsolete_bytes += u64::from(obsolete) * stride;
                    blocks.unfilled_bytes += u64::from(block.slots().saturating_sub(block.fill())) * stride;
                }
            }
        }
        states
    }

    /// What each reader keeps from being reclaimed, in the order of `readers`, and
    /// the bytes on the medium that any of them keeps. Looks at every block, and at no version: a block counts for a reader if
    /// versions were visible in it where the reader reads. Of dropped tables, all that is in a block counts.
    pub fn held(&self, readers: &[Reader], dropped: &BTreeMap<TableId, DroppedTable>) -> (Vec<Held>, u64) {
        let mut held = vec![Held::default(); readers.len()];
        let mut by_any = 0;
        let _chunks = self.chunks_lock.read();
        for (_, _, block) in self.used() {
            let table = dropped.get(&block.table());
            let slots = if table.is_some() { block.fill() } else { block.map.count() };
            if slots == 0 {
                continue;
            }
            let bytes = u64::from(slots) * u64::from(block.stride());
            let (from, until) = (block.min_ts(), block.max_ts().max(block.left_at()));
            let sees = |reader: &Reader| match table {
                Some(table) => table.is_used_by(reader),
                None => reader.at.get() <= until && (reader.by_statement || from <= reader.at.get()),
            };
            note_held(readers, sees, |n, alone| held[n].note(block.table(), bytes, alone));
            by_any += if readers.iter().any(sees) { bytes } else { 0 };
        }
        self.kept.each(|until, bytes| {
            note_held(readers, |reader| reader.at <= until, |n, alone| held[n].note_dram(bytes, alone));
        });
        for table in dropped.values() {
            note_held(
                readers,
                |r| table.is_used_by(r),
                |n, alone| {
                    held[n].note_dram(table.dram, alone);
                    held[n].has_dropped = true;
                },
            );
        }
        (held, by_any)
    }

    /// The bytes of the blocks that what is alive would take if it were moved
    /// together. Looks at every block.
    pub fn least_bytes(&self) -> u64 {
        let mut alive = BTreeMap::<(TableId, u32), u64>::new();
        let _chunks = self.chunks_lock.read();
        for (_, _, block) in self.used() {
            let count = u64::from(block.fill().saturating_sub(block.map.count()));
            *alive.entry((block.table(), block.stride())).or_default() += count;
        }
        let blocks = alive.into_iter().map(|((_, stride), count)| {
            let bytes = Class::least(stride).map_or(0, Class::block_bytes);
            let slots = Shape::new(stride, self.options.block_slots, bytes).map_or(1, |shape| shape.slots);
            count.div_ceil(u64::from(slots)) * u64::from(bytes)
        });
        blocks.sum()
    }

    /// Number of used blocks that were last appended to before `since`. As time goes on,
    /// they only become fewer. Looks at every block.
    pub fn blocks_before(&self, since: Timestamp) -> usize {
        let _chunks = self.chunks_lock.read();
        self.used().filter(|(_, _, block)| block.last_append() < since.get()).count()
    }

    /// Adds up the space by use. Looks at every block.
    pub fn space(&self) -> Space {
        let mut space = Space::default();
        let large = self.large_streams.iter().zip(&self.large_uses).map(|(stream, last)| {
            let mut last = last.lock();
            // Nobody who looks waits for a large append.
            if let Some(stream) = stream.try_lock() {
                *last = stream.figures();
            }
            *last
        });
        let others = self.streams.iter().map(|stream| stream.lock().figures());
        for StreamFigures { payload_bytes, contents, dram_bytes } in large.chain(others) {
            space.payload_bytes += payload_bytes;
            space.contents_appended += contents;
            space.block_bytes += dram_bytes;
        }
        for stream in &self.survivor_streams {
            let stream = stream.lock();
            space.copied_bytes += stream.payload_bytes;
            space.block_bytes += stream.bytes();
        }
        let _chunks = self.chunks_lock.read();
        let end = self.allocator.lock().end;
        for chunk in self.all_chunks() {
            space.block_bytes += size_of_val(chunk) as u64 + size_of_val(&*chunk.blocks) as u64;
            for (index, block) in (0..).zip(&chunk.blocks) {
                // There is no space behind those that have never been used.
                if chunk.end_of(index) > end && block.state() == BlockState::Free {
                    continue;
                }
                let stride = u64::from(block.stride());
                if !block.state().is_used() {
                    space.free_block_bytes += u64::from(chunk.geometry.block_bytes);
                } else {
                    space.contents_stored += u64::from(block.fill());
                    space.stored_bytes += u64::from(block.fill()) * stride;
                    space.obsolete_bytes += u64::from(block.map.count()) * stride;
                    space.unfilled_bytes += u64::from(block.slots().saturating_sub(block.fill())) * stride;
                }
                match block.state() {
                    BlockState::Open => space.open_blocks += 1,
                    BlockState::Sealed => space.sealed_blocks += 1,
                    BlockState::Frozen => space.frozen_blocks += 1,
                    BlockState::Free | BlockState::Released => space.free_blocks += 1,
                    BlockState::Record => {}
                }
                space.tile_bytes += block.tile.bytes();
            }
        }
        space.tile_bytes += self.kept.bytes();
        let allocator = self.allocator.lock();
        let len = self.medium.len();
        let end = allocator.end.min(len);
        let handed_back = |from| Allocator::bytes_between(&allocator.discarded, from, len);
        space.medium_bytes = len - handed_back(0);
        // All that lies behind the last block is free, chunks included.
        let between = Allocator::bytes_between(&allocator.free_chunks, 0, end);
        space.free_chunk_bytes = between + (len - end) - handed_back(end);
        space
    }
}
