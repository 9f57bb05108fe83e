//! The rows in LMDB, by heed.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RwTxn};
use pantile_bench::memory::{Engine, Failure, Rows, last_byte, missing};

/// LMDB without syncs. It does not write through its mapping: its file would be as long as that, and
/// files are read when they are opened. Its cache is the system's, which reads no pages ahead, as LMDB
/// advises for data that is larger than memory.
pub struct OnLmdb;

struct Opened {
    env: Env,
    rows: Database<Bytes, Bytes>,
}

/// Addresses, not bytes of the disk.
const MAP_BYTES: usize = 64 << 30;

impl Engine for OnLmdb {
    fn name(&self) -> &'static str {
        "lmdb"
    }

    fn open(&self, dir: &Path, _: u64) -> Result<Box<dyn Rows>, Failure> {
        let env = open(dir)?;
        let mut txn = env.write_txn()?;
        let rows = env.create_database(&mut txn, None)?;
        txn.commit()?;
        Ok(Box::new(Opened { env, rows }))
    }
}

#[allow(unsafe_code, reason = "LMDB maps its file, and asks for a promise that nobody else writes to it")]
fn open(dir: &Path) -> Result<Env, heed::Error> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES);
    // SAFETY: the directory is this run's own, and is opened once at a time.
    unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD).open(dir) }
}

impl Opened {
    fn write(&self, body: impl FnOnce(&mut RwTxn<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut txn = self.env.write_txn()?;
        body(&mut txn)?;
        Ok(txn.commit()?)
    }
}

impl Rows for Opened {
    fn load(&mut self, keys: &[u64], value: &mut dyn FnMut(u64) -> Vec<u8>) -> Result<(), Failure> {
        self.write(|txn| {
            for &key in keys {
                self.rows.put(txn, &key.to_be_bytes(), &value(key))?;
            }
            Ok(())
        })
    }

    fn read(&mut self, keys: &[u64]) -> Result<u64, Failure> {
        let txn = self.env.read_txn()?;
        keys.iter().try_fold(0, |sum, &key| {
            let value = self.rows.get(&txn, &key.to_be_bytes())?.ok_or_else(|| missing(key))?;
            Ok(sum + last_byte(value))
        })
    }

    fn update(&mut self, keys: &[u64], edit: &mut dyn FnMut(&mut [u8])) -> Result<(), Failure> {
        self.write(|txn| {
            for key in keys {
                let found = self.rows.get(txn, &key.to_be_bytes())?;
                let mut value = found.ok_or_else(|| missing(*key))?.to_vec();
                edit(&mut value);
                self.rows.put(txn, &key.to_be_bytes(), &value)?;
            }
            Ok(())
        })
    }

    fn scan(&mut self, from: u64, rows: usize) -> Result<u64, Failure> {
        let txn = self.env.read_txn()?;
        let from = from.to_be_bytes();
        let from = (Bound::Included(&from[..]), Bound::Unbounded);
        let mut found = self.rows.range(&txn, &from)?.take(rows);
        found.try_fold(0, |sum, row| Ok(sum + last_byte(row?.1)))
    }
}
