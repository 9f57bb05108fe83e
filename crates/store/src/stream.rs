//! Streams: the open blocks that an append goes to, and what it appends.
//!
//! A stream holds one open block per lane. Each table and size class has a lane for first versions,
//! and one for later versions. Large tables divide the latter by how long the versions are expected
//! to live.

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
    /// Which of the table's layouts the row has.
    pub layout: u8,
    /// Since when the version before it was there, or, if it is a copy, since
    /// when it is itself. It is expected to live as long again. `None` if it is
    /// the first version of its tuple, of which nothing is known.
    pub since: Option<Timestamp>,
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
            layout: content.layout(),
            since: Some(content.timestamp()),
            timestamp: content.timestamp(),
            transaction_contents: content.transaction_contents(),
            row: content.row(),
        }
    }
}

/// Versions that are likely to die together go to blocks of their own (T23).
/// Otherwise a row that is written twice, like an order line that is delivered,
/// would keep its old and its new version in one block forever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Life {
    /// Less than an eighth of a typical life, or nobody knows what is typical.
    Short,
    /// Less than a typical life.
    Middle,
    /// Longer.
    Long,
    /// It is the first version of a tuple: nothing is known.
    Unknown,
}

impl Life {
    const COUNT: usize = 4;
    /// Those of later versions. Small tables have one lane for all of them.
    pub(crate) const LATER: [Self; 3] = [Self::Short, Self::Middle, Self::Long];

    /// What is expected of a version after this many ticks.
    #[inline]
    pub(crate) fn after(ticks: u64, typical: u64) -> Self {
        if ticks >= typical {
            Self::Long
        } else if ticks >= typical / 8 {
            Self::Middle
        } else {
            Self::Short
        }
    }
}

/// The kind of caller that appends. It matters when little space is left (T14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// A writer.
    Write,
    /// A transaction that only deletes.
    Delete,
    /// A transaction for which space was promised ([`Store::promise`](crate::Store::promise)).
    Promised,
    /// A collector.
    Collect,
}

/// The blocks that one stream appends to.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    by_class: HashMap<u64, Lanes, FixedState>,
    pub lanes: Vec<Lane>,
    /// The lane of each content of the append in progress.
    pub plan: Vec<u32>,
    pub payload_bytes: u64,
    pub contents: u64,
}

/// The lanes of a table and size class, by the lives of versions.
type Lanes = [Option<u32>; Life::COUNT];

/// A lane: the contents of one table and size class that are expected to live
/// about as long as each other.
#[derive(Debug)]
pub(crate) struct Lane {
    pub table: TableId,
    pub stride: u32,
    /// Of what it was made for. It has other lives as well unless the class is large.
    pub life: Life,
    /// Whether the blocks of the class are many enough for a lane for each life.
    pub is_large: bool,
    pub open: Option<OpenBlock>,
    /// What the append in progress fills after `open`, in reverse order.
    pub spare: Vec<Spare>,
    /// Slots that the append in progress needs.
    pub wanted: u32,
    /// Number of checks for idle lanes since the last append.
    pub idle: u32,
    pub staging: Vec<u8>,
}

/// Bytes of an entry in the map of lanes.
const LANES_ENTRY: usize = size_of::<(u64, Lanes)>() + 1;

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

/// What a stream has appended and takes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamFigures {
    pub payload_bytes: u64,
    pub contents: u64,
    pub dram_bytes: u64,
}

impl Stream {
    pub fn figures(&self) -> StreamFigures {
        let Self { payload_bytes, contents, .. } = *self;
        StreamFigures { payload_bytes, contents, dram_bytes: self.bytes() }
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        let lane = |lane: &Lane| lane.staging.capacity() + lane.spare.capacity() * size_of::<Spare>();
        let plan = self.plan.capacity() * size_of::<u32>();
        let lanes = self.lanes.capacity() * size_of::<Lane>() + self.by_class.capacity() * LANES_ENTRY;
        (plan + lanes + self.lanes.iter().map(lane).sum::<usize>()) as u64
    }

    #[inline]
    pub fn lane(&mut self, table: TableId, stride: u32, life: Life) -> usize {
        let lanes = self.by_class.entry(class_key(table, stride)).or_default();
        match lanes[life as usize] {
            Some(lane) => lane as usize,
            None => add_lane(&mut self.lanes, lanes, (table, stride, life)),
        }
    }

