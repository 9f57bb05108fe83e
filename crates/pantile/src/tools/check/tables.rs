//! Compares rows with definitions, indexes and values out of line.

use std::collections::{BTreeMap, HashSet};
use std::ops::{Bound, Range};
use std::sync::Arc;

use foldhash::fast::FixedState;
use pantile_base::sync::Mutex;
use pantile_base::{TupleId, share_range};
use pantile_index::{Batch, Direction, Index as Tree, Scan};

use crate::engine::anchor::Anchor;
use crate::engine::catalog;
use crate::engine::core::Core;
use crate::engine::index::IndexInner;
use crate::engine::pieces;
use crate::engine::table::TableInner;
use crate::tools::check::report::CheckReport;
use crate::tools::findings::{Findings, Location};
use crate::tools::options::{CheckOptions, CheckStep};
use crate::types::key::Key;
use crate::types::pieces::PIECE;

/// What is wrong is said to be so `by` what the state was recovered from.
pub(super) fn check(
    core: &Core,
    options: &CheckOptions,
    (findings, by): (&Findings, &str),
    done: &mut CheckReport,
) {
    let tables = core.tables.all();
    check_names(&tables, findings);
    let total = tables.len() as u64;
    for (n, table) in (1..).zip(&tables) {
        let values = OutOfLine::default();
        let checker = Checker { core, table, findings, by, values: &values };
        let rows = checker.rows(options.thread_count());
        let mut entries = checker.index("primary", table.tree(), None, rows);
        for index in &*table.indexes() {
            entries += checker.index(&index.name(), index.tree(), Some(index), rows);
        }
        if catalog::is_of_user(table.id) {
            done.tables += 1;
            done.rows += rows;
            done.index_entries += entries;
            if let Some(pieces) = tables.iter().find(|other| other.id == pieces::of(table.id)) {
                done.values_out_of_line += values.check(core, pieces, findings);
            }
        }
        if options.report(CheckStep::Tables, n, total).is_break() {
            return;
        }
    }
}

fn check_names(tables: &[Arc<TableInner>], findings: &Findings) {
    let mut names = BTreeMap::new();
    for table in tables.iter().filter(|table| catalog::is_of_user(table.id)) {
        if let Some(other) = names.insert(table.name(), table.id.0) {
            let what = format!("tables {other} and {} are both called {:?}", table.id.0, table.name());
            findings.damage(Location::default(), what);
        }
    }
}

struct Checker<'a> {
    core: &'a Core,
    table: &'a TableInner,
    findings: &'a Findings,
    by: &'a str,
    values: &'a OutOfLine,
}

