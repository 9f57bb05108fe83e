//! Writing the index image: when the database is closed, and now and then while
//! it is open (I-23).

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::{TableId, TupleId};
use pantile_cc::Begin;
use pantile_index::{Batch, Direction, Index as Tree, Scan};
use pantile_media::{Beside, MediumExt};
use pantile_store::{ImageName, ImageWriter, PAGE_WORDS};

use crate::engine::anchor::Anchor;
use crate::engine::core::Core;
use crate::engine::image_page::pack;
use crate::engine::image_run::{RunWriter, copy_run};
use crate::engine::image_tables::{
    PAGE_ANCHORS, TOMBSTONES, anchors_of, notes_of, of_table, sum_of_definition,
};
use crate::engine::images::Making;
use crate::engine::table::{PRIMARY, Table, TableInner};

/// While the database is open, an image is written in steps of this many bytes,
/// 64 MB in a second.
const STEP: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_millis(1000 / 64);
/// An image is not begun while more index entries than these and half of the rows wait
/// to be cleaned: it would hold them.
const FEW_STALE: u64 = 4096;
/// Tables with no more tuple ids are loaded rather than copied from the image before.
const SMALL_TABLE: u64 = 4096;

impl Core {
    /// Writes an index image for the record that says closed, if the database
    /// has a place for one. A failure costs the next opening its time, and has
    /// no other effect. No transaction runs.
    pub fn write_last_image(&self) {
        let Some(beside) = self.place_of_image() else { return self.store.name_image(None) };
        self.adopt_image();
        // Nobody uses dropped indexes any more.
        self.registry.refresh_watermark(Duration::ZERO);
        self.forget_indexes();
        if self.has_dropped_tables() || self.clean_for_image().is_none() {
            return;
        }
        let opened = self.image.lock().clone();
        if let Some(image) = opened.filter(|image| self.store.is_as_in(image)) {
            return self.store.name_image(Some(image.name()));
        }
        let highest = || self.registry.after_all().get();
        let written = self.store.write_image(beside, None, &highest, &mut |writer| self.write_tables(writer));
        if let Ok(name) = written {
            self.images.made(&self.store, name, self.store.appended_ever());
        }
        self.measure_images();
    }

    /// Notes how many bytes the image and its successor take.
    pub fn measure_images(&self) {
        if let Some(beside) = &self.store.medium().facts().beside {
            let files = beside.open();
            self.store.note_image_bytes(files.iter().flatten().map(|file| file.len()).sum());
        }
    }

    /// Where an image can be written, if one may be.
    fn place_of_image(&self) -> Option<&dyn Beside> {
        let beside = self.store.medium().facts().beside.as_ref()?;
        let may_write = !self.store.medium().is_failed()
            && self.reclaimer.notes_superseded()
            && !self.give_up_image_if_damaged();
        (may_write && !self.options.without_image).then_some(&**beside)
    }

    /// Returns whether something is damaged. It must show when the database is next
    /// opened, so no record names an image from then on.
    pub fn give_up_image_if_damaged(&self) -> bool {
        let is_damaged = self.store.damaged() > 0;
        if is_damaged {
            self.store.name_image(None);
        }
        is_damaged
    }

    /// Puts an image that the record in force names in the place of the last one.
    pub fn adopt_image(&self) {
        self.images.adopt_if_named(&self.store, || {
            if let Some(beside) = self.store.medium().facts().beside.as_ref() {
                // It is found all the same.
                let _ = beside.adopt();
                // The space of the last one is free once no index is read from it any more.
                *self.image.lock() = None;
                self.measure_images();
            }
        });
    }

    /// Begins an image if it is time for one.
    pub fn begin_image(&self) -> Option<Making> {
        let bytes = || {
            let tables = self.tables.all();
            let in_trees = |table: &Arc<TableInner>| table.anchor_bytes() + table.index_bytes();
            let now = tables.iter().map(in_trees).sum();
            // What is still in an image is in no tree.
            let stored = tables.iter().filter_map(|table| table.stored());
            stored.map(|stored| stored.image.bytes()).fold(now, u64::max)
        };
        let every = self.options.image_every;
        let is_due = || self.images.is_worth_it(&self.store, every, self.counters.tuples(), bytes);
        let may_begin = self.place_of_image().is_some()
            && is_due()
            && self.tables.all().iter().all(|table| table.are_indexes_ready())
            && !self.images.is_pending()
            && self.stale.len() as u64 <= self.counters.tuples() / 2 + FEW_STALE
            && !self.has_dropped_tables()
            && self.reclaimer.slot_reuse().is_none();
        if may_begin { self.images.try_begin(&self.store, self.counters.tuples()) } else { None }
    }

