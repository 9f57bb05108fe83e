//! The rows of tables as bytes of a file: what a snapshot has.
//!
//! A file is a sequence of [`Item`]s: each table with its rows behind it, and the number of all rows at the end, so that
//! a file that was cut off is noticed.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};

use pantile::{Decimal, OwnedValue, Range, Row, Table, Transaction, Value};
use serde::{Deserialize, Serialize};

use crate::failed::{Failure, Outcome};

#[derive(Serialize, Deserialize)]
enum Item {
    Table(String),
    Row(Vec<Cell>),
    End { rows: u64 },
}

/// A value as it is in a file.
#[derive(Serialize, Deserialize)]
enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Decimal { units: i128, scale: u8 },
    Str(String),
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    Timestamp(i64),
}

impl Cell {
    fn of(value: OwnedValue) -> Outcome<Self> {
        Ok(match value {
            OwnedValue::Null => Self::Null,
            OwnedValue::Bool(v) => Self::Bool(v),
            OwnedValue::Int(v) => Self::Int(v),
            OwnedValue::UInt(v) => Self::UInt(v),
            OwnedValue::Float(v) => Self::Float(v),
            OwnedValue::Decimal(Decimal { units, scale }) => Self::Decimal { units, scale },
            OwnedValue::Str(v) => Self::Str(v),
            OwnedValue::Bytes(v) => Self::Bytes(v),
            OwnedValue::Timestamp(v) => Self::Timestamp(v),
            other => return Err(format!("a snapshot cannot hold {other:?}; none was made").into()),
        })
    }

    fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(*v),
            Self::Int(v) => Value::Int(*v),
            Self::UInt(v) => Value::UInt(*v),
            Self::Float(v) => Value::Float(*v),
            Self::Decimal { units, scale } => Value::Decimal(Decimal::new(*units, *scale)),
            Self::Str(v) => Value::Str(v),
            Self::Bytes(v) => Value::Bytes(v),
            Self::Timestamp(v) => Value::Timestamp(*v),
        }
    }
}

/// Writes all rows of the tables, as the transaction sees them.
pub fn write(tables: &[Table], txn: &Transaction, file: &File) -> Outcome<()> {
    let mut file = BufWriter::new(file);
    let mut rows = 0;
    for table in tables {
        put(&mut file, &Item::Table(table.name().to_owned()))?;
        for row in txn.scan(table, Range::all())? {
            put(&mut file, &Item::Row(cells(&row?)?))?;
            rows += 1;
        }
    }
    put(&mut file, &Item::End { rows })?;
    Ok(file.flush()?)
}

fn put(file: &mut impl Write, item: &Item) -> Outcome<()> {
    Ok(rmp_serde::encode::write(file, item)?)
}

fn cells(row: &Row<'_>) -> Outcome<Vec<Cell>> {
    row.to_values()?.into_iter().map(Cell::of).collect()
}

/// Replaces all rows of the tables by those of a file.
pub fn replace(tables: &[Table], txn: &mut Transaction, mut file: &File) -> Outcome<()> {
    for table in tables {
        txn.delete_range(table, Range::all())?;
    }
    file.rewind()?;
    Reading { tables, table: None, rows: 0 }.read(txn, BufReader::new(file))
}

struct Reading<'t> {
    tables: &'t [Table],
    /// The one whose rows come next.
    table: Option<&'t Table>,
    rows: u64,
}

impl<'t> Reading<'t> {
    fn read(mut self, txn: &mut Transaction, mut file: impl Read) -> Outcome<()> {
        loop {
            match rmp_serde::from_read(&mut file)? {
                Item::Table(name) => self.table = Some(self.table_named(&name)?),
                Item::Row(cells) => self.insert(txn, &cells)?,
                Item::End { rows } if rows == self.rows => return Ok(()),
                Item::End { rows } => return Err(unfit(&format!("it has {} of {rows} rows", self.rows))),
            }
        }
    }

    fn table_named(&self, name: &str) -> Outcome<&'t Table> {
        let table = self.tables.iter().find(|table| table.name() == name);
        table.ok_or_else(|| unfit(&format!("the state of this node has no table {name:?}")))
    }

    fn insert(&mut self, txn: &mut Transaction, cells: &[Cell]) -> Outcome<()> {
        let table = self.table.ok_or_else(|| unfit("it begins with a row"))?;
        txn.insert(table, &cells.iter().map(Cell::value).collect::<Vec<_>>())?;
        self.rows += 1;
        Ok(())
    }
}

fn unfit(why: &str) -> Failure {
    format!("this is no snapshot of the same state: {why}; the state is as before").into()
}
