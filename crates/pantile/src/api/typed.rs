//! Tables whose rows are structs.

use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::api::bulk::{self, BulkError, Loaded};
use crate::api::database::Database;
use crate::engine::table::{Index, Table};
use crate::transactions::scan::Scan;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::range::Range;
use crate::types::record::Record;
use crate::types::row::Row;
use crate::types::value::Value;

/// A handle of a table whose rows are read and written as structs; cheap to clone.
///
/// Each method does the same as the method of that name of [`Transaction`] or [`Database`]. For all
/// other calls, use [`TypedTable::table`].
#[cfg_attr(feature = "derive", doc = "```")]
#[cfg_attr(not(feature = "derive"), doc = "```ignore")]
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// #[derive(Record, Clone, PartialEq, Debug)]
/// struct Order {
///     #[record(primary_key)]
///     id: u64,
///     #[record(index)]
///     customer: u32,
///     #[record(decimal(12, 2))]
///     total: Decimal,
///     #[record(max = 200)]
///     note: Option<String>,
/// }
///
/// let orders = db.open_typed::<Order>()?; // makes the table "order" if there is none
/// let first = Order { id: 1, customer: 7, total: Decimal::new(1250, 2), note: None };
/// db.run(|txn| orders.insert(txn, &first))?;
///
/// let txn = db.begin_read()?;
/// assert_eq!(orders.get(&txn, 1)?, Some(first));
/// let by_customer = orders.table().index("by_customer")?;
/// for order in orders.scan_index(&txn, &by_customer, Range::prefix(&[7.into()]))? {
///     assert_eq!(order?.total.to_string(), "12.50");
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct TypedTable<T> {
    table: Table,
    rows: PhantomData<fn() -> T>,
}

impl Database {
    /// Returns the table of a struct, and creates it if there is none of its name.
    ///
    /// # Errors
    /// As [`Database::open_or_create`]: [`Error::DefinitionDiffers`] if the existing table has
    /// another definition.
    pub fn open_typed<T: Record>(&self) -> Result<TypedTable<T>> {
        let table = self.open_or_create(T::table_def())?;
        Ok(TypedTable { table, rows: PhantomData })
    }
}

impl<T: Record> TypedTable<T> {
    /// Reads and writes an existing table as one of these structs, whatever its name and indexes.
    ///
    /// # Errors
    /// [`Error::DefinitionDiffers`] if its columns or its primary key differ from the
    /// struct's.
    pub fn of(table: Table) -> Result<Self> {
        let (wanted, found) = (T::table_def(), table.definition());
        let wanted = crate::TableDef { indexes: found.indexes.clone(), ..wanted };
        match wanted.differences(&found) {
            None => Ok(Self { table, rows: PhantomData }),
            Some(differences) => Err(Error::DefinitionDiffers { table: found.name, differences }),
        }
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn insert(&self, txn: &mut Transaction, row: &T) -> Result<()> {
        txn.insert(&self.table, row.values().as_ref())
    }

    /// Adds rows, all of them or none. Returns their number.
    ///
    /// # Errors
    /// As [`Transaction::insert_many`].
    pub fn insert_many<'r>(&self, txn: &mut Transaction, rows: impl IntoIterator<Item = &'r T>) -> Result<u64>
    where
        T: 'r,
    {
        // (A path to the function, `T::values`, is what Rust before 1.90 does not take.)
        txn.insert_many(&self.table, rows.into_iter().map(|row| row.values()))
    }

    /// Adds any number of rows, in transactions of about a thousand.
    ///
    /// # Errors
    /// As [`Database::bulk_insert`].
    pub fn bulk_insert(&self, db: &Database, rows: impl IntoIterator<Item = T>) -> Result<u64, BulkError> {
        bulk::load(db, &self.table, rows.into_iter().map(Typed))
    }

    /// Adds a row or replaces the one with its primary key. Returns whether there
    /// was one.
    ///
    /// # Errors
    /// As [`Transaction::upsert`].
    pub fn upsert(&self, txn: &mut Transaction, row: &T) -> Result<bool> {
        txn.upsert(&self.table, row.values().as_ref())
    }

    /// Adds a row or replaces the one with its primary key. Returns the row that was replaced, if
    /// there was one.
    ///
    /// # Errors
    /// As [`Transaction::replace`].
    pub fn replace(&self, txn: &mut Transaction, row: &T) -> Result<Option<T>> {
        txn.replace_read(&self.table, row.values().as_ref(), |row| self.read(row))
    }

    /// Sets all columns of the row with the struct's primary key. Returns whether there is such a
    /// row.
    ///
    /// # Errors
    /// As [`Transaction::update`].
    pub fn update(&self, txn: &mut Transaction, row: &T) -> Result<bool> {
        let key = T::key_values(row.key());
        let values = row.values();
        let changes: SmallVec<[(usize, Value<'_>); 16]> =
            values.as_ref().iter().copied().enumerate().collect();
        txn.update(&self.table, key.as_ref(), &changes)
    }

    /// Deletes the row with this primary key. Returns whether there was one.
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    pub fn delete(&self, txn: &mut Transaction, key: T::Key<'_>) -> Result<bool> {
        txn.delete(&self.table, T::key_values(key).as_ref())
    }

    /// The row with this primary key, or `None`.
    ///
    /// # Errors
    /// As [`Transaction::get`] and [`Row::get`].
    pub fn get(&self, txn: &Transaction, key: T::Key<'_>) -> Result<Option<T>> {
        let row = txn.get(&self.table, T::key_values(key).as_ref())?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// Reads the row with this primary key and locks it.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`] and [`Row::get`].
    pub fn get_for_update(&self, txn: &mut Transaction, key: T::Key<'_>) -> Result<Option<T>> {
        let row = txn.get_for_update(&self.table, T::key_values(key).as_ref())?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// The rows of a range of primary keys.
    ///
    /// # Errors
    /// As [`Transaction::scan`]; each row may be an error of [`Row::get`].
    pub fn scan<'t>(
        &'t self,
        txn: &'t Transaction,
        range: Range<'_>,
    ) -> Result<impl Iterator<Item = Result<T>> + use<'t, T>> {
        Ok(self.read_all(txn.scan(&self.table, range)?))
    }

    /// The rows of a range of keys of an index of this table, in the index's order.
    ///
    /// # Errors
    /// As [`Transaction::scan_index`]; each row may be an error of [`Row::get`].
    pub fn scan_index<'t>(
        &'t self,
        txn: &'t Transaction,
        index: &'t Index,
        range: Range<'_>,
    ) -> Result<impl Iterator<Item = Result<T>> + use<'t, T>> {
        Ok(self.read_all(txn.scan_index(index, range)?))
    }

    fn read_all<'t>(&'t self, rows: Scan<'t>) -> impl Iterator<Item = Result<T>> + use<'t, T> {
        rows.map(|row| self.read(&row?))
    }

    /// By numbers if the row comes through this handle's columns, which were compared
    /// with the struct's, and otherwise by names.
    #[inline]
    fn read(&self, row: &Row<'_>) -> Result<T> {
        if std::ptr::eq(row.columns, &*self.table.columns) { T::read(row, |n| n) } else { row.to() }
    }
}

struct Typed<T>(T);

impl<T: Record> Loaded for Typed<T> {
    fn with_values<R>(&self, act: impl FnOnce(&[Value<'_>]) -> R) -> R {
        act(self.0.values().as_ref())
    }
}

impl<T> Clone for TypedTable<T> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), rows: PhantomData }
    }
}

impl<T> std::fmt::Debug for TypedTable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TypedTable").field(&self.table.name()).finish()
    }
}
