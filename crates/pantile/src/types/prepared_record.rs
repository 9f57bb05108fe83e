//! What a prepared transaction has changed, as bytes: from them it is made again
//! when the database is next opened. `docs/format.md` describes them.

use pantile_base::TableId;

use crate::types::error::{Error, Result};
use crate::types::owned_value::OwnedValue;
use crate::types::value::{Decimal, Value};

/// The first byte of a record.
const VERSION: u8 = 1;

/// What becomes of a row.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Change {
    /// There is a row with these values.
    Row(Vec<OwnedValue>),
    /// There is none with this primary key.
    Deleted(Vec<OwnedValue>),
}

/// The beginning of a record.
pub(crate) fn begin() -> Vec<u8> {
    vec![VERSION]
}

/// Adds a change of a table to a record, of which the end is enough.
pub(crate) fn encode(table: TableId, change: &Change, record: &mut Vec<u8>) {
    let (kind, values) = match change {
        Change::Row(values) => (0, values),
        Change::Deleted(key) => (1, key),
    };
    record.extend_from_slice(&table.0.to_le_bytes());
    record.push(kind);
    record.extend_from_slice(&(values.len() as u32).to_le_bytes());
    values.iter().for_each(|value| encode_value(value.as_value(), record));
}

fn encode_value(value: Value<'_>, record: &mut Vec<u8>) {
    let mut put = |tag: u8, bytes: &[u8]| {
        record.push(tag);
        record.extend_from_slice(bytes);
    };
    match value {
        Value::Null => put(0, &[]),
        Value::Bool(v) => put(1, &[u8::from(v)]),
        Value::Int(v) => put(2, &v.to_le_bytes()),
        Value::UInt(v) => put(3, &v.to_le_bytes()),
        Value::Float(v) => put(4, &v.to_bits().to_le_bytes()),
        Value::Decimal(Decimal { units, scale }) => {
            put(5, &[scale]);
            record.extend_from_slice(&units.to_le_bytes());
        }
        Value::Str(v) => {
            put(6, &(v.len() as u64).to_le_bytes());
            record.extend_from_slice(v.as_bytes());
        }
        Value::Bytes(v) => {
            put(7, &(v.len() as u64).to_le_bytes());
            record.extend_from_slice(v);
        }
        Value::Timestamp(v) => put(8, &v.to_le_bytes()),
    }
}

/// The changes of a record, in order.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn decode(name: &str, record: &[u8]) -> Result<Vec<(TableId, Change)>> {
    let mut rest = Rest(record);
    let changes = (|| {
        if rest.byte()? != VERSION {
            return None;
        }
        let mut changes = Vec::new();
        while !rest.0.is_empty() {
            changes.push(rest.change()?);
        }
        Some(changes)
    })();
    changes.ok_or_else(|| Error::Damaged {
        place: format!("the prepared transaction \"{name}\""),
        detail: format!("its record cannot be read from byte {} on", record.len() - rest.0.len()),
    })
}

/// What has not been read.
struct Rest<'r>(&'r [u8]);

impl<'r> Rest<'r> {
    fn take(&mut self, len: usize) -> Option<&'r [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn change(&mut self) -> Option<(TableId, Change)> {
        let table = TableId(u32::from_le_bytes(self.array()?));
        let kind = self.byte()?;
        let count = u32::from_le_bytes(self.array()?);
        let values = (0..count).map(|_| self.value()).collect::<Option<Vec<_>>>()?;
        match kind {
            0 => Some((table, Change::Row(values))),
            1 => Some((table, Change::Deleted(values))),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<OwnedValue> {
        Some(match self.byte()? {
            0 => OwnedValue::Null,
            1 => OwnedValue::Bool(self.byte()? != 0),
            2 => OwnedValue::Int(i64::from_le_bytes(self.array()?)),
            3 => OwnedValue::UInt(u64::from_le_bytes(self.array()?)),
            4 => OwnedValue::Float(f64::from_bits(u64::from_le_bytes(self.array()?))),
            5 => {
                let scale = self.byte()?;
                OwnedValue::Decimal(Decimal::new(i128::from_le_bytes(self.array()?), scale))
            }
            6 => OwnedValue::Str(String::from_utf8(self.long()?.to_vec()).ok()?),
            7 => OwnedValue::Bytes(self.long()?.to_vec()),
            8 => OwnedValue::Timestamp(i64::from_le_bytes(self.array()?)),
            _ => return None,
        })
    }

    fn long(&mut self) -> Option<&'r [u8]> {
        let len = u64::from_le_bytes(self.array()?);
        self.take(usize::try_from(len).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> Vec<(TableId, Change)> {
        let values = vec![
            OwnedValue::Null,
            OwnedValue::Bool(true),
            OwnedValue::Int(-5),
            OwnedValue::UInt(u64::MAX),
            OwnedValue::Float(f64::NEG_INFINITY),
            OwnedValue::Decimal(Decimal::new(-199, 2)),
            OwnedValue::Str("seven".into()),
            OwnedValue::Bytes(vec![0; 70_000]),
            OwnedValue::Timestamp(-1),
        ];
        vec![
            (TableId(16), Change::Row(values)),
            (TableId(18), Change::Deleted(vec![OwnedValue::UInt(7)])),
            (TableId(16), Change::Row(Vec::new())),
        ]
    }

    #[test]
    fn every_value_comes_back() {
        let mut record = begin();
        assert_eq!(decode("x", &record).expect("nothing"), []);
        changes().iter().for_each(|(table, change)| encode(*table, change, &mut record));
        assert_eq!(decode("x", &record).expect("whole"), changes());
    }

    #[test]
    fn a_record_that_is_cut_or_of_another_kind_is_refused() {
        let mut record = begin();
        let mut whole = vec![record.len()];
        for (table, change) in changes() {
            encode(table, &change, &mut record);
            whole.push(record.len());
        }
        for len in (0..200).chain(record.len() - 60..record.len()) {
            let decoded = decode("x", &record[..len]);
            assert_eq!(decoded.is_ok(), whole.contains(&len), "{len} bytes");
        }
        let mut other = record.clone();
        other[0] = 2;
        assert!(decode("x", &other).is_err());
        other[0] = VERSION;
        other[5] = 9;
        let error = decode("x", &other).expect_err("no such kind").to_string();
        assert!(error.contains("the prepared transaction \"x\""), "{error}");
    }
}
