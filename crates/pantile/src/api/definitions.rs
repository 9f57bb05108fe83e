//! Changing definitions beside running transactions.

use std::ops::ControlFlow;
use std::sync::Arc;

use pantile_base::control::{Control, is_removed};
use pantile_base::{TableId, Timestamp};

use crate::api::database::Database;
use crate::engine::catalog;
use crate::engine::core::Core;
use crate::engine::failure::from_medium;
use crate::engine::index::IndexInner;
use crate::engine::table::{Index, Table, TableInner};
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::index_progress::IndexProgress;
use crate::types::isolation::Isolation;
use crate::types::layouts::{Layouts, check_added};
use crate::types::range::Range;
use crate::types::schema::{IndexDef, TableDef};
use crate::types::table_change::TableChange;
use crate::types::transaction_error::TransactionError;
use crate::types::transaction_options::TransactionOptions;
use crate::types::value::Value;

/// An index that is being created. It goes again unless its definition has been stored, also when its creation panics.
struct Unfinished<'c> {
    core: &'c Core,
    table: &'c TableInner,
    index: &'c IndexInner,
    goes: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.goes {
            // Transactions that have it in their lists no more maintain it, nor are refused by it.
            self.index.drop_at(|| Timestamp::ZERO);
            self.table.change_indexes(|list| list.retain(|i| i.number != self.index.number));
            // Slots whose transactions wrote meanwhile have a list with the index.
            self.core.buffers.forget();
        }
    }
}

impl Database {
    /// Creates a table, which is durable when the call returns.
    ///
    /// A serializable transaction that may write cannot use the table if it began before the call
    /// returned. It gets [`Conflict::TableIsNewer`](crate::Conflict::TableIsNewer), and
    /// [`Database::run`] begins it again. To a transaction that only reads, the table is empty. But
    /// if the table has the name of one that was dropped or renamed after that transaction began,
    /// the transaction could mistake one for the other. It then gets the same error, unless it
    /// reads a safe snapshot.
    ///
    /// # Errors
    /// [`Error::TableExists`]; [`Error::InvalidDefinition`], also if the definition takes more than
    /// 60,000 bytes (a column takes 42 and its name); [`Error::UnknownColumn`]; errors of the
    /// commit. If the call fails, no table has been created. After [`Error::MediumFailed`], the
    /// next opening shows whether it has.
    pub fn create_table(&self, def: TableDef) -> Result<Table> {
        let core = &self.core;
        let _change = core.tables.change();
        core.check_open()?;
        if core.tables.exists(&def.name) {
            return Err(Error::TableExists(def.name));
        }
        let new = self.new_table(def)?;
        self.change_catalog(|txn, catalog| txn.insert(catalog, &new.row()))?;
        core.tables.id_is_used(new.id());
        let at = core.registry.after_all();
        new.table.inner.set_created(at);
        if core.tables.was_used_of_late(new.table.name(), core.registry.watermark()) {
            new.table.inner.set_replacing();
        }
        new.pieces.into_iter().for_each(|pieces| core.tables.add(pieces));
        core.tables.add(new.table.clone());
        core.registry.await_passed(at);
        Ok(new.table)
    }

    /// Returns the table of this name, and creates it if there is none.
    ///
    /// A table that exists is returned as it is, even if its definition is another one.
    ///
    /// # Errors
    /// As [`Database::create_table`], without [`Error::TableExists`].
    pub fn create_table_if_absent(&self, def: TableDef) -> Result<Table> {
        let name = def.name.clone();
        loop {
            match self.create_table(def.clone()) {
                Err(Error::TableExists(_)) => {}
                made => return made,
            }
            match self.table(&name) {
                // It has just been dropped or renamed.
                Err(Error::UnknownTable(_)) => {}
                found => return found,
            }
        }
    }

