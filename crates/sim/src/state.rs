//! What a database must hold, and what its transactions must see.

use std::collections::BTreeMap;

/// The value of the column with a secondary index, and the data.
pub(crate) type Row = (u64, Vec<u8>);

/// Tables by name.
pub(crate) type State = BTreeMap<String, TableState>;

/// What one table holds.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct TableState {
    pub rows: BTreeMap<u64, Row>,
    /// Whether its secondary index exists.
    pub is_indexed: bool,
}

/// A change made by a step.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(String, u64, Option<Row>),
    MakeTable(String),
    DropTable(String),
    SetIndexed(String, bool),
}

impl Change {
    /// Whether both write the same row.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Change::Put(table, key, _), Change::Put(of, other, _)) => (table, key) == (of, other),
            _ => false,
        }
    }

    /// Whether it reaches the medium. A row that is inserted and deleted in one
    /// transaction does not.
    pub fn is_written(&self, before: &State) -> bool {
        match self {
            Change::Put(table, key, None) => before.get(table).is_some_and(|t| t.rows.contains_key(key)),
            _ => true,
        }
    }
}

pub(crate) fn apply(state: &mut State, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Put(table, key, row) => {
                let rows = &mut state.get_mut(table).expect("rows are written to tables that exist").rows;
                match row {
                    Some(row) => rows.insert(*key, row.clone()),
                    None => rows.remove(key),
                };
            }
            Change::MakeTable(table) => {
                let made = TableState { rows: BTreeMap::new(), is_indexed: true };
                state.insert(table.clone(), made);
            }
            Change::DropTable(table) => {
                state.remove(table);
            }
            Change::SetIndexed(table, is_indexed) => {
                state.get_mut(table).expect("a table that exists").is_indexed = *is_indexed;
            }
        }
    }
}

/// What a statement reads.
#[derive(Clone, Debug)]
pub(crate) enum Look {
    Key(String, u64),
    /// An inclusive range of keys.
    Range(String, (u64, u64)),
    /// The rows with this value in the indexed column.
    Value(String, u64),
}

impl Look {
    /// Whether it may have seen a change, as far as the change alone tells.
    pub fn sees(&self, change: &Change) -> bool {
        let Change::Put(table, key, row) = change else { return false };
        self.table() == table
            && match self {
                Look::Key(_, looked) => looked == key,
                Look::Range(_, (first, last)) => (first..=last).contains(&key),
                Look::Value(_, value) => row.as_ref().is_some_and(|row| row.0 == *value),
            }
    }

    fn table(&self) -> &str {
        match self {
            Look::Key(table, _) | Look::Range(table, _) | Look::Value(table, _) => table,
        }
    }
}

/// All versions of all rows, and which timestamps have read what: the oracle of
/// isolation.
#[derive(Default)]
pub(crate) struct Versions {
    tables: BTreeMap<String, TableVersions>,
}

#[derive(Default)]
struct TableVersions {
    rows: BTreeMap<u64, Vec<(u64, Option<Row>)>>,
    /// The highest timestamp that has read each key, whether or not the key
    /// exists.
    read: BTreeMap<u64, u64>,
    /// Ranges of keys, inclusive, that were read, and the timestamps of the
    /// reads.
    scanned: Vec<(u64, u64, u64)>,
    /// Values of the indexed column that were read, and the timestamps of the
    /// reads.
    selected: Vec<(u64, u64)>,
}

impl Versions {
    pub fn new(state: &State) -> Self {
        let mut versions = Self::default();
        for (name, table) in state {
            let rows = table.rows.iter().map(|(key, row)| (*key, vec![(0, Some(row.clone()))])).collect();
            versions.tables.insert(name.clone(), TableVersions { rows, ..TableVersions::default() });
        }
        versions
    }

    /// Whether the table exists.
    pub fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// Records a read at `ts`, so that nobody may change what it saw.
    pub fn record(&mut self, look: &Look, ts: u64) {
        let Some(table) = self.tables.get_mut(look.table()) else { return };
        match look {
            Look::Key(_, key) => {
                let read = table.read.entry(*key).or_default();
                *read = ts.max(*read);
            }
            Look::Range(_, (first, last)) => table.scanned.push((*first, *last, ts)),
            Look::Value(_, value) => table.selected.push((*value, ts)),
        }
    }