    /// Makes the image that has been begun, beside all transactions.
    pub fn make_image(&self, making: Making) {
        let appended = self.store.appended_ever();
        let made = self.place_of_image().map(|beside| self.write_image_beside(beside));
        match made {
            Some(Ok(name)) => self.images.made(&self.store, name, appended),
            Some(Err(error)) => tracing::debug!(%error, "an index image was not made"),
            None => {}
        }
        self.measure_images();
        drop(making);
        self.alarm.written();
    }

    /// The order matters. Everything below the base has been published, so it is
    /// found. Entries come before anchors: a tuple with an entry of a transaction
    /// that has not committed is still locked, or has been noted, or has a
    /// content above the base.
    fn write_image_beside(&self, beside: &dyn Beside) -> io::Result<ImageName> {
        let base = self.store.image_base();
        self.stale.begin_notes();
        let highest = || self.registry.after_all().get();
        let mut write = |writer: &mut ImageWriter<'_>| {
            let tables = self.tables.all();
            // The blocks of a table that is not among them would be in the image, and nothing would say that it was dropped.
            if self.has_dropped_tables() {
                return Err(io::Error::other("a table is being dropped"));
            }
            tables.into_iter().try_for_each(|table| self.write_moving_table(writer, Table::of(table)))?;
            self.stale.end_notes(|notes| {
                write_notes(writer, notes.ok_or_else(|| io::Error::other("too much is stale"))?)
            })
        };
        let written = self.store.write_image(beside, Some(&base), &highest, &mut write);
        self.stale.end_notes(|_| ());
        written
    }

    /// Cleans every index entry that waits for it, so that trees hold what
    /// recovery would enter and nothing else.
    fn clean_for_image(&self) -> Option<()> {
        let (permit, _) = self.enter_closing(Begin::LateWriter).ok()?;
        self.within(permit, |permit| self.clean_to_the_end(permit.slot()));
        Some(())
    }

    fn write_tables(&self, writer: &mut ImageWriter<'_>) -> io::Result<()> {
        let mut tombstones = 0;
        for table in self.tables.all() {
            tombstones += self.write_table(writer, Table::of(table))?.tombstones;
        }
        writer.begin(TOMBSTONES);
        writer.page(&[tombstones])
    }

    /// Writes what there is of a table while nothing changes.
    fn write_table(&self, writer: &mut ImageWriter<'_>, table: Table) -> io::Result<Tuples> {
        if table.inner.stored().is_some_and(|stored| stored.changes.is_some()) {
            self.ready(&table.inner).map_err(io::Error::other)?;
        }
        let tuples = write_anchors(writer, &table.inner, |_, _| Ok(()))?;
        if tuples.locked > 0 {
            return Err(io::Error::other("a tuple is locked"));
        }
        expect_equal(tuples.rows, table.inner.rows.get())?;
        self.write_head(writer, &table, tuples.end)?;
        let entries = self.write_trees(writer, &table.inner, |_| Ok(()))?;
        entries.into_iter().flatten().try_for_each(|entries| expect_equal(entries, tuples.rows))?;
        Ok(tuples)
    }

    /// The same beside transactions. Notes the tuples that somebody has locked.
    fn write_moving_table(&self, writer: &mut ImageWriter<'_>, table: Table) -> io::Result<()> {
        // An image that is not up to date is not copied. Nor is what is small, as the engine's own tables are: it would
        // keep the file of the last image, and its space.
        let is_small = table.inner.tuples_end() <= SMALL_TABLE;
        if table.inner.stored().is_some_and(|stored| stored.changes.is_some() || is_small) {
            self.load_apart(&table.inner).map_err(io::Error::other)?;
        }
        let version = table.inner.indexes_version();
        let definition = || sum_of_definition(&table.inner.definition()).map_err(io::Error::other);
        let before = definition()?;
        let mut next = STEP;
        let mut pause = |writer: &ImageWriter<'_>| {
            if writer.written() >= next {
                next = writer.written() + STEP;
                self.registry.clock().sleep(PAUSE);
            }
            if self.images.is_stopped() {
                Err(io::Error::other("the database is being closed"))
            } else {
                Ok(())
            }
        };
        self.write_trees(writer, &table.inner, &mut pause)?;
        #[cfg(test)]
        tests::behind_trees(&table.inner);
        let id = table.inner.id;
        let tuples = write_anchors(writer, &table.inner, |writer, tuple| {
            tuple.inspect(|tuple| self.stale.note(id, *tuple));
            pause(writer)
        })?;
        self.write_head(writer, &table, tuples.end)?;
        // One that is being dropped is in the list as long as older transactions may use it, and not in
        // the definition.
        let is_same = table.inner.indexes_version() == version
            && definition()? == before
            && table.inner.are_indexes_ready();
        match is_same {
            true => Ok(()),
            false => Err(io::Error::other("an index was made or dropped")),
        }
    }

    fn write_head(&self, writer: &mut ImageWriter<'_>, table: &Table, end: u64) -> io::Result<()> {
        let definition = sum_of_definition(&table.inner.definition()).map_err(io::Error::other)?;
        writer.begin(of_table(table.inner.id));
        writer.page(&[definition, end, table.inner.rows.bytes(), table.inner.counts_slots_until()])
    }

    /// Writes the entries of all indexes, calling `each` now and then. Returns
    /// their numbers, where they are known.
    fn write_trees(
        &self,
        writer: &mut ImageWriter<'_>,
        table: &TableInner,
        mut each: impl FnMut(&ImageWriter<'_>) -> io::Result<()>,
    ) -> io::Result<Vec<Option<u64>>> {
        let indexes = table.indexes();
        if !table.are_indexes_ready() {
            return Err(io::Error::other("an index is being made or dropped"));
        }
        if let Some(stored) = table.stored() {
            let count = if stored.fits { indexes.len() as u32 + 1 } else { 0 };
            for n in 0..count {
                copy_run(writer, &stored.image, table.id, n)?;
                each(writer)?;
            }
            return Ok(Vec::new());
        }
        let trees = [table.tree()].into_iter().chain(indexes.iter().map(|index| index.tree()));
        (PRIMARY..)
            .zip(trees)
            .map(|(n, tree)| Ok(Some(write_tree(writer, table.id, n, tree, &mut each)?)))
            .collect()
    }
}