    /// Gives each life a lane of its own if a lane's class has become large, and
    /// one lane to all later versions if it is small again.
    #[cold]
    pub fn divide(&mut self, lane: usize) {
        let Lane { is_large, .. } = self.lanes[lane];
        let Some(lanes) = self.by_class.get_mut(&self.lanes[lane].class()) else { return };
        let of_later = Life::LATER.map(|life| lanes[life as usize]);
        let shared = of_later.iter().filter(|of| **of == Some(lane as u32)).count();
        if is_large && shared > 1 {
            // The others get theirs when they are needed.
            Life::LATER[1..].iter().for_each(|&life| lanes[life as usize] = None);
        } else if !is_large && (1..3).contains(&shared) {
            Life::LATER.iter().for_each(|&life| lanes[life as usize] = Some(lane as u32));
        }
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
                // There may be thousands of tables.
                lane.staging = Vec::new();
                let class = lane.class();
                idle.extend(lane.open.take().map(|open| (class, open.id)));
            }
        }
        idle
    }

    /// Takes a partly filled block of a class.
    pub fn take_open(&mut self, class: u64) -> Option<BlockId> {
        let lanes = *self.by_class.get(&class)?;
        lanes.into_iter().flatten().find_map(|lane| self.lanes[lane as usize].open.take()).map(|open| open.id)
    }

    /// Stops appending to a table's blocks. Returns those that were open.
    pub fn forget(&mut self, table: TableId) -> Vec<BlockId> {
        let mut places = Vec::with_capacity(self.lanes.len());
        let mut open = Vec::new();
        for lane in std::mem::take(&mut self.lanes) {
            if lane.table == table {
                open.extend(lane.open.map(|block| block.id));
                places.push(None);
            } else {
                places.push(Some(self.lanes.len() as u32));
                self.lanes.push(lane);
            }
        }
        self.by_class.retain(|_, lanes| {
            lanes.iter_mut().for_each(|lane| *lane = lane.and_then(|lane| places[lane as usize]));
            lanes.iter().any(Option::is_some)
        });
        open
    }
}

/// Finds or makes the lane for a life that has none.
#[cold]
fn add_lane(all: &mut Vec<Lane>, lanes: &mut Lanes, (table, stride, life): (TableId, u32, Life)) -> usize {
    let later = Life::LATER.iter().find_map(|&life| lanes[life as usize]);
    let shared = later.filter(|&lane| life != Life::Unknown && !all[lane as usize].is_large);
    // One that a class has left behind when it became small is taken again.
    let is_free = |n: u32| all[n as usize].class() == class_key(table, stride) && !lanes.contains(&Some(n));
    let left = || (0..all.len() as u32).find(|&n| is_free(n));
    let lane = match shared.or_else(|| later.and_then(|_| left())) {
        Some(lane) => lane,
        None => {
            all.push(Lane::new(table, stride, life));
            all.len() as u32 - 1
        }
    };
    if shared.is_none() {
        let lane = &mut all[lane as usize];
        (lane.life, lane.is_large) = (life, later.is_some());
    }
    lanes[life as usize] = Some(lane);
    lane as usize
}

impl Lane {
    fn new(table: TableId, stride: u32, life: Life) -> Self {
        Self {
            table,
            stride,
            life,
            is_large: false,
            open: None,
            spare: Vec::new(),
            wanted: 0,
            idle: 0,
            staging: Vec::new(),
        }
    }

    pub fn class(&self) -> u64 {
        class_key(self.table, self.stride)
    }

    pub fn room(&self) -> u32 {
        self.open.as_ref().map_or(0, |b| b.slots - b.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: TableId = TableId(7);
    const LIVES: [Life; 4] = [Life::Short, Life::Middle, Life::Long, Life::Unknown];

    fn lanes(stream: &mut Stream) -> [usize; 4] {
        LIVES.map(|life| stream.lane(T, 128, life))
    }

    #[test]
    fn lives_are_judged_by_the_typical_one() {
        let life = |ticks| Life::after(ticks, 800);
        assert_eq!([99, 100, 799, 800].map(life), [Life::Short, Life::Middle, Life::Middle, Life::Long]);
        assert_eq!(Life::after(u64::MAX / 16, u64::MAX), Life::Short, "nothing is known yet");
    }

    #[test]
    fn only_large_tables_divide_their_later_versions() {
        let mut stream = Stream::default();
        let [short, middle, long, first] = lanes(&mut stream);
        assert_eq!([middle, long], [short; 2]);
        assert_ne!(first, short);
        stream.divide(short);
        assert_eq!(lanes(&mut stream), [short, short, short, first], "it is small");
        stream.lanes[short].is_large = true;
        stream.divide(short);
        let [again, middle, long, unknown] = lanes(&mut stream);
        assert_eq!((again, unknown), (short, first));
        assert!(middle != long && ![short, first].contains(&middle) && ![short, first].contains(&long));
        // First versions decide nothing.
        stream.lanes[first].is_large = false;
        stream.divide(first);
        assert_eq!(lanes(&mut stream), [short, middle, long, first]);
        stream.lanes[long].is_large = false;
        stream.divide(long);
        assert_eq!(lanes(&mut stream), [long, long, long, first], "it has become small");
        let made = stream.lanes.len();
        stream.lanes[long].is_large = true;
        stream.divide(long);
        let [_, middle, other, _] = lanes(&mut stream);
        assert!(middle != other && stream.lanes.len() == made, "lanes that are there are used again");
    }

    #[test]
    fn a_forgotten_table_leaves_the_lanes_of_others() {
        let mut stream = Stream::default();
        lanes(&mut stream);
        let other = stream.lane(TableId(8), 64, Life::Long);
        assert!(stream.forget(T).is_empty());
        let left = stream.lane(TableId(8), 64, Life::Long);
        assert_eq!((stream.lanes.len(), stream.lanes[left].table), (1, TableId(8)));
        assert_ne!(left, other);
    }
}
