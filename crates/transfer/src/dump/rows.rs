//! Writing the rows of a table.

use std::io::Write;

use pantile::{Error as DatabaseError, OwnedValue, Range, Row, Table, TableDef, Transaction, Value};

use crate::dump::left_out::{self, Call};
use crate::dump::out::Out;
use crate::error::Error;
use crate::format::Format;
use crate::{field, json};

/// The rows of a table in a snapshot.
pub struct Rows<'r> {
    pub txn: &'r Transaction,
    pub table: &'r Table,
    pub def: &'r TableDef,
    /// Called with rows that are damaged, which are left out then.
    pub left_out: Option<Call<'r>>,
}

impl Rows<'_> {
    /// Writes rows for people and other programs.
    pub fn write<W: Write>(&self, format: Format, out: &mut Out<'_, W>) -> Result<u64, Error> {
        match format {
            Format::Csv => self.csv(out),
            Format::JsonLines => self.objects(out),
        }
    }

    /// Writes an array for each row, and returns how many there are.
    pub fn arrays<W: Write>(&self, out: &mut Out<'_, W>) -> Result<u64, Error> {
        self.each(out, |row, buffer| {
            for (n, column) in self.def.columns.iter().enumerate() {
                buffer.push(if n == 0 { b'[' } else { b',' });
                self.with_value(row, n, |value| json::write_value(column.ty, &value, buffer))?;
            }
            buffer.extend_from_slice(b"]\n");
            Ok(())
        })
    }

    fn objects<W: Write>(&self, out: &mut Out<'_, W>) -> Result<u64, Error> {
        let name = |name: &str| {
            let mut text = Vec::new();
            json::write_string(name, &mut text);
            text.push(b':');
            text
        };
        let names: Vec<Vec<u8>> = self.def.columns.iter().map(|column| name(&column.name)).collect();
        self.each(out, |row, buffer| {
            for (n, column) in self.def.columns.iter().enumerate() {
                buffer.push(if n == 0 { b'{' } else { b',' });
                buffer.extend_from_slice(&names[n]);
                self.with_value(row, n, |value| json::write_value(column.ty, &value, buffer))?;
            }
            buffer.extend_from_slice(b"}\n");
            Ok(())
        })
    }

    fn csv<W: Write>(&self, out: &mut Out<'_, W>) -> Result<u64, Error> {
        let names = self.def.columns.iter().map(|column| column.name.as_bytes());
        field::append_record(names, &mut out.buffer);
        let (mut fields, mut ends) = (Vec::new(), Vec::new());
        self.each(out, |row, buffer| {
            fields.clear();
            ends.clear();
            for (n, column) in self.def.columns.iter().enumerate() {
                self.with_value(row, n, |value| field::append(column.ty, &value, &mut fields))?;
                ends.push(fields.len());
            }
            let starts = std::iter::once(&0).chain(&ends);
            field::append_record(starts.zip(&ends).map(|(start, end)| &fields[*start..*end]), buffer);
            Ok(())
        })
    }

    fn each<W: Write>(
        &self,
        out: &mut Out<'_, W>,
        mut put: impl FnMut(&Row<'_>, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let before = out.rows();
        for row in self.txn.scan(self.table, Range::all())? {
            let (row, start) = (row?, out.buffer.len());
            match put(&row, &mut out.buffer) {
                Ok(()) => out.row(&self.def.name)?,
                Err(error) => {
                    out.buffer.truncate(start);
                    left_out::hand_over(self.left_out, self.def, &row, error)?;
                }
            }
        }
        out.note(&self.def.name)?;
        Ok(out.rows() - before)
    }

    /// Hands over a value, also one that is stored out of line.
    fn with_value(&self, row: &Row<'_>, n: usize, put: impl FnOnce(Value<'_>)) -> Result<(), Error> {
        match row.get::<Value<'_>>(n) {
            Err(DatabaseError::OutOfLine { .. }) => put(row.get::<OwnedValue>(n)?.as_value()),
            value => put(value?),
        }
        Ok(())
    }
}