    /// A transaction moves its reads from one timestamp to another.
    ///
    /// # Errors
    /// A description, if one of them has another result there.
    pub fn read_again(&mut self, looks: &[Look], from: u64, to: u64) -> Result<(), String> {
        for look in looks {
            if let Some(table) = self.tables.get(look.table()) {
                let seen = [from, to].map(|ts| table.look(look, ts));
                if seen[0] != seen[1] {
                    return Err(format!("{look:?} was moved from {from} to {to}, but saw {seen:?}"));
                }
            }
            self.record(look, to);
        }
        Ok(())
    }

    /// The row seen by a transaction that reads at `ts`.
    pub fn peek(&self, table: &str, key: u64, ts: u64) -> Option<Row> {
        self.tables.get(table)?.at(key, ts)
    }

    /// All rows in an inclusive range of keys.
    pub fn peek_range(&self, table: &str, keys: (u64, u64), ts: u64) -> BTreeMap<u64, Row> {
        self.tables.get(table).map(|table| table.range(keys, ts)).unwrap_or_default()
    }

    /// Records a commit.
    ///
    /// # Errors
    /// A description, if the commit should have been refused.
    pub fn commit(&mut self, ts: u64, changes: &[Change]) -> Result<(), String> {
        for change in changes {
            match change {
                Change::Put(name, key, row) => {
                    let table = self.tables.get_mut(name).ok_or("a commit to a table that does not exist")?;
                    // A row that was inserted and deleted in the transaction never
                    // existed.
                    let old = table.at(*key, u64::MAX);
                    if row.is_none() && old.is_none() {
                        continue;
                    }
                    let values = [&old, row].map(|row| row.as_ref().map(|row| row.0));
                    if let Some(by) = table.read_above(*key, values, ts) {
                        return Err(format!("{name} {key} was written at {ts}, but had been read at {by}"));
                    }
                    let versions = table.rows.entry(*key).or_default();
                    if let Some((last, _)) = versions.last().filter(|(last, _)| *last >= ts) {
                        return Err(format!("{name} {key} was written at {ts}, but before that at {last}"));
                    }
                    versions.push((ts, row.clone()));
                }
                Change::MakeTable(table) => {
                    self.tables.insert(table.clone(), TableVersions::default());
                }
                Change::DropTable(table) => {
                    self.tables.remove(table);
                }
                Change::SetIndexed(..) => {}
            }
        }
        Ok(())
    }
}

impl TableVersions {
    fn look(&self, look: &Look, ts: u64) -> BTreeMap<u64, Row> {
        match look {
            Look::Key(_, key) => self.range((*key, *key), ts),
            Look::Range(_, keys) => self.range(*keys, ts),
            Look::Value(_, value) => {
                let mut rows = self.range((0, u64::MAX), ts);
                rows.retain(|_, row| row.0 == *value);
                rows
            }
        }
    }

    fn at(&self, key: u64, ts: u64) -> Option<Row> {
        let versions = self.rows.get(&key)?;
        versions.iter().rev().find(|(begin, _)| *begin <= ts).and_then(|(_, row)| row.clone())
    }

    fn range(&self, (first, last): (u64, u64), ts: u64) -> BTreeMap<u64, Row> {
        let keys = self.rows.range(first..=last).map(|(key, _)| *key);
        keys.filter_map(|key| Some((key, self.at(key, ts)?))).collect()
    }

    /// The timestamp above `ts`, if any, of a read of the key, or of a read
    /// that would have found it by one of the values.
    fn read_above(&self, key: u64, values: [Option<u64>; 2], ts: u64) -> Option<u64> {
        let selected = self.selected.iter().filter(|(value, _)| values.contains(&Some(*value)));
        let selected = selected.map(|(_, by)| *by);
        let scans = self.scanned.iter().filter(|(first, last, _)| (*first..=*last).contains(&key));
        let scans = scans.map(|(.., by)| *by);
        scans.chain(selected).chain(self.read.get(&key).copied()).filter(|by| *by > ts).max()
    }
}
