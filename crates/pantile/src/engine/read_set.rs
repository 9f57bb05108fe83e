//! What a serializable writer has read, in case it has to move to a later
//! timestamp and read it again.

use std::cell::{Ref, RefCell};
use std::ops::Bound;

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

/// A range of an index that is being read, from one end to the other.
#[derive(Clone, Debug)]
pub(crate) struct RangeRead {
    pub table: TableId,
    /// The number of the index.
    pub index: u32,
    direction: Direction,
    from: Bound<Words>,
    to: Bound<Words>,
    /// How far it has been read; `None` if nothing has.
    read_to: Option<Bound<Words>>,
}

/// The place of a range in a [`ReadSet`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeNote(usize);

/// Everything that the transaction has read. It is filled through shared
/// references, as rows are.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    points: RefCell<Vec<Point>>,
    ranges: RefCell<Vec<RangeRead>>,
}

/// Points from which on repetitions are taken out before the list grows.
const COMPACTED_FROM: usize = 1 << 12;

impl RangeRead {
    /// A cursor over what has been read of it.
    pub fn cursor(&self) -> Option<Cursor> {
        let (from, to) = (as_slice(&self.from), as_slice(self.read_to.as_ref()?));
        let (lower, upper) = in_order(self.direction, from, to);
        Some(Cursor::new(lower, upper, Direction::Forward))
    }
}

/// The near and the far end of a scan as the lower and the upper one, or the
/// other way round.
fn in_order<T>(direction: Direction, near: T, far: T) -> (T, T) {
    match direction {
        Direction::Forward => (near, far),
        Direction::Backward => (far, near),
    }
}

fn as_slice(bound: &Bound<Words>) -> Bound<&[u64]> {
    bound.as_ref().map(|words| &words[..])
}

fn to_words(bound: Bound<&[u64]>) -> Bound<Words> {
    bound.map(Words::from_slice)
}

/// Where a range ends for one who comes from the other side.
fn until(bound: Bound<&[u64]>) -> Bound<&[u64]> {
    match bound {
        Bound::Included(key) => Bound::Excluded(key),
        Bound::Excluded(key) => Bound::Included(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl ReadSet {
    /// Notes a tuple.
    #[inline]
    pub fn note(&self, table: TableId, tuple: TupleId) {
        let mut points = self.points.borrow_mut();
        if points.len() == points.capacity() {
            make_room(&mut points);
        }
        points.push(Point { table, tuple });
    }

    /// Notes that no row had a primary key.
    pub fn note_absent(&self, table: TableId, key: &[u64]) {
        self.note_range(table, PRIMARY, key, key);
    }

    /// Notes what the insertion of an entry that is taken back has told: no other
    /// row had its key.
    pub fn note_free(&self, entry: &StaleEntry) {
        match entry.key.split_last() {
            Some((_, key)) if entry.index != PRIMARY => {
                // Entries of this key with any tuple.
                let last: Words = key.iter().copied().chain([u64::MAX]).collect();
                self.note_range(entry.table, entry.index, key, &last);
            }
            _ => self.note_absent(entry.table, &entry.key),
        }
    }

    fn note_range(&self, table: TableId, index: u32, first: &[u64], last: &[u64]) {
        let last = Bound::Included(Words::from_slice(last));
        self.ranges.borrow_mut().push(RangeRead {
            table,
            index,
            direction: Direction::Forward,
            from: Bound::Included(Words::from_slice(first)),
            to: last.clone(),
            read_to: Some(last),
        });
    }

    /// Notes a scan that has read nothing yet.
    pub fn note_scan(&self, table: TableId, index: u32, cursor: &Cursor) -> RangeNote {
        let mut ranges = self.ranges.borrow_mut();
        let direction = cursor.direction();
        let (from, to) = in_order(direction, to_words(cursor.lower()), to_words(cursor.upper()));
        ranges.push(RangeRead { table, index, direction, from, to, read_to: None });
        RangeNote(ranges.len() - 1)
    }

    /// The scan has read what `cursor` has left behind.
    pub fn note_progress(&self, note: RangeNote, cursor: &Cursor) {
        let range = &mut self.ranges.borrow_mut()[note.0];
        let (near, _) = in_order(range.direction, cursor.lower(), cursor.upper());
        range.read_to = Some(if cursor.is_finished() { range.to.clone() } else { to_words(until(near)) });
    }

    /// The ranges that have been read.
    pub fn ranges(&self) -> Ref<'_, [RangeRead]> {
        Ref::map(self.ranges.borrow(), Vec::as_slice)
    }

    /// Room for this many entries of either kind has been taken.
    #[inline]
    pub fn capacities(&mut self) -> usize {
        self.points.get_mut().capacity() + self.ranges.get_mut().capacity()
    }

    /// What it takes, in bytes, without long keys.
    pub fn bytes(&mut self) -> usize {
        self.points.get_mut().capacity() * size_of::<Point>()
            + self.ranges.get_mut().capacity() * size_of::<RangeRead>()
    }

    pub fn clear(&mut self) {
        self.points.get_mut().clear();
        self.ranges.get_mut().clear();
    }

    /// The points, without repetitions, by table and tuple.
    pub fn points(&self) -> Ref<'_, [Point]> {
        drop_repeated(&mut self.points.borrow_mut());
        Ref::map(self.points.borrow(), Vec::as_slice)
    }
}

fn drop_repeated(points: &mut Vec<Point>) {
    points.sort_unstable();
    points.dedup();
}

/// Takes out repetitions if that helps.
#[cold]
fn make_room(points: &mut Vec<Point>) {
    if points.len() >= COMPACTED_FROM {
        drop_repeated(points);
    }
    if points.len() > points.capacity() / 2 {
        points.reserve(points.len().max(16));
    }
}