impl Checker<'_> {
    /// Checks all rows, in parallel. Returns their number.
    fn rows(&self, threads: usize) -> u64 {
        let end = self.table.tuples_end();
        let shares = threads.min(1 + end as usize / 4096);
        let look = |tuples: Range<u64>| tuples.filter(|&tuple| self.row(TupleId(tuple))).count();
        share_range(shares, end, look).into_iter().sum::<usize>() as u64
    }

    /// Checks a tuple. Returns whether it is a row.
    fn row(&self, tuple: TupleId) -> bool {
        let (table, core) = (self.table, self.core);
        let Some(row) = table.live_row(&core.store, tuple) else { return false };
        if let Some(problem) = row.value_problem() {
            self.report(tuple, problem);
        }
        let mut key = Key::default();
        key.set_primary(&row);
        self.find(table.tree(), "primary", &key, tuple);
        for index in &*table.indexes() {
            if index.set_key(&row, &mut key) {
                key.push_tuple(tuple.0);
                self.find(index.tree(), &index.name(), &key, tuple);
            }
        }
        if table.layouts().can_move_out {
            for (id, len) in row.values_out_of_line() {
                self.values.note(id, len, || {
                    self.report(tuple, format!("value {id} out of line belongs to another row"))
                });
            }
        }
        true
    }

    fn find(&self, tree: &Tree, name: &str, key: &Key, tuple: TupleId) {
        if tree.get(key.words(), None) != Some(tuple.0) {
            self.report(tuple, format!("index {name:?} has no entry for the row"));
        }
    }

    /// Checks all entries of an index, and that unique keys are unique. Returns
    /// the number of entries.
    fn index(&self, name: &str, tree: &Tree, index: Option<&IndexInner>, rows: u64) -> u64 {
        let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded, Direction::Forward);
        let (mut batch, mut last, mut entries) = (Batch::new(), Key::default(), 0);
        while scan.next_batch(tree, None, &mut batch) {
            for (entry, tuple) in batch.iter() {
                entries += 1;
                let key = self.key_of(TupleId(tuple), index);
                let mut whole = key.clone();
                if let Some(whole) = whole.as_mut().filter(|_| index.is_some()) {
                    whole.push_tuple(tuple);
                }
                if whole.is_none_or(|key| key.words() != entry) {
                    self.report(
                        TupleId(tuple),
                        format!("index {name:?} has an entry that does not match its row"),
                    );
                }
                let Some(key) = key else { continue };
                let must_differ = index.is_none_or(|i| i.unique && !key.has_null);
                if must_differ && entries > 1 && key.words() == last.words() {
                    self.report(TupleId(tuple), format!("another row has the same key of index {name:?}"));
                }
                last = key;
            }
        }
        if entries != rows {
            let place = Location { table_id: Some(self.table.id.0), ..Location::default() };
            let by = self.by;
            self.findings.damage(place, format!("index {name:?} has {entries} entries for {rows} rows{by}"));
        }
        entries
    }

    fn key_of(&self, tuple: TupleId, index: Option<&IndexInner>) -> Option<Key> {
        let row = self.table.live_row(&self.core.store, tuple)?;
        let mut key = Key::default();
        match index {
            Some(index) => index.set_key(&row, &mut key).then_some(key),
            None => {
                key.set_primary(&row);
                Some(key)
            }
        }
    }

    fn report(&self, tuple: TupleId, what: String) {
        let newest = Anchor::load(self.table.anchor(tuple)).newest();
        let mut place = match newest.is_none() {
            true => Location { table_id: Some(self.table.id.0), ..Location::default() },
            false => self.core.store.place_of(newest).into(),
        };
        place.tuple = Some(tuple.0);
        self.findings.damage(place, what + self.by);
    }
}

/// Compares the values that a table's rows refer to with the stored pieces.
#[derive(Default)]
struct OutOfLine {
    lengths: Mutex<BTreeMap<u64, u64>>,
}

impl OutOfLine {
    fn note(&self, id: u64, len: u64, is_anothers: impl FnOnce()) {
        if self.lengths.lock().insert(id, len).is_some() {
            is_anothers();
        }
    }

    /// Compares them. Returns the number of values.
    fn check(self, core: &Core, table: &TableInner, findings: &Findings) -> u64 {
        let lengths = self.lengths.into_inner();
        let mut left: HashSet<(u64, u32), FixedState> = HashSet::default();
        for (&id, &len) in &lengths {
            left.extend((0..(len as usize).div_ceil(PIECE)).map(|piece| (id, piece as u32)));
        }
        let (mut orphans, mut orphan_bytes) = (0u64, 0u64);
        for tuple in (0..table.tuples_end()).map(TupleId) {
            let Some(row) = table.live_row(&core.store, tuple) else { continue };
            let number = |n: usize| {
                let raw = row.raw(&row.schema.columns[n]);
                raw.iter().rev().fold(0, |number, &b| number << 8 | u64::from(b))
            };
            let (id, piece, found) = (number(0), number(1), row.raw(&row.schema.columns[2]).len());
            if !left.remove(&(id, piece as u32)) {
                orphans += 1;
                orphan_bytes += found as u64;
                continue;
            }
            let expected = (lengths[&id] - piece * PIECE as u64).min(PIECE as u64);
            if found as u64 != expected {
                let place = Location::from(core.store.place_of(Anchor::load(table.anchor(tuple)).newest()));
                let what = format!("piece {piece} of value {id} out of line has {found} of {expected} bytes");
                findings.damage(Location { tuple: Some(tuple.0), ..place }, what);
            }
        }
        let mut left: Vec<_> = left.into_iter().collect();
        left.sort_unstable();
        for (id, piece) in left {
            findings
                .damage(Location::default(), format!("piece {piece} of value {id} out of line is missing"));
        }
        if orphans > 0 {
            let what =
                format!("{orphans} pieces of values out of line, {orphan_bytes} bytes, belong to no row");
            findings.notice(Location { table_id: Some(table.id.0), ..Location::default() }, what);
        }
        lengths.len() as u64
    }
}
