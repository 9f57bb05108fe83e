//! A row that is being changed.

use std::borrow::Cow;

use pantile_base::{TableId, Timestamp};

use crate::engine::table::TableInner;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::key::Key;
use crate::types::row::{self, Encoded, FromValue, OutOfLine, Row};
use crate::types::value::Value;

/// A copy of a row for a closure to change; see [`Transaction::modify`].
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
/// let changed = db.run(|txn| {
///     txn.modify(&t, &[1u64.into()], |row| {
///         let n: i64 = row.get(1)?;
///         row.set(1, (n * 2).into())?;
///         Ok(n < 100) // false keeps the row as it was
///     })
/// })?;
/// assert!(changed);
/// # Ok::<(), Error>(())
/// ```
pub struct RowEdit<'e> {
    txn: &'e Transaction,
    table: &'e TableInner,
    bytes: Vec<u8>,
    /// Values to be stored out of line, by id.
    large: Vec<(u64, Vec<u8>)>,
}

impl<'e> RowEdit<'e> {
    pub(super) fn new(txn: &'e Transaction, table: &'e TableInner, bytes: Vec<u8>) -> Self {
        Self { txn, table, bytes, large: Vec::new() }
    }

    pub(super) fn into_parts(mut self) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
        if !self.large.is_empty() {
            // A value that was moved out may have been replaced again.
            let kept = self.row().encoded.values_out_of_line();
            self.large.retain(|(id, _)| kept.iter().any(|(other, _)| other == id));
        }
        (self.bytes, self.large)
    }

    /// The row as it is so far.
    pub fn row(&self) -> Row<'_> {
        let encoded = Encoded { schema: &self.table.schema, bytes: &self.bytes };
        Row { encoded, out_of_line: self, at: Timestamp::MAX }
    }

    /// The value of a column; see [`Row::get`].
    ///
    /// # Errors
    /// As [`Row::get`].
    #[inline]
    pub fn get<'s, T: FromValue<'s>>(&'s self, column: usize) -> Result<T> {
        self.row().get(column)
    }

    /// The bytes of a column; see [`Row::read`].
    ///
    /// # Errors
    /// As [`Row::read`].
    pub fn read(&self, column: usize) -> Result<Option<Cow<'_, [u8]>>> {
        self.row().read(column)
    }

    /// Sets a column.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`], [`Error::PrimaryKeyChanged`], and errors of
    /// values that do not fit the column, which is unchanged then.
    #[inline]
    pub fn set(&mut self, column: usize, value: Value<'_>) -> Result<()> {
        let schema = &self.table.schema;
        let Some(definition) = schema.columns.get(column) else {
            return Err(Error::UnknownColumn { table: schema.name.clone(), column: column.to_string() });
        };
        row::check(schema, definition, &value)?;
        if schema.primary_key.contains(&column) {
            return self.check_same_key(column, value);
        }
        if row::overwrite_fixed(&mut self.bytes, definition, &value) {
            return Ok(());
        }
        match value {
            Value::Str(text) => self.set_variable(column, Some(text.as_bytes())),
            Value::Bytes(bytes) => self.set_variable(column, Some(bytes)),
            _ => self.set_variable(column, None),
        }
    }

    #[cold]
    fn check_same_key(&self, column: usize, value: Value<'_>) -> Result<()> {
        let (mut old, mut new) = (Key::default(), Key::default());
        old.set_row(&Encoded { schema: &self.table.schema, bytes: &self.bytes }, &[column]);
        new.set_values(&self.table.schema, &[column], &[value])?;
        if old.words() == new.words() {
            return Ok(());
        }
        Err(Error::PrimaryKeyChanged { table: self.table.schema.name.clone() })
    }

    /// Sets a value of variable length. Moves the row's longest values out of
    /// line until the row fits.
    fn set_variable(&mut self, n: usize, value: Option<&[u8]>) -> Result<()> {
        let schema = &self.table.schema;
        let len = value.map_or(0, <[u8]>::len);
        loop {
            let outcome = row::splice(schema, &mut self.bytes, n, value, false);
            if !matches!(outcome, Err(Error::RowTooLarge { .. })) {
                return outcome;
            }
            let encoded = Encoded { schema, bytes: &self.bytes };
            let other = row::longest_movable(&encoded)
                .filter(|&m| m != n && encoded.raw(&schema.columns[m]).len() > len);
            match other {
                Some(other) => {
                    let moved = encoded.raw(&schema.columns[other]).to_vec();
                    self.move_out(other, moved)?;
                }
                None if schema.columns[n].can_move_out() => {
                    return self.move_out(n, value.unwrap_or_default().to_vec());
                }
                None => return outcome,
            }
        }
    }

    fn move_out(&mut self, n: usize, value: Vec<u8>) -> Result<()> {
        let id = self.txn.new_large_id();
        let mut reference = id.to_le_bytes().to_vec();
        reference.extend_from_slice(&(value.len() as u64).to_le_bytes());
        row::splice(&self.table.schema, &mut self.bytes, n, Some(&reference), true)?;
        self.large.push((id, value));
        Ok(())
    }
}

impl OutOfLine for RowEdit<'_> {
    fn read_out_of_line(&self, of: TableId, id: u64, len: u64, at: Timestamp) -> Result<Vec<u8>> {
        match self.large.iter().find(|(large, _)| *large == id) {
            Some((_, value)) => Ok(value.clone()),
            None => self.txn.read_out_of_line(of, id, len, at),
        }
    }
}

impl std::fmt::Debug for RowEdit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.row().fmt(f)
    }
}
