//! The rows in Pantile.

use std::ops::Bound;
use std::path::Path;

use pantile::{Database, Durability, MediumKind, Options, Range, Table, TableDef, Type, Value};

use super::engine::{Engine, Failure, Rows, VALUE_BYTES, last_byte, missing};

/// Pantile on a file, with its default options.
#[derive(Debug)]
pub struct OnPantile;

struct Opened {
    db: Database,
    table: Table,
}

const TABLE: &str = "rows";
const VALUE: usize = 1;

impl Engine for OnPantile {
    fn name(&self) -> &'static str {
        "pantile"
    }

    fn open(&self, dir: &Path, _memory: u64) -> Result<Box<dyn Rows>, Failure> {
        let db = Options::new().medium(MediumKind::File).durability(Durability::None).open(dir)?;
        let table = match db.table(TABLE) {
            Ok(table) => table,
            Err(_) => {
                let def = TableDef::new(TABLE)
                    .column("id", Type::U64)
                    .column("value", Type::Bytes(VALUE_BYTES as u32));
                db.create_table(def.primary_key(["id"]))?
            }
        };
        Ok(Box::new(Opened { db, table }))
    }
}

impl Rows for Opened {
    fn load(&mut self, keys: &[u64], value: &mut dyn FnMut(u64) -> [u8; VALUE_BYTES]) -> Result<(), Failure> {
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
