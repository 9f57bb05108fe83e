//! A row that is being changed.

use pantile_base::{TableId, Timestamp};

use crate::engine::table::Table;
use crate::transactions::transaction::Transaction;
use crate::types::columns::ColumnRef;
use crate::types::encoding::{self, Encoded, OUT_OF_LINE_BYTES};
use crate::types::error::{Error, Result};
use crate::types::fit::check;
use crate::types::from_value::FromValue;
use crate::types::key::Key;
use crate::types::layout::Schema;
use crate::types::pieces::{OutOfLine, PIECE};
use crate::types::row::Row;
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
///         let n: i64 = row.get("n")?;
///         row.set("n", (n * 2).into())?;
///         Ok(n < 100) // false keeps the row as it was
///     })
/// })?;
/// assert!(changed);
/// # Ok::<(), Error>(())
/// ```
pub struct RowEdit<'e> {
    txn: &'e Transaction,
    table: &'e Table,
    /// The layout that the row has after this.
    schema: &'e Schema,
    bytes: Vec<u8>,
    /// Values to be stored out of line, by id.
    large: Vec<(u64, Vec<u8>)>,
}

/// A row that has been changed.
pub(super) struct Edited {
    pub layout: u8,
    pub bytes: Vec<u8>,
    /// New values out of line, by id.
    pub large: Vec<(u64, Vec<u8>)>,
}

impl<'e> RowEdit<'e> {
    /// `bytes` is where the row goes.
    pub(super) fn new(
        txn: &'e Transaction,
        table: &'e Table,
        row: Encoded<'e>,
        bytes: Vec<u8>,
    ) -> Result<Self> {
        // The columns of now, some of which may have been added since the row was
        // read.
        let layouts = table.inner.layouts_at(txn.writes_at());
        debug_assert!(
            row.schema.layout <= layouts.latest.layout,
            "no version is older than its layout (I-26)"
        );
        let row = Encoded { schema: layouts.get(row.schema.layout), ..row };
        let schema = &layouts.latest;
        let mut edit = Self { txn, table, schema, bytes, large: Vec::new() };
        if row.schema.layout == schema.layout {
            edit.bytes.extend_from_slice(row.bytes);
        } else {
            let large = &mut edit.large;
            encoding::convert(&row, schema, &mut edit.bytes, |value| {
                let id = txn.new_large_id();
                large.push((id, value.to_vec()));
                id
            })?;
        }
        Ok(edit)
    }

    pub(super) fn into_parts(mut self) -> Edited {
        if !self.large.is_empty() {
            // A value that was moved out may have been replaced again.
            let kept = self.row().encoded.values_out_of_line();
            self.large.retain(|(id, _)| kept.iter().any(|(other, _)| other == id));
        }
        Edited { layout: self.schema.layout, bytes: self.bytes, large: self.large }
    }

