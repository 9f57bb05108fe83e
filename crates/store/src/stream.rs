//! Streams: what is being appended, and the open blocks that it goes to.
//!
//! A stream holds one open block per table and size class.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::{Address, TableId, Timestamp, TupleId};

use crate::block::BlockId;
use crate::content::{Content, ContentFlags};
use crate::free_slot::FreeSlot;

/// A content to append.
#[derive(Clone, Copy, Debug)]
pub struct NewContent<'a> {
    /// Its table.
    pub table: TableId,
    /// The tuple that it is a version of.
    pub tuple: TupleId,
    /// What it is.
    pub flags: ContentFlags,
    /// Whether it is the tuple's first version or a later one.
    pub age: Age,
    /// The transaction that writes or wrote it.
    pub timestamp: Timestamp,
    /// How many contents that transaction writes or wrote.
    pub transaction_contents: u64,
    /// The row.
    pub row: &'a [u8],
}

impl<'a> NewContent<'a> {
    /// A copy of a content of this table.
    #[inline]
    pub(crate) fn copy_of(table: TableId, content: &Content<'a>, flags: ContentFlags) -> Self {
        Self {
            table,
            tuple: content.tuple(),
            flags,
            age: Age::Later,
            timestamp: content.timestamp(),
            transaction_contents: content.transaction_contents(),
            row: content.row(),
        }
    }
}

/// Versions that are likely to die together go to blocks of their own (T23).
/// Otherwise a row that is written twice, like an order line that is delivered,
/// would keep its old and its new version in one block forever.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Age {
    /// The first version of a tuple.
    First,
    /// A version that has superseded another.
    Later,
}

/// The kind of caller that appends. It matters when little space is left (T14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// A writer.
    Write,
    /// A transaction that only deletes.
    Delete,
    /// A collector.
    Collect,
}

/// The blocks that one stream appends to.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    by_key: HashMap<(u64, Age), usize, FixedState>,
    pub lanes: Vec<Lane>,
    /// The lane of each content of the append in progress.
    pub plan: Vec<u32>,
    pub payload_bytes: u64,
    pub contents: u64,
}

/// A lane: the contents of one table and size class.
#[derive(Debug)]
pub(crate) struct Lane {
    pub table: TableId,
    pub stride: u32,
    pub age: Age,
    pub open: Option<OpenBlock>,
    /// What the append in progress fills after `open`, in reverse order.
    pub spare: Vec<Spare>,
    /// Slots that the append in progress needs.
    pub wanted: u32,
    /// Number of checks for idle lanes since the last append.
    pub idle: u32,
    pub staging: Vec<u8>,
}

/// Bytes of a lane's entry in the map of lanes.
const LANE_ENTRY: usize = size_of::<((u64, Age), usize)>() + 1;

/// What a lane continues with when its open block is full.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spare {
    Block(BlockId),
    Slot(FreeSlot),
}

/// Which contents may share blocks with those of an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    /// All contents of the same table and size class.
    Any,
    /// Only contents that were appended in the same way.
    Alone,
}

#[derive(Debug)]
pub(crate) struct OpenBlock {
    pub id: BlockId,
    pub first: Address,
    pub seed: u64,
    pub next: u32,
    pub slots: u32,
    /// The first slot that is staged and not yet on the medium.
    pub staged_from: u32,
    /// The first and last `begin_ts` of what is staged.
    pub staged_begins: (u64, u64),
}

/// The `begin_ts` range of no version.
pub(crate) const NO_BEGINS: (u64, u64) = (u64::MAX, 0);

/// Bytes that a lane keeps for what it will stage.
pub(crate) const STAGING_KEPT: usize = 64 << 10;

/// Contents for which a stream keeps the memory of a plan.
pub(crate) const PLAN_KEPT: usize = 16 << 10;

/// Identifies a size class of a table.
pub(crate) fn class_key(table: TableId, stride: u32) -> u64 {
    (u64::from(table.0) << 32) | u64::from(stride)
}

impl Stream {
    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        let lane = |lane: &Lane| lane.staging.capacity() + lane.spare.capacity() * size_of::<Spare>();
        let plan = self.plan.capacity() * size_of::<u32>();
        let lanes = self.lanes.capacity() * size_of::<Lane>() + self.by_key.capacity() * LANE_ENTRY;
        (plan + lanes + self.lanes.iter().map(lane).sum::<usize>()) as u64
    }

    #[inline]
    pub fn lane(&mut self, table: TableId, stride: u32, age: Age) -> usize {
        let lanes = &mut self.lanes;
        *self.by_key.entry((class_key(table, stride), age)).or_insert_with(|| {
            lanes.push(Lane {
                table,
                stride,
                age,
                open: None,
                spare: Vec::new(),
                wanted: 0,
                idle: 0,
                staging: Vec::new(),
            });
            lanes.len() - 1
        })
    }

    pub fn partly_filled(&self) -> Vec<(BlockId, u32)> {
        let open = self.lanes.iter().filter_map(|lane| lane.open.as_ref());
        open.map(|b| (b.id, b.next)).collect()
    }

    /// Takes the blocks of lanes that have been idle for some rounds.
    pub fn take_idle(&mut self, rounds: u32) -> Vec<(u64, BlockId)> {
        let mut idle = Vec::new();
        for lane in self.lanes.iter_mut().filter(|lane| lane.open.is_some()) {
            lane.idle += 1;
            if lane.idle > rounds {
                let class = lane.class();
                idle.extend(lane.open.take().map(|open| (class, open.id)));
            }
        }
        idle
    }

    /// Stops appending to a table's blocks. Returns those that were open.
    pub fn forget(&mut self, table: TableId) -> Vec<BlockId> {
        let lanes = std::mem::take(&mut self.lanes);
        self.by_key.clear();
        let mut open = Vec::new();
        for lane in lanes {
            if lane.table == table {
                open.extend(lane.open.map(|block| block.id));
                continue;
            }
            self.by_key.insert((lane.class(), lane.age), self.lanes.len());
            self.lanes.push(lane);
        }
        open
    }
}

impl Lane {
    pub fn class(&self) -> u64 {
        class_key(self.table, self.stride)
    }

    pub fn room(&self) -> u32 {
        self.open.as_ref().map_or(0, |b| b.slots - b.next)
    }
}
