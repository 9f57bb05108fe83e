//! What backups hold already, so that only the rest is copied.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use pantile_base::{TableId, Timestamp, TupleId};
use pantile_store::{ContentFlags, DEPENDENCIES, Found, NewContent};
use twox_hash::XxHash3_64;

use crate::tools::definitions::Definitions;
use crate::types::schema::TableDef;

/// The newest version of each tuple in the contents of one or more stores.
///
/// A version is known by its timestamp and by a hash of its row. So it shows
/// when these stores hold the history of another database.
#[derive(Default)]
pub(super) struct Held {
    tables: HashMap<TableId, Vec<Mark>, FixedState>,
    catalog: Definitions,
    /// The highest timestamp of a version.
    pub highest: Timestamp,
}

/// A version of a tuple: 16 bytes for each id.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    timestamp: Timestamp,
    /// 0 if the tuple was deleted, or was never there.
    hash: u64,
}

impl Mark {
    /// The hash of a row that is no row's.
    const OF_NO_ROW: u64 = 1;

    /// A row.
    pub fn row(timestamp: Timestamp, layout: u8, row: &[u8]) -> Self {
        let hash = XxHash3_64::oneshot_with_seed(u64::from(layout), row).max(Self::OF_NO_ROW + 1);
        Self { timestamp, hash }
    }

    fn of(found: &Found<'_>) -> Self {
        let content = &found.content;
        match content.flags().is_tombstone() {
            true => Self { timestamp: content.timestamp(), hash: 0 },
            false => Self::row(content.timestamp(), content.layout(), content.row()),
        }
    }

    pub fn is_row(self) -> bool {
        self.hash != 0
    }

    /// Whether it stays the newest one beside a version of this timestamp.
    pub fn hides(self, timestamp: Timestamp) -> bool {
        self.timestamp >= timestamp
    }
}

impl Held {
    /// Adds contents of a table.
    pub fn add(&mut self, table: TableId, found: &[Found<'_>]) {
        if table == DEPENDENCIES {
            return;
        }
        self.catalog.note(table, found.iter().map(|one| one.content));
        let marks = self.tables.entry(table).or_default();
        for one in found {
            let (at, mark) = (one.content.tuple().0 as usize, Mark::of(one));
            note(marks, at, mark);
            self.highest = self.highest.max(mark.timestamp);
        }
    }

    /// Adds what another store holds.
    pub fn join(&mut self, other: Self) {
        self.highest = self.highest.max(other.highest);
        self.catalog.join(other.catalog);
        for (table, theirs) in other.tables {
            let marks = self.tables.entry(table).or_default();
            theirs.into_iter().enumerate().for_each(|(at, mark)| note(marks, at, mark));
        }
    }

    /// Whether no version is known.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The versions of a table's tuples, by their ids.
    pub fn of(&self, table: TableId) -> &[Mark] {
        self.tables.get(&table).map_or(&[], Vec::as_slice)
    }

    /// A number that identifies the rows, whatever the order in which they were
    /// found. Deletions, and rows of tables that the catalog does not name, have no
    /// part in it: a database that is only opened drops them (I-14).
    pub fn fingerprint(&self) -> u64 {
        let named = self.named();
        self.sum(|table, mark| mark.is_row() && named.contains_key(&table.0))
    }

    /// The same of all versions, for a store that nothing is dropped from.
    pub fn whole_fingerprint(&self) -> u64 {
        self.sum(|_, mark| mark != Mark::default())
    }

    fn sum(&self, counts: impl Fn(TableId, Mark) -> bool) -> u64 {
        let of_tuple = |table: TableId, tuple: usize, mark: Mark| {
            hash([u64::from(table.0), tuple as u64, mark.timestamp.get(), mark.hash])
        };
        let all = self.tables.iter().flat_map(|(&table, marks)| {
            marks.iter().enumerate().map(move |(tuple, &mark)| (table, tuple, mark))
        });
        let counted = all.filter(|&(table, _, mark)| counts(table, mark));
        counted.map(|(table, tuple, mark)| of_tuple(table, tuple, mark)).fold(0, u64::wrapping_add)
    }

    /// Makes rows that are not in the fingerprint equal to none, since they may go
    /// before the backup is restored.
    pub fn doubt_unnamed(&mut self) {
        let named = self.named();
        let unnamed = self.tables.iter_mut().filter(|(table, _)| !named.contains_key(&table.0));
        let marks = unnamed.flat_map(|(_, marks)| marks);
        marks.filter(|mark| mark.is_row()).for_each(|mark| mark.hash = Mark::OF_NO_ROW);
    }

    /// The tables that the newest definitions name.
    fn named(&self) -> BTreeMap<u32, TableDef> {
        self.catalog.tables()
    }
}

/// A hash of four words.
pub(super) fn hash(words: [u64; 4]) -> u64 {
    let mut bytes = [0; 32];
    bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    XxHash3_64::oneshot(&bytes)
}

fn note(marks: &mut Vec<Mark>, at: usize, mark: Mark) {
    if marks.len() <= at {
        marks.resize(at + 1, Mark::default());
    }
    if !marks[at].hides(mark.timestamp) {
        marks[at] = mark;
    }
}

/// The deletion of a row that is held, right above it: whatever comes to the
/// tuple later is later than that, also if the clock of the source has gone back
/// behind the moment of this backup after a crash.
pub(super) fn deleted(table: TableId, tuple: TupleId, held: Mark) -> NewContent<'static> {
    NewContent {
        table,
        tuple,
        flags: ContentFlags::COPY_OF_TOMBSTONE,
        layout: 0,
        since: None,
        timestamp: Timestamp::from_raw(held.timestamp.get() + 1),
        transaction_contents: 1,
        row: &[],
    }
}
