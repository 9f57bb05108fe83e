//! What a serializable writer has read, in case it has to move to a later
//! timestamp and read it again.
//!
//! A list that is full loses its repetitions before it grows. So it takes memory by
//! what has been read, and not by how often.

use std::cell::{Cell, Ref, RefCell};
use std::cmp::Ordering;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use pantile_base::{TableId, TupleId};
use pantile_index::{Direction, Scan as Cursor};
use smallvec::SmallVec;

use crate::engine::stale::StaleEntry;
use crate::engine::table::PRIMARY;

/// Words of a key.
type Words = SmallVec<[u64; 4]>;

/// A tuple whose visible version was a row, or that was looked at under its lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Point {
    pub table: TableId,
    pub tuple: TupleId,
}

/// A range of an index that has been read. What was in it is not noted: all that a
/// transaction reads is as of one timestamp, so ranges may be united.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RangeRead {
    pub table: TableId,
    /// The number of the index.
    pub index: u32,
    lower: Bound<Words>,
    upper: Bound<Words>,
}

/// The place of a scan's range in a [`ReadSet`], until ranges are united there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeNote {
    at: usize,
    unions: u64,
}

/// What a [`ReadSet`] lacks room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    Points,
    Ranges,
}

/// Everything that the transaction has read. It is filled through shared
/// references, as rows are.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    points: RefCell<Vec<Point>>,
    ranges: RefCell<Vec<RangeRead>>,
    /// Bytes of the keys that are too long to lie in the list of ranges, and how many
    /// there may be until it counts as full.
    key_bytes: Cell<usize>,
    key_room: Cell<usize>,
    /// The bytes when they were last counted, and whether that was apart from the
    /// other buffers of the transaction.
    counted: Cell<usize>,
    is_apart: Cell<bool>,
    /// How often ranges have been united or forgotten, which moves them.
    unions: Cell<u64>,
}

/// Points from which on repetitions are taken out before the list grows.
const COMPACTED_FROM: usize = 1 << 12;

/// The same for ranges, which are larger.
const UNITED_FROM: usize = 1 << 8;

/// A list that is not empty has room for this many at least.
const LEAST: usize = 16;

/// Once there are long keys, there is room for this many bytes of them at least.
const LEAST_KEYS: usize = 64 << 10;

impl RangeRead {
    fn new(table: TableId, index: u32, lower: Bound<&[u64]>, upper: Bound<&[u64]>) -> Self {
        Self { table, index, lower: lower.map(Words::from_slice), upper: upper.map(Words::from_slice) }
    }

    /// A cursor over it.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(as_slice(&self.lower), as_slice(&self.upper), Direction::Forward)
    }

    fn key_bytes(&self) -> usize {
        let of = |bound: &Bound<Words>| match bound {
            Included(key) | Excluded(key) if key.spilled() => size_of_val(&key[..]),
            _ => 0,
        };
        of(&self.lower) + of(&self.upper)
    }

    /// By index and beginning.
    fn order(&self, other: &Self) -> Ordering {
        let place = |range: &Self| (range.table, range.index);
        place(self).cmp(&place(other)).then_with(|| {
            let (lower, other) = (place_of(&self.lower), place_of(&other.lower));
            match (lower, other) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                (Some((a, included)), Some((b, other))) => a.cmp(b).then(other.cmp(&included)),
            }
        })
    }

    /// Whether nothing can be in it.
    fn is_empty(&self) -> bool {
        match (place_of(&self.lower), place_of(&self.upper)) {
            (Some((lower, included)), Some((upper, also))) => match lower.cmp(upper) {
                Ordering::Less => false,
                Ordering::Equal => !(included && also),
                Ordering::Greater => true,
            },
            _ => false,
        }
    }

    /// Takes in a range that begins in it or right behind it, and not before it. Of
    /// what lies between two ranges nothing has been read.
    fn take_in(&mut self, next: &mut Self) -> bool {
        let reaches = match (place_of(&self.upper), place_of(&next.lower)) {
            (Some((upper, included)), Some((lower, also))) => match upper.cmp(lower) {
                Ordering::Less => false,
                Ordering::Equal => included || also,
                Ordering::Greater => true,
            },
            _ => true,
        };
        let is_one = (self.table, self.index) == (next.table, next.index) && reaches;
        if is_one && self.ends_before(next) {
            std::mem::swap(&mut self.upper, &mut next.upper);
        }
        is_one
    }

    fn ends_before(&self, other: &Self) -> bool {
        match (place_of(&self.upper), place_of(&other.upper)) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(own), Some(other)) => own < other,
        }
    }
}

