//! The rows in Pantile.

use std::ops::Bound;
use std::path::Path;

use pantile::{Database, Durability, MediumKind, Options, Range, Table, TableDef, Type, Value};

use super::engine::{Engine, Failure, Rows, VALUE_BYTES, last_byte, missing};

/// Pantile on a file, with its default options or with a cache of rows in an eighth of the memory.
#[derive(Debug)]
pub struct OnPantile {
    cached: bool,
}

impl OnPantile {
    /// With its default options.
    pub const PLAIN: Self = Self { cached: false };
    /// With a cache of rows.
    pub const CACHED: Self = Self { cached: true };
}

/// The part of the memory that the cache of rows gets.
const CACHE_SHARE: u64 = 8;

struct Opened {
    db: Database,
    table: Table,
}

const TABLE: &str = "rows";
const VALUE: usize = 1;

impl Engine for OnPantile {
    fn name(&self) -> &'static str {
        if self.cached { "pantile-rows" } else { "pantile" }
    }

    fn open(&self, dir: &Path, memory: u64) -> Result<Box<dyn Rows>, Failure> {
        let mut options = Options::new().medium(MediumKind::File).durability(Durability::None);
        if self.cached {
            options = options.row_cache(memory / CACHE_SHARE);
        }
        let db = options.open(dir)?;
        let table = match db.table(TABLE) {
            Ok(table) => table,
            Err(_) => {
                let def = TableDef::new(TABLE)
                    .column("id", Type::U64)
                    .column("value", Type::Bytes(VALUE_BYTES.into()));
                db.create_table(def.primary_key(["id"]))?
            }
        };
        Ok(Box::new(Opened { db, table }))
    }
}

impl Rows for Opened {
    fn load(&mut self, keys: &[u64], value: &mut dyn FnMut(u64) -> Vec<u8>) -> Result<(), Failure> {
        let mut txn = self.db.begin()?;
        for &key in keys {
            txn.insert(&self.table, &[key.into(), Value::Bytes(&value(key))])?;
        }
        txn.commit()?;
        Ok(())
    }

    fn read(&mut self, keys: &[u64]) -> Result<u64, Failure> {
        let txn = self.db.begin_read()?;
        let named: Vec<[Value<'_>; 1]> = keys.iter().map(|&key| [key.into()]).collect();
        let rows = txn.get_many(&self.table, &named)?;
        keys.iter().zip(rows).try_fold(0, |sum, (&key, row)| {
            let row = row.ok_or_else(|| missing(key))?;
            Ok(sum + last_byte(row.get(VALUE)?))
        })
    }

    fn update(&mut self, keys: &[u64], edit: &mut dyn FnMut(&mut [u8])) -> Result<(), Failure> {
        let mut txn = self.db.begin()?;
        for &key in keys {
            let changed = txn.modify(&self.table, &[key.into()], |row| {
                let mut value = row.get::<&[u8]>(VALUE)?.to_vec();
                edit(&mut value);
                row.set(VALUE, Value::Bytes(&value)).map(|()| true)
            })?;
            if !changed {
                return Err(missing(key));
            }
        }
        txn.commit()?;
        Ok(())
    }

    fn scan(&mut self, from: u64, rows: usize) -> Result<u64, Failure> {
        let txn = self.db.begin_read()?;
        let from = [Value::UInt(from)];
        let mut found = txn.scan(&self.table, Range::all().from(Bound::Included(&from)).limit(rows))?;
        found.try_fold(0, |sum, row| Ok(sum + last_byte(row?.get(VALUE)?)))
    }
}