/// Writes the tuples that are noted, which are in order.
fn write_notes(writer: &mut ImageWriter<'_>, notes: &[(TableId, TupleId)]) -> io::Result<()> {
    let mut page = Vec::with_capacity(PAGE_WORDS);
    for of_table in notes.chunk_by(|a, b| a.0 == b.0) {
        writer.begin(notes_of(of_table[0].0));
        for some in of_table.chunks(PAGE_WORDS) {
            page.clear();
            page.extend(some.iter().map(|(_, tuple)| tuple.0));
            writer.page(&page)?;
        }
    }
    Ok(())
}

/// The tuples of a table.
#[derive(Default)]
struct Tuples {
    rows: u64,
    /// Of tuples that are gone for good.
    tombstones: u64,
    locked: u64,
    /// One more than the highest id that has a content or is locked.
    end: u64,
}

/// Writes the anchors of a table. Calls `each` after each page, and with every
/// tuple that is locked.
fn write_anchors(
    writer: &mut ImageWriter<'_>,
    table: &TableInner,
    mut each: impl FnMut(&ImageWriter<'_>, Option<TupleId>) -> io::Result<()>,
) -> io::Result<Tuples> {
    // One that is locked may have entries, which have been gathered.
    let is_used = |tuple: &u64| {
        let anchor = Anchor::load(table.anchor(TupleId(*tuple)));
        !anchor.newest().is_none() || !anchor.is_at_rest()
    };
    let end = (0..table.tuples_end()).rev().find(is_used).map_or(0, |last| last + 1);
    writer.begin(anchors_of(table.id));
    let (mut tuples, mut page) = (Tuples { end, ..Tuples::default() }, Vec::with_capacity(PAGE_ANCHORS));
    let mut packed = Vec::new();
    let mut write = |writer: &mut ImageWriter<'_>, page: &mut Vec<u64>| {
        packed.clear();
        pack(page.iter().copied(), &mut packed);
        page.clear();
        writer.page(&packed)
    };
    for tuple in (0..end).map(TupleId) {
        let anchor = Anchor::load(table.anchor(tuple));
        tuples.rows += u64::from(anchor.is_row());
        tuples.tombstones += u64::from(!anchor.is_row() && !anchor.newest().is_none());
        if !anchor.is_at_rest() {
            tuples.locked += 1;
            each(writer, Some(tuple))?;
        }
        page.push(anchor.to_store());
        if page.len() == PAGE_ANCHORS {
            write(writer, &mut page)?;
            each(writer, None)?;
        }
    }
    if !page.is_empty() {
        write(writer, &mut page)?;
    }
    Ok(tuples)
}

/// Writes the entries of an index. Returns their number.
fn write_tree(
    writer: &mut ImageWriter<'_>,
    table: TableId,
    index: u32,
    tree: &Tree,
    each: &mut impl FnMut(&ImageWriter<'_>) -> io::Result<()>,
) -> io::Result<u64> {
    let mut run = RunWriter::new(writer, table, index);
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded, Direction::Forward);
    let (mut batch, mut entries) = (Batch::new(), 0);
    while scan.next_batch(tree, None, &mut batch) {
        entries += batch.len() as u64;
        batch.iter().try_for_each(|(key, tuple)| run.push(key, tuple))?;
        each(run.writer())?;
    }
    run.finish()?;
    Ok(entries)
}

/// An index has an entry for each row. If it has not, something waits that the
/// image must not hold.
fn expect_equal(found: u64, expected: u64) -> io::Result<()> {
    if found == expected { Ok(()) } else { Err(io::Error::other(format!("{found} of {expected} rows"))) }
}

#[cfg(test)]
#[path = "image_test.rs"]
mod tests;
