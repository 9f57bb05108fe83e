//! The rows in Pantile.

use std::ops::Bound;
use std::path::Path;

use pantile::{Database, Durability, IndexDef, Options, Range, Table, TableDef, Transaction, Type, Value};
use pantile_bench::memory::Failure;

use super::store::{How, Peer, Row, Store, VALUE_BYTES, missing, read_all, taste};

pub struct OnPantile;

struct Opened {
    db: Database,
    rows: Table,
    large: Table,
}

impl Peer for OnPantile {
    fn name(&self) -> &'static str {
        "Pantile"
    }

    fn open(&self, dir: &Path, how: How) -> Result<Box<dyn Store>, Failure> {
        let durability = if how.durable { Durability::Sync } else { Durability::None };
        let db = Options::new().durability(durability).open(dir)?;
        let def = TableDef::new("rows")
            .column("key", Type::U64)
            .column("owner", Type::U64)
            .column("value", Type::FixedBytes(VALUE_BYTES as u16))
            .primary_key(["key"]);
        let def = if how.indexed { def.index(IndexDef::new("owner", ["owner"])) } else { def };
        let rows = db.open_or_create(def)?;
        let large = TableDef::new("large").column("key", Type::U64).column("value", Type::Bytes(1 << 30));
        let large = db.open_or_create(large.primary_key(["key"]))?;
        Ok(Box::new(Opened { db, rows, large }))
    }
}

fn values(row: &Row) -> [Value<'_>; 3] {
    [row.key.into(), row.owner.into(), Value::Bytes(&row.value)]
}

impl Opened {
    fn read(&self, txn: &Transaction, keys: &[u64]) -> Result<u64, Failure> {
        let of_rows: Vec<[Value<'_>; 1]> = keys.iter().map(|key| [(*key).into()]).collect();
        let found = txn.get_many(&self.rows, &of_rows)?;
        keys.iter().zip(found).try_fold(0, |sum, (key, row)| {
            let row = row.ok_or_else(|| missing(*key))?;
            Ok(sum + taste(row.get::<&[u8]>(2)?))
        })
    }
}

impl Store for Opened {
    fn load(&self, rows: &[Row], _: bool) -> Result<(), Failure> {
        self.db.run(|txn| txn.insert_many(&self.rows, rows.iter().map(values)))?;
        Ok(())
    }

    fn work(&self, reads: &[u64], writes: &[Row]) -> Result<u64, Failure> {
        if writes.is_empty() {
            return self.read(&self.db.begin_read()?, reads);
        }
        self.db.run(|txn| {
            let sum = self.read(txn, reads)?;
            let mut changes = Vec::with_capacity(writes.len());
            for row in writes {
                let columns = [(1, Value::UInt(row.owner)), (2, Value::Bytes(&row.value))];
                changes.push(([Value::UInt(row.key)], columns));
            }
            txn.update_many(&self.rows, &changes)?;
            Ok(sum)
        })
    }

    fn scan(&self, from: u64, rows: usize) -> Result<u64, Failure> {
        let txn = self.db.begin_read()?;
        let from = [Value::UInt(from)];
        let found = txn.scan(&self.rows, Range::all().from(Bound::Included(&from)).limit(rows))?;
        let mut sum = 0;
        for row in found {
            sum += taste(row?.get::<&[u8]>(2)?);
        }
        Ok(sum)
    }

    fn turn(&self, add: &Row, take: u64) -> Result<(), Failure> {
        let is_there = self.db.run(|txn| {
            txn.insert(&self.rows, &values(add))?;
            txn.delete(&self.rows, &[take.into()])
        })?;
        if is_there { Ok(()) } else { Err(missing(take)) }
    }

    fn put_large(&self, values: &[(u64, Vec<u8>)]) -> Result<(), Failure> {
        let rows = || values.iter().map(|(key, value)| [Value::UInt(*key), Value::Bytes(value)]);
        self.db.run(|txn| txn.insert_many(&self.large, rows()))?;
        Ok(())
    }

    fn get_large(&self, key: u64) -> Result<u64, Failure> {
        let txn = self.db.begin_read()?;
        let row = txn.get(&self.large, &[key.into()])?.ok_or_else(|| missing(key))?;
        let pieces = row.pieces(1)?.ok_or_else(|| missing(key))?;
        pieces.map(|piece| Ok(read_all(piece?))).sum()
    }

    /// Every commit has been written to the file.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}
