//! Writing the index image when the database is closed.

use std::io;
use std::ops::Bound;

use pantile_base::{TableId, TupleId};
use pantile_cc::Begin;
use pantile_index::{Batch, Direction, Index as Tree, Scan};
use pantile_media::MediumExt;
use pantile_store::{ImageName, ImageWriter, PAGE_WORDS};

use crate::engine::anchor::Anchor;
use crate::engine::core::Core;
use crate::engine::image_run::{RunWriter, copy_run};
use crate::engine::image_tables::{GAUGES, anchors_of, of_table, sum_of_definition};
use crate::engine::table::{PRIMARY, Table, TableInner};

impl Core {
    /// Writes an index image for the record that says closed, if the database
    /// has a place for one. A failure costs the next opening its time, and has
    /// no other effect. No transaction runs.
    pub fn write_image(&self) -> Option<ImageName> {
        let beside = self.store.medium().facts().beside.as_ref()?;
        // What is damaged must show when the database is opened.
        let is_whole = !self.store.medium().is_failed() && self.store.damaged() == 0;
        if self.options.without_image || !is_whole || self.has_dropped_tables() {
            return None;
        }
        self.clean_for_image()?;
        if let Some(image) = self.image.as_ref().filter(|image| self.store.is_as_in(image)) {
            return Some(image.name());
        }
        let highest = self.registry.after_all();
        self.store.write_image(&**beside, highest.get(), &mut |writer| self.write_tables(writer)).ok()
    }

    /// Cleans every index entry that waits for it, so that trees hold what
    /// recovery would enter and nothing else.
    fn clean_for_image(&self) -> Option<()> {
        let (permit, _) = self.enter_closing(Begin::LateWriter).ok()?;
        self.clean_to_the_end(permit.slot());
        self.leave(permit);
        Some(())
    }

    fn write_tables(&self, writer: &mut ImageWriter<'_>) -> io::Result<()> {
        let (mut rows, mut tombstones) = (0, 0);
        for table in self.tables.all() {
            let tuples = self.write_table(writer, Table(table))?;
            rows += tuples.rows;
            tombstones += tuples.tombstones;
        }
        expect_equal(rows, self.counters.tuples())?;
        writer.begin(GAUGES);
        writer.page(&[rows, self.counters.live_bytes(), tombstones])
    }

    /// Writes what there is of a table.
    fn write_table(&self, writer: &mut ImageWriter<'_>, table: Table) -> io::Result<Tuples> {
        let definition = sum_of_definition(&table.definition()).map_err(io::Error::other)?;
        let table = &*table.0;
        let tuples = write_anchors(writer, table)?;
        writer.begin(of_table(table.id));
        writer.page(&[definition, tuples.end])?;
        let indexes = table.indexes();
        if let Some(stored) = table.stored() {
            let count = if stored.fits { indexes.len() as u32 + 1 } else { 0 };
            (0..count).try_for_each(|n| copy_run(writer, &stored.image, table.id, n))?;
            return Ok(tuples);
        }
        write_tree(writer, table.id, PRIMARY, table.tree(), tuples.rows)?;
        for (n, index) in (1..).zip(&*indexes) {
            if !index.is_ready() {
                return Err(io::Error::other("an index is being made or dropped"));
            }
            write_tree(writer, table.id, n, index.tree(), tuples.rows)?;
        }
        Ok(tuples)
    }
}

/// The tuples of a table.
#[derive(Default)]
struct Tuples {
    rows: u64,
    /// Of tuples that are gone for good.
    tombstones: u64,
    /// One more than the highest id that a content has.
    end: u64,
}

/// Writes the anchors of a table.
fn write_anchors(writer: &mut ImageWriter<'_>, table: &TableInner) -> io::Result<Tuples> {
    let is_used = |tuple: &u64| !Anchor::load(table.anchor(TupleId(*tuple))).newest().is_none();
    let end = (0..table.tuples_end()).rev().find(is_used).map_or(0, |last| last + 1);
    writer.begin(anchors_of(table.id));
    let (mut tuples, mut page) = (Tuples { end, ..Tuples::default() }, Vec::with_capacity(PAGE_WORDS));
    for tuple in 0..end {
        let anchor = Anchor::load(table.anchor(TupleId(tuple)));
        let word = anchor.to_store().ok_or_else(|| io::Error::other("a tuple is locked"))?;
        tuples.rows += u64::from(anchor.is_row());
        tuples.tombstones += u64::from(!anchor.is_row() && !anchor.newest().is_none());
        page.push(word);
        if page.len() == PAGE_WORDS {
            writer.page(&page)?;
            page.clear();
        }
    }
    if !page.is_empty() {
        writer.page(&page)?;
    }
    Ok(tuples)
}

fn write_tree(
    writer: &mut ImageWriter<'_>,
    table: TableId,
    index: u32,
    tree: &Tree,
    rows: u64,
) -> io::Result<()> {
    let mut run = RunWriter::new(writer, table, index);
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded, Direction::Forward);
    let (mut batch, mut entries) = (Batch::new(), 0);
    while scan.next_batch(tree, None, &mut batch) {
        entries += batch.len() as u64;
        batch.iter().try_for_each(|(key, tuple)| run.push(key, tuple))?;
    }
    run.finish()?;
    expect_equal(entries, rows)
}

/// An index has an entry for each row. If it has not, something waits that the
/// image must not hold.
fn expect_equal(found: u64, expected: u64) -> io::Result<()> {
    if found == expected { Ok(()) } else { Err(io::Error::other(format!("{found} of {expected} rows"))) }
}

#[cfg(test)]
#[path = "image_test.rs"]
mod tests;