/// A bound's key, and whether that belongs to the range.
fn place_of(bound: &Bound<Words>) -> Option<(&[u64], bool)> {
    match bound {
        Included(key) => Some((key, true)),
        Excluded(key) => Some((key, false)),
        Unbounded => None,
    }
}

fn as_slice(bound: &Bound<Words>) -> Bound<&[u64]> {
    bound.as_ref().map(|words| &words[..])
}

/// Where a range ends for one who comes from the other side.
fn until(bound: Bound<&[u64]>) -> Bound<&[u64]> {
    match bound {
        Included(key) => Excluded(key),
        Excluded(key) => Included(key),
        Unbounded => Unbounded,
    }
}

impl ReadSet {
    /// Notes a tuple. `false` if there is no room, and it has not.
    #[inline]
    #[must_use]
    pub fn try_note(&self, table: TableId, tuple: TupleId) -> bool {
        let mut points = self.points.borrow_mut();
        let has_room = points.len() < points.capacity();
        if has_room {
            points.push(Point { table, tuple });
        }
        has_room
    }

    /// Notes a tuple, and takes the memory that it needs.
    pub fn note(&self, table: TableId, tuple: TupleId) {
        if !self.try_note(table, tuple) {
            if self.compact(Full::Points) {
                self.grow(Full::Points);
            }
            let noted = self.try_note(table, tuple);
            debug_assert!(noted, "there is room");
        }
    }

    /// Whether a range can be noted without more memory.
    #[inline]
    pub fn has_room_for_range(&self) -> bool {
        let ranges = self.ranges.borrow();
        ranges.len() < ranges.capacity() && self.key_bytes.get() <= self.key_room.get()
    }

    /// Notes that no row had a primary key.
    pub fn note_absent(&self, table: TableId, key: &[u64]) {
        self.note_range(RangeRead::new(table, PRIMARY, Included(key), Included(key)));
    }

    /// Notes what the insertion of an entry that is taken back has told: no other
    /// row had its key.
    pub fn note_free(&self, entry: &StaleEntry) {
        match entry.key.split_last() {
            Some((_, key)) if entry.index != PRIMARY => {
                // Entries of this key with any tuple.
                let last: Words = key.iter().copied().chain([u64::MAX]).collect();
                self.note_range(RangeRead::new(entry.table, entry.index, Included(key), Included(&last)));
            }
            _ => self.note_absent(entry.table, &entry.key),
        }
    }

    /// Takes each range for the whole of its index. So there are as many as indexes, and what has been read is read.
    #[cold]
    pub fn widen(&self) {
        for range in self.ranges.borrow_mut().iter_mut() {
            (range.lower, range.upper) = (Unbounded, Unbounded);
        }
        self.unite();
    }

    /// Returns where it is.
    fn note_range(&self, range: RangeRead) -> usize {
        if !self.has_room_for_range() && self.compact(Full::Ranges) {
            self.grow(Full::Ranges);
        }
        self.key_bytes.set(self.key_bytes.get() + range.key_bytes());
        let mut ranges = self.ranges.borrow_mut();
        ranges.push(range);
        ranges.len() - 1
    }

    /// Notes that a scan reads on: the whole rest of its range, until
    /// [`ReadSet::note_progress`] says how much of it that was. `note` is what the last
    /// call for this scan has returned. Once ranges have been united, the rest is a
    /// range of its own.
    #[inline]
    pub fn note_scan(&self, note: Option<RangeNote>, table: TableId, index: u32, scan: &Cursor) -> RangeNote {
        match note.filter(|note| note.unions == self.unions.get()) {
            Some(note) => note,
            None => {
                let at = self.note_range(RangeRead::new(table, index, scan.lower(), scan.upper()));
                RangeNote { at, unions: self.unions.get() }
            }
        }
    }

    /// The scan has read what its cursor has left behind.
    pub fn note_progress(&self, note: RangeNote, scan: &Cursor) {
        debug_assert_eq!(note.unions, self.unions.get(), "the range is where it was");
        let (lower, upper) = (scan.lower(), scan.upper());
        let range = &mut self.ranges.borrow_mut()[note.at];
        let before = range.key_bytes();
        match (scan.direction(), scan.is_finished()) {
            (Direction::Forward, false) => range.upper = until(lower).map(Words::from_slice),
            (Direction::Forward, true) => range.upper = upper.map(Words::from_slice),
            (Direction::Backward, false) => range.lower = until(upper).map(Words::from_slice),
            (Direction::Backward, true) => range.lower = lower.map(Words::from_slice),
        }
        self.key_bytes.set(self.key_bytes.get() - before + range.key_bytes());
    }