    /// The row as it is so far.
    pub fn row(&self) -> Row<'_> {
        let encoded = Encoded { schema: self.schema, bytes: &self.bytes };
        Row { encoded, columns: &self.table.columns, out_of_line: self, at: Timestamp::MAX }
    }

    /// The value of a column; see [`Row::get`].
    ///
    /// # Errors
    /// As [`Row::get`].
    #[inline]
    pub fn get<'s, T: FromValue<'s>>(&'s self, column: impl ColumnRef) -> Result<T> {
        self.row().get(column)
    }

    /// Sets a column.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`], [`Error::PrimaryKeyChanged`], and errors of
    /// values that do not fit the column, which is unchanged then.
    #[inline]
    pub fn set(&mut self, column: impl ColumnRef, value: Value<'_>) -> Result<()> {
        let column = self.id(&column)?;
        self.set_id(column, value)
    }

    #[inline]
    fn id(&self, column: &impl ColumnRef) -> Result<usize> {
        column.resolve(&self.table.columns, &self.schema.name)
    }

    #[inline]
    fn set_id(&mut self, column: usize, value: Value<'_>) -> Result<()> {
        let schema = self.schema;
        let definition = &schema.columns[column];
        if !definition.is_stored() {
            return self.table.columns.check_not_dropped(schema, column);
        }
        let is_key = schema.primary_key.contains(&column);
        if !is_key && encoding::overwrite_plain(&mut self.bytes, definition, &value) {
            return Ok(());
        }
        check(schema, column, &value)?;
        if is_key {
            return self.check_same_key(column, value);
        }
        if encoding::overwrite_fixed(&mut self.bytes, definition, &value) {
            return Ok(());
        }
        match value {
            Value::Str(text) => self.set_variable(column, Some(text.as_bytes())),
            Value::Bytes(bytes) => self.set_variable(column, Some(bytes)),
            _ => self.set_variable(column, None),
        }
    }

    /// Sets several columns. Whether the row fits is decided when all are set.
    pub(super) fn set_all<C: ColumnRef>(&mut self, changes: &[(C, Value<'_>)]) -> Result<()> {
        for (done, (column, value)) in changes.iter().enumerate() {
            let column = self.id(column)?;
            match self.set_id(column, *value) {
                Err(Error::RowTooLarge { .. }) => {
                    let rest = changes[done..].iter().map(|(column, value)| Ok((self.id(column)?, *value)));
                    let rest: Vec<_> = rest.collect::<Result<_>>()?;
                    return self.set_smallest_first(&rest);
                }
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Sets columns in an order in which no row in between is larger than need
    /// be. Of several changes of one column the last one counts. Columns go by id.
    #[cold]
    fn set_smallest_first(&mut self, changes: &[(usize, Value<'_>)]) -> Result<()> {
        let is_last = |n: usize| changes[n + 1..].iter().all(|(later, _)| *later != changes[n].0);
        let mut left: Vec<_> = (0..changes.len()).filter(|&n| is_last(n)).map(|n| changes[n]).collect();
        loop {
            let before = left.len();
            let mut too_large = None;
            let mut still = Vec::new();
            for (column, value) in left {
                match self.set_id(column, value) {
                    Err(error @ Error::RowTooLarge { .. }) => {
                        too_large = Some(error);
                        still.push((column, value));
                    }
                    outcome => outcome?,
                }
            }
            match too_large {
                Some(error) if still.len() == before => return Err(error),
                Some(_) => left = still,
                None => return Ok(()),
            }
        }
    }

    #[cold]
    fn check_same_key(&self, column: usize, value: Value<'_>) -> Result<()> {
        let (mut old, mut new) = (Key::default(), Key::default());
        old.set_primary_column(&Encoded { schema: self.schema, bytes: &self.bytes }, column);
        new.set_values(self.schema, &[column], &[value])?;
        if old.words() == new.words() {
            return Ok(());
        }
        Err(Error::PrimaryKeyChanged { table: self.schema.name.clone() })
    }

    /// Sets a value of variable length. Moves the row's longest values out of
    /// line until the row fits.
    fn set_variable(&mut self, n: usize, value: Option<&[u8]>) -> Result<()> {
        let schema = self.schema;
        let len = value.map_or(0, <[u8]>::len);
        // The reference to the value, once it has moved out itself.
        let mut moved: Option<[u8; OUT_OF_LINE_BYTES]> = None;
        loop {
            let stored = moved.as_ref().map(<[u8; _]>::as_slice).or(value);
            let outcome = encoding::splice(schema, &mut self.bytes, n, stored, moved.is_some());
            if !matches!(outcome, Err(Error::RowTooLarge { .. })) {
                return outcome;
            }
            let can_move = schema.columns[n].can_move_out() && moved.is_none() && len > OUT_OF_LINE_BYTES;
            match encoding::longest_movable(&Encoded { schema, bytes: &self.bytes }, n) {
                Some((other, longest)) if longest > len || !can_move => self.move_out(other)?,
                _ if can_move => moved = Some(self.keep_out_of_line(value.unwrap_or_default().to_vec())),
                _ => return outcome,
            }
        }
    }

    /// Moves a value of the row out of line.
    fn move_out(&mut self, n: usize) -> Result<()> {
        let schema = self.schema;
        let value = Encoded { schema, bytes: &self.bytes }.raw(&schema.columns[n]).to_vec();
        let reference = self.keep_out_of_line(value);
        encoding::splice(schema, &mut self.bytes, n, Some(&reference), true)
    }

    /// Keeps a value to be stored out of line. Returns the reference to it.
    fn keep_out_of_line(&mut self, value: Vec<u8>) -> [u8; OUT_OF_LINE_BYTES] {
        let id = self.txn.new_large_id();
        let reference = encoding::reference(id, value.len() as u64);
        self.large.push((id, value));
        reference
    }
}

impl OutOfLine for RowEdit<'_> {
    fn piece(&self, of: TableId, id: u64, piece: usize, at: Timestamp) -> Result<&[u8]> {
        match self.large.iter().find(|(large, _)| *large == id) {
            Some((_, value)) => Ok(value.chunks(PIECE).nth(piece).unwrap_or_default()),
            None => self.txn.piece(of, id, piece, at),
        }
    }
}

impl std::fmt::Debug for RowEdit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.row().fmt(f)
    }
}
