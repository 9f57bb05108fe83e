//! Checks that stored bytes are a row. Rows are checked when they are written,
//! and checksums cover them, so only a bug or a forger makes other bytes.
//! Recovery checks before it relies on them.

use crate::types::encoding::{Encoded, MAX_ROW, OUT_OF_LINE_BYTES, Stored};
use crate::types::layout::{Column, ColumnLocation};
use crate::types::schema::Type;
use crate::types::value::Value;

impl Encoded<'_> {
    /// Why the bytes cannot be read as a row, if they cannot. All parts must lie
    /// within the row, no value may be longer than its column allows, and
    /// strings must be UTF-8.
    pub fn shape_problem(&self) -> Option<String> {
        let (schema, len) = (self.schema, self.bytes.len());
        if len < schema.heap_at || len > MAX_ROW {
            return Some(format!("a row of {len} bytes"));
        }
        let mut end = schema.heap_at;
        for n in 0..schema.variable {
            let at = schema.ends_at + n * 2;
            let next = usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]));
            if next < end || next > len {
                return Some(format!("value {n} of variable length ends at {next} of {len}"));
            }
            end = next;
        }
        if end != len {
            return Some(format!("a row of {len} bytes whose values end at {end}"));
        }
        let broken = |(_, column): &(usize, &Column)| column.is_stored() && !self.is_readable(column);
        let broken = schema.columns.iter().enumerate().find(broken);
        broken.map(|(id, _)| format!("column {:?} cannot be read", schema.names[id]))
    }

    fn is_readable(&self, column: &Column) -> bool {
        let raw = self.raw(column);
        match column.stored {
            _ if self.is_null(column) => matches!(column.place, ColumnLocation::Fixed(_)) || raw.is_empty(),
            Type::String(max) | Type::Bytes(max) if self.is_out_of_line(column) => {
                let len = |raw: &[u8]| raw[8..].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
                raw.len() == OUT_OF_LINE_BYTES && len(raw) <= u64::from(max)
            }
            Type::String(max) => raw.len() <= max as usize && std::str::from_utf8(raw).is_ok(),
            Type::Bytes(max) => raw.len() <= max as usize,
            Type::FixedString(_) => std::str::from_utf8(raw).is_ok(),
            _ => true,
        }
    }

    /// Which value can never have been written, if any. The row can be read.
    pub fn value_problem(&self) -> Option<String> {
        let is_wrong = |(_, column): &(usize, &Column)| column.is_stored() && !self.could_be_written(column);
        let wrong = self.schema.columns.iter().enumerate().find(is_wrong);
        wrong.map(|(id, _)| format!("column {:?} has bytes that are never written", self.schema.names[id]))
    }

    fn could_be_written(&self, column: &Column) -> bool {
        let raw = self.raw(column);
        if self.is_null(column) {
            return raw.iter().all(|&b| b == 0) && !self.is_out_of_line(column);
        }
        match column.stored {
            Type::Bool => raw[0] <= 1,
            Type::Decimal { precision, .. } => match self.stored_in(column) {
                Stored::Value(Value::Decimal(d)) => d.units.unsigned_abs() < 10u128.pow(u32::from(precision)),
                _ => false,
            },
            _ => true,
        }
    }
}