    /// The ranges that have been read, without overlaps.
    pub fn ranges(&self) -> Ref<'_, [RangeRead]> {
        self.unite();
        Ref::map(self.ranges.borrow(), Vec::as_slice)
    }

    /// Changes if it takes more memory.
    #[inline]
    pub fn capacities(&mut self) -> usize {
        let lists = self.points.get_mut().capacity() + self.ranges.get_mut().capacity();
        lists + self.key_room.get()
    }

    /// What it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let (points, ranges) = (self.points.borrow().capacity(), self.ranges.borrow().capacity());
        points * size_of::<Point>() + ranges * size_of::<RangeRead>() + self.key_bytes.get()
    }

    /// The same, counted with all buffers of the transaction.
    pub fn count(&self) -> usize {
        self.is_apart.set(false);
        self.counted.set(self.bytes());
        self.counted.get()
    }

    /// How many bytes it takes more than when they were last counted.
    pub fn count_growth(&self) -> isize {
        let bytes = self.bytes();
        let growth = bytes as isize - self.counted.replace(bytes) as isize;
        // A list that was only made shorter in its place need not be counted with all others.
        if growth != 0 {
            self.is_apart.set(true);
        }
        growth
    }

    /// Whether all buffers have to be counted again.
    #[inline]
    pub fn is_counted_apart(&self) -> bool {
        self.is_apart.get()
    }

    /// Whether nothing has been noted.
    pub fn is_empty(&self) -> bool {
        self.points.borrow().is_empty() && self.ranges.borrow().is_empty()
    }

    pub fn clear(&mut self) {
        self.points.get_mut().clear();
        self.ranges.get_mut().clear();
        self.key_bytes.set(0);
        self.key_room.set(self.key_room.get().min(LEAST_KEYS));
        self.unions.set(self.unions.get() + 1);
    }

    /// The points, without repetitions, by table and tuple.
    pub fn points(&self) -> Ref<'_, [Point]> {
        drop_repeated(&mut self.points.borrow_mut());
        Ref::map(self.points.borrow(), Vec::as_slice)
    }

    /// Takes out repetitions if that helps. Returns whether more than half of the room
    /// is still taken: then it must grow, or this would have to be done again soon.
    #[cold]
    pub fn compact(&self, full: Full) -> bool {
        match full {
            Full::Points => {
                let mut points = self.points.borrow_mut();
                if points.len() >= COMPACTED_FROM {
                    drop_repeated(&mut points);
                }
                is_half_full(&points)
            }
            Full::Ranges => {
                if self.ranges.borrow().len() >= UNITED_FROM {
                    self.unite();
                }
                is_half_full(&self.ranges.borrow()) || self.are_keys_half_full()
            }
        }
    }

    /// Doubles what more than half is taken of.
    #[cold]
    pub fn grow(&self, full: Full) {
        match full {
            Full::Points => double(&mut self.points.borrow_mut()),
            Full::Ranges => {
                double(&mut self.ranges.borrow_mut());
                if self.are_keys_half_full() {
                    self.key_room.set((2 * self.key_bytes.get()).max(LEAST_KEYS));
                }
            }
        }
    }

    fn are_keys_half_full(&self) -> bool {
        self.key_bytes.get() > self.key_room.get() / 2
    }

    fn unite(&self) {
        let mut ranges = self.ranges.borrow_mut();
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by(RangeRead::order);
        ranges.dedup_by(|next, kept| kept.take_in(next));
        self.key_bytes.set(ranges.iter().map(RangeRead::key_bytes).sum());
        self.unions.set(self.unions.get() + 1);
    }
}

fn is_half_full<T>(list: &Vec<T>) -> bool {
    list.len() > list.capacity() / 2 || list.capacity() == 0
}

fn double<T>(list: &mut Vec<T>) {
    if is_half_full(list) {
        list.reserve(list.len().max(LEAST));
    }
}

fn drop_repeated(points: &mut Vec<Point>) {
    points.sort_unstable();
    points.dedup();
}

#[cfg(test)]
#[path = "read_set_test.rs"]
mod tests;