    /// Returns the table with this definition, and creates it if there is none of its name.
    ///
    /// # Errors
    /// As [`Database::create_table`], but [`Error::DefinitionDiffers`] instead of
    /// [`Error::TableExists`]. It says how the existing table differs.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let def = TableDef::new("pets").column("id", Type::U32).primary_key(["id"]);
    /// db.open_or_create(def.clone())?;
    /// db.open_or_create(def.clone())?;
    /// let error = db.open_or_create(def.column("name", Type::String(40))).expect_err("it has no names");
    /// assert!(error.to_string().contains("column \"name\" is missing"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn open_or_create(&self, def: TableDef) -> Result<Table> {
        let table = self.create_table_if_absent(def.clone())?;
        match def.differences(&table.definition()) {
            None => Ok(table),
            Some(differences) => Err(Error::DefinitionDiffers { table: def.name, differences }),
        }
    }

    /// Drops a table.
    ///
    /// Transactions that have written to the table fail to commit. Others get
    /// [`Error::TableDropped`] when they next use it. The space is given back once none of these
    /// transactions runs any more. Transactions that began before the table was created, and have
    /// not used it, do not keep it.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::PreparedChanges`], and errors of the commit. If the call
    /// fails, the table stays. After [`Error::MediumFailed`], the next opening shows whether it
    /// does.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let core = &self.core;
        core.check_open()?;
        let table = core.tables.by_name(name)?;
        let change = core.tables.change_table(&table.inner);
        if !Arc::ptr_eq(&core.tables.by_name(name)?.inner, &table.inner) {
            // Another one has got the name meanwhile.
            drop(change);
            return self.drop_table(name);
        }
        let _changing = self.prepared.change(&table.inner)?;
        self.change_catalog(|txn, catalog| txn.delete(catalog, &catalog::key(table.inner.id)))?;
        let gone = core.tables.drop_table(&table.inner, || core.registry.after_all());
        drop(change);
        core.give_up(&gone);
        Ok(())
    }

    /// Replaces a table by an empty one with the same definition and name, and returns a handle of
    /// the new one.
    ///
    /// The table can have any number of rows. Transactions that use the old table find it dropped,
    /// as after [`Database::drop_table`].
    ///
    /// # Errors
    /// [`Error::TableDropped`], [`Error::PreparedChanges`], and errors of the commit. If the call
    /// fails, the table stays as it is. After [`Error::MediumFailed`], the next opening shows
    /// whether it has.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// db.run(|txn| txn.insert_many(&t, (0..100u64).map(|id| [id.into()])))?;
    /// let t = db.truncate_table(&t)?;
    /// assert!(db.begin_read()?.is_empty(&t, Range::all())?);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn truncate_table(&self, table: &Table) -> Result<Table> {
        let core = &self.core;
        let change = core.tables.change_table(&table.inner);
        core.check_open()?;
        core.tables.check_own(&table.inner)?;
        let old = &table.inner;
        let _changing = self.prepared.change(old)?;
        let new = self.new_table(old.definition().def)?;
        self.change_catalog(|txn, catalog| {
            txn.frees = true;
            txn.delete(catalog, &catalog::key(old.id))?;
            txn.insert(catalog, &new.row())
        })?;
        core.tables.id_is_used(new.id());
        let NewTable { table, pieces, .. } = new;
        let (gone, at) = core.tables.replace(old, &table, pieces, || core.registry.after_all());
        core.registry.await_passed(at);
        drop(change);
        core.give_up(&gone);
        Ok(table)
    }

    /// Changes the columns of a table, its name or those of its indexes, and returns a handle of the changed table.
    ///
    /// The table may have rows and be in use. The call takes a moment, however many rows there are:
    /// rows keep their bytes, and are decoded by the layout under which they were written. Only if
    /// values of the longest allowed length would not fit a row, as with 44 columns
    /// of `Bytes(1536)`, does it read the rows that there are.
    ///
    /// Older handles stay usable. They know the columns that the table had when they were made,
    /// with the numbers and names of that time. Rows that are written through them get the defaults
    /// of columns that the handle does not know. If a column has been dropped since, an older
    /// handle still reads its values in older rows, but nothing can be written to it.
    ///
    /// Serializable transactions that began before the call returned cannot write through the new
    /// handle: they get [`Conflict::TableIsNewer`](crate::Conflict::TableIsNewer), and
    /// [`Database::run`] begins them again. Names are not part of a snapshot: [`Database::table`]
    /// finds the table that has the name now. An older transaction reads the rows that this table
    /// had at its own timestamp.
    ///
    /// # Errors
    /// [`Error::InvalidDefinition`], for example if a column that is dropped or given another type
    /// is in an index, if a new column neither takes NULL nor has a default, or after 255 changes
    /// of the table's layout; [`Error::UnknownColumn`], [`Error::UnknownIndex`];
    /// [`Error::TableExists`], [`Error::IndexExists`];
    /// [`Error::WrongType`] and similar if a default does not fit its column; [`Error::RowTooLarge`] if
    /// a row that was there when the call began would be too large with its new columns;
    /// [`Error::PreparedChanges`]; errors of the commit. If the call fails, nothing has changed.
    /// After [`Error::MediumFailed`], the next opening shows whether it has.
    pub fn alter_table(&self, table: &Table, change: &TableChange) -> Result<Table> {
        self.alter_table_and(table, change, |_| Ok(()))
    }

    /// As [`Database::alter_table`]. What `also` writes commits with the change.
    pub(crate) fn alter_table_and(
        &self,
        table: &Table,
        change: &TableChange,
        also: impl FnMut(&mut Transaction) -> Result<()>,
    ) -> Result<Table> {
        let core = &self.core;
        let _change = core.tables.change_table(&table.inner);
        core.check_open()?;
        let inner = &table.inner;
        core.tables.check_own(inner)?;
        let _changing = self.prepared.change(inner)?;
        let definition = inner.definition().changed(change)?;
        // Names and defaults, and what prepares for dropping an index, make no row longer.
        let frees = definition.layout == inner.definition().layout;
        check_added(&definition.def.name, change)?;
        let (old, name) = (inner.name(), definition.def.name.clone());
        if name != old && core.tables.exists(&name) {
            return Err(Error::TableExists(name));
        }
        let stored = catalog::encode(&definition)?;
        let has_pieces = inner.layouts().can_move_out;
        let layouts = Layouts::new(definition, inner.id)?;
        if !frees && layouts.may_be_too_large() {
            self.check_lengths(table, &layouts)?;
        }
        let pieces = match has_pieces {
            true => None,
            false => core.tables.make_pieces(inner.id, &layouts.definition)?,
        };
        self.store_definition(inner, &stored, frees, also)?;
        // Whatever commits mean here, no row may be on the medium without its layout.
        core.store.medium().fence().map_err(from_medium)?;
        let at = core.registry.after_all();
        core.registry.await_passed(at);
        // Rows of the new layout may have values out of line.
        pieces.into_iter().for_each(|pieces| core.tables.add(pieces));
        inner.change_layouts(layouts.made_at(at));
        Ok(core.tables.renamed(&old, inner, || core.registry.after_all()))
    }

    /// Fails if a row would be too large in the latest of these layouts: it could be read, but neither changed nor
    /// copied into another table.
    fn check_lengths(&self, table: &Table, layouts: &Layouts) -> Result<()> {
        let txn = self.begin_read()?;
        txn.scan(table, Range::all())?.try_for_each(|row| layouts.check_length(&row?.encoded))
    }

    /// Creates a secondary index of a table, which may have rows and be in use.
    ///
    /// A unique index can refuse transactions that run beside the call: if one of them has written a
    /// key that another row has as well, its commit fails with [`Error::DuplicateKey`]. The whole
    /// transaction has been rolled back then.
    ///
    /// # Errors
    /// [`Error::IndexExists`], [`Error::InvalidDefinition`], [`Error::UnknownColumn`];
    /// [`Error::DuplicateKey`] if the index is to be unique and two rows have the same key;
    /// [`Error::Timeout`] if another transaction took very long to commit;
    /// [`Error::PreparedChanges`] if a prepared transaction that has changed rows of the table waits for
    /// its decision, or somebody has one in hand for ten seconds; [`Error::MemoryFull`];
    /// [`Error::Damaged`] if a row cannot be read; [`Error::Closed`] also if closing begins
    /// meanwhile; errors of the commit. If the call fails, there is no index. After [`Error::MediumFailed`], the next opening
    /// shows whether there is.
    pub fn create_index(&self, table: &Table, def: IndexDef) -> Result<Index> {
        self.create_index_with(table, def, |_| ControlFlow::Continue(()))
    }

    /// As [`Database::create_index`], and calls `progress` now and then. If that
    /// returns `Break` or panics, no index is created.
    ///
    /// `progress` must not change the definition of the same table: it would wait for itself.
    ///
    /// # Errors
    /// Those of [`Database::create_index`], and [`Error::Cancelled`].
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let def = TableDef::new("pets").column("id", Type::U32).column("name", Type::String(40)).primary_key(["id"]);
    /// # let pets = db.create_table(def)?;
    /// # db.run(|txn| txn.insert(&pets, &[1u32.into(), "Rex".into()]))?;
    /// db.create_index_with(&pets, IndexDef::new("by_name", ["name"]), |progress| {
    ///     println!("{} of {} rows", progress.done, progress.total);
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn create_index_with(
        &self,
        table: &Table,
        def: IndexDef,
        mut progress: impl FnMut(IndexProgress) -> ControlFlow<()>,
    ) -> Result<Index> {
        let core = &self.core;
        // Definitions of other tables can change while it is filled.
        let _change = table.inner.change();
        core.check_open()?;
        let inner = &table.inner;
        core.tables.check_own(inner)?;
        if inner.indexes().iter().any(|i| !i.is_dropped() && *i.name() == *def.name) {
            return Err(Error::IndexExists { table: inner.name(), index: def.name });
        }
        core.load_apart(inner)?;
        let mut whole = inner.definition();
        whole.def.indexes.push(def.clone());
        whole.check()?;
        let stored = catalog::encode(&whole)?;
        let number = inner.next_index_number();
        let index = Arc::new(IndexInner::new(&def, number, inner.schema())?);
        index.set_empty(inner.schema(), &core.tables.arena);
        // From here on writers enter their keys, and those that are prepared later look
        // whether they have. The build adds those of older rows.
        let decided = |change: &dyn Fn(), goes_on: &mut dyn FnMut() -> Result<()>| {
            self.prepared.change_when_decided(inner, goes_on).map(|_changing| change())
        };
        let mut goes_on = || match progress(IndexProgress { done: 0, total: inner.tuples_end() }) {
            ControlFlow::Break(()) => Err(Error::Cancelled),
            ControlFlow::Continue(()) if !core.gate.is_open() => Err(Error::Closed),
            ControlFlow::Continue(()) => Ok(()),
        };
        decided(&|| drop(inner.change_indexes(|list| list.push(Arc::clone(&index)))), &mut goes_on)?;
        let mut unfinished = Unfinished { core, table: inner, index: &index, goes: true };
        core.fill_index(inner, &index, decided, &mut progress)?;
        {
            let _change = core.tables.change();
            self.store_definition(inner, &stored, false, |_| Ok(()))?;
        }
        unfinished.goes = false;
        index.set_ready();
        drop(unfinished);
        Ok(Index::of(table, index))
    }

    /// Drops a secondary index.
    ///
    /// Scans that have begun go on. Other calls on the index fail with [`Error::UnknownIndex`] from
    /// now on, also in transactions that began before. These maintain the index until they end, so
    /// that what they have read through it stays protected. Its memory is freed after that.
    ///
    /// # Errors
    /// [`Error::UnknownIndex`], [`Error::PreparedChanges`], and errors of the commit. If the call
    /// fails, the index stays. After [`Error::MediumFailed`], the next opening shows whether it
    /// does.
    pub fn drop_index(&self, table: &Table, name: &str) -> Result<()> {
        let core = &self.core;
        let _change = core.tables.change_table(&table.inner);
        core.check_open()?;
        core.tables.check_own(&table.inner)?;
        let index = table.index(name)?;
        let _changing = self.prepared.change(&table.inner)?;
        core.load_apart(&table.inner)?;
        let mut whole = table.inner.definition();
        whole.def.indexes.retain(|i| i.name != name);
        let stored = catalog::encode(&whole)?;
        self.store_definition(&table.inner, &stored, true, |_| Ok(()))?;
        let at = core.tables.drop_index(&table.inner, &index.inner, || core.registry.after_all());
        // Without older transactions it can go at once.
        core.registry.await_passed(at);
        core.forget_indexes();
        Ok(())
    }

    /// A table that nobody knows yet.
    fn new_table(&self, def: TableDef) -> Result<NewTable> {
        let tables = &self.core.tables;
        let id = tables.next_id();
        let table = tables.make_empty(id, def)?;
        table.inner.set_defined_from(self.core.registry.before_all());
        let definition = &table.inner.layouts().definition;
        let stored = catalog::encode(definition)?;
        let pieces = tables.make_pieces(id, definition)?;
        Ok(NewTable { table, pieces, stored })
    }

    /// `frees` is as for a transaction. What `also` writes commits with the definition.
    fn store_definition(
        &self,
        table: &TableInner,
        stored: &[u8],
        frees: bool,
        mut also: impl FnMut(&mut Transaction) -> Result<()>,
    ) -> Result<()> {
        self.change_catalog(|txn, catalog| {
            txn.frees = frees;
            txn.update(catalog, &catalog::key(table.id), &[(1, Value::Bytes(stored))])?;
            also(txn)
        })
    }

    /// Commits one change of the catalog. Changes come one at a time and no
    /// transaction reads the catalog, so nothing can conflict with a change. What is written beside
    /// it can ([`Database::alter_table_and`]), and then both are written again. It
    /// commits late, which keeps it from heeding the read marks of tuples that
    /// share a cell with the catalog's. Where all slots are taken it has waited for as long
    /// as the options say, and does not begin again.
    fn change_catalog<T>(&self, mut change: impl FnMut(&mut Transaction, &Table) -> Result<T>) -> Result<()> {
        // A definition may rest on what is in flight: that no two rows have a key.
        self.core.store.medium().fence().map_err(from_medium)?;
        let catalog = self.core.tables.catalog()?;
        let late = TransactionOptions::new().isolation(Isolation::ReadCommitted);
        if is_removed(Control::LateDefinitions) {
            let mut txn = self.begin()?;
            change(&mut txn, &catalog)?;
            return txn.commit().map(drop);
        }
        let changed = self.run_with(late, |txn| Ok(change(txn, &catalog).map(|_| ())?));
        changed.map_err(|BegunOnce(error)| error)
    }
}

/// What a change of the catalog fails with.
struct BegunOnce(Error);

impl From<Error> for BegunOnce {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl TransactionError for BegunOnce {
    fn of_database(&self) -> Option<&Error> {
        let is_final = matches!(self.0, Error::TooManyTransactions { .. });
        (!is_final).then_some(&self.0)
    }
}

/// A table that is not in the catalog yet.
struct NewTable {
    table: Table,
    /// That of its values out of line.
    pieces: Option<Table>,
    /// Its definition as the catalog has it.
    stored: Vec<u8>,
}

impl NewTable {
    fn id(&self) -> TableId {
        self.table.inner.id
    }

    /// Its row in the catalog.
    fn row(&self) -> [Value<'_>; 2] {
        [Value::UInt(self.id().0.into()), Value::Bytes(&self.stored)]
    }
}

#[cfg(test)]
#[path = "definitions_test.rs"]
mod tests;
