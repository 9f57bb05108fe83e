//! Rows of a table, in the order of their keys or of an index.

use std::ops::{Bound, Deref};

use gluesql_core::ast::IndexOperator;
use gluesql_core::data::{Key, Value};
use gluesql_core::error::Error;
use gluesql_core::store::IndexError;
use pantile::{Cursor, Range, Transaction};

use crate::PantileStorage;
use crate::expression::Expression;
use crate::failed::Outcome;
use crate::order;
use crate::tables::{Tables, unpacked};

/// The transaction that runs, or one of the reader's own.
pub enum Reading<'a> {
    Running(&'a Transaction),
    Own(Box<Transaction>),
}

impl Deref for Reading<'_> {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        match self {
            Reading::Running(txn) => txn,
            Reading::Own(txn) => txn,
        }
    }
}

pub struct Rows<'a> {
    pub storage: &'a PantileStorage,
    pub txn: Reading<'a>,
    pub cursor: Cursor,
    /// The table whose index the cursor is in.
    pub indexed: Option<u64>,
    /// What is true of the rows that are wanted.
    pub filter: Option<Expression>,
}

impl Rows<'_> {
    fn advance(&mut self) -> Outcome<Option<(Key, Vec<Value>)>> {
        while let Some(row) = self.cursor.next(&self.txn)? {
            let (key, values): (Key, Vec<Value>) = match self.indexed {
                None => unpacked(&row, 2)?,
                Some(table) => {
                    let key = [table.into(), row.get("key")?];
                    let found = self.txn.get(&self.storage.tables.rows, &key)?;
                    unpacked(&found.ok_or(IndexError::ConflictOnEmptyIndexValueScan)?, 2)?
                }
            };
            if self.filter.as_ref().map_or(Ok(true), |filter| filter.is_true(&values))? {
                return Ok(Some((key, values)));
            }
        }
        Ok(None)
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<(Key, Vec<Value>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let advanced = self.advance();
        self.storage.noted(advanced).transpose()
    }
}

/// A cursor over the entries of an index that compare so with a value.
pub fn entries(
    tables: &Tables,
    txn: &Transaction,
    index: u64,
    compared: Option<(&IndexOperator, &[u8])>,
    reverse: bool,
) -> Outcome<Cursor> {
    let all = [index.into()];
    let at = [index.into(), compared.map_or(&[][..], |(_, value)| value).into()];
    let range = match compared.map(|(operator, _)| operator) {
        None => Range::prefix(&all),
        Some(IndexOperator::Eq) => Range::prefix(&at),
        Some(IndexOperator::Gt) => Range::prefix(&all).from(Bound::Excluded(&at)),
        Some(IndexOperator::GtEq) => Range::prefix(&all).from(Bound::Included(&at)),
        Some(IndexOperator::Lt) => Range::prefix(&all).to(Bound::Excluded(&at)),
        Some(IndexOperator::LtEq) => Range::prefix(&all).to(Bound::Included(&at)),
    };
    Ok(txn.index_cursor(&tables.by_value, if reverse { range.reverse() } else { range })?)
}

/// Whether the order of an index is the order in which its values compare with this one: all are of one class.
pub fn is_comparable(tables: &Tables, txn: &Transaction, index: u64, value: &[u8]) -> Outcome<bool> {
    if value == [order::NULL] {
        return Ok(true);
    }
    for reverse in [false, true] {
        let mut values = entries(tables, txn, index, Some((&IndexOperator::Lt, &[order::NULL])), reverse)?;
        let class = values.next(txn)?.map(|row| row.get::<Vec<u8>>("value")).transpose()?;
        if class.is_some_and(|other| other[0] != value[0]) {
            return Ok(false);
        }
    }
    Ok(true)
}
