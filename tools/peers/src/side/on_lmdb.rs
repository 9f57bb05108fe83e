//! The rows in LMDB, by heed. Without syncs it writes through its mapping, which is
//! its fastest way.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, RwTxn};
use pantile_bench::memory::Failure;

use super::store::{How, Peer, Row, Store, missing, read_all, taste, value};

pub struct OnLmdb;

struct Opened {
    env: Env,
    rows: Database<Bytes, Bytes>,
    owners: Database<Bytes, Bytes>,
    large: Database<Bytes, Bytes>,
    how: How,
}

/// Addresses, not bytes of the disk.
const MAP_BYTES: usize = 64 << 30;

impl Peer for OnLmdb {
    fn name(&self) -> &'static str {
        "LMDB"
    }

    fn open(&self, dir: &Path, how: How) -> Result<Box<dyn Store>, Failure> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_dbs(3);
        let env = open(&mut options, dir, how.durable)?;
        let mut txn = env.write_txn()?;
        let rows = env.create_database(&mut txn, Some("rows"))?;
        let owners = env.create_database(&mut txn, Some("owners"))?;
        let large = env.create_database(&mut txn, Some("large"))?;
        txn.commit()?;
        Ok(Box::new(Opened { env, rows, owners, large, how }))
    }
}

#[allow(unsafe_code, reason = "LMDB maps its file, and asks for a promise that nobody else writes to it")]
fn open(
    options: &mut EnvOpenOptions<heed::WithTls>,
    dir: &Path,
    is_durable: bool,
) -> Result<Env, heed::Error> {
    let flags = if is_durable { EnvFlags::empty() } else { EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC };
    // SAFETY: the directory is this run's own, and is opened once at a time.
    unsafe { options.flags(flags).open(dir) }
}

impl Opened {
    fn write<T>(&self, body: impl FnOnce(&mut RwTxn<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut txn = self.env.write_txn()?;
        let value = body(&mut txn)?;
        txn.commit()?;
        Ok(value)
    }

    fn read(&self, txn: &RoTxn<'_>, keys: &[u64]) -> Result<u64, Failure> {
        keys.iter().try_fold(0, |sum, &key| {
            let value = self.rows.get(txn, &key.to_be_bytes())?.ok_or_else(|| missing(key))?;
            Ok(sum + taste(&value[8..]))
        })
    }
}

impl Store for Opened {
    fn load(&self, rows: &[Row], in_order: bool) -> Result<(), Failure> {
        let flags = if in_order { PutFlags::APPEND } else { PutFlags::empty() };
        self.write(|txn| {
            for row in rows {
                self.rows.put_with_flags(txn, flags, &row.key.to_be_bytes(), &value(row))?;
                if self.how.indexed {
                    let entry = [row.owner.to_be_bytes(), row.key.to_be_bytes()].concat();
                    self.owners.put(txn, &entry, &[])?;
                }
            }
            Ok(())
        })
    }

    fn work(&self, reads: &[u64], writes: &[Row]) -> Result<u64, Failure> {
        if writes.is_empty() {
            let txn = self.env.read_txn()?;
            return self.read(&txn, reads);
        }
        self.write(|txn| {
            let sum = self.read(txn, reads)?;
            for row in writes {
                self.rows.put(txn, &row.key.to_be_bytes(), &value(row))?;
            }
            Ok(sum)
        })
    }

    fn scan(&self, from: u64, rows: usize) -> Result<u64, Failure> {
        let txn = self.env.read_txn()?;
        let from = from.to_be_bytes();
        let from = (Bound::Included(&from[..]), Bound::Unbounded);
        let mut found = self.rows.range(&txn, &from)?.take(rows);
        found.try_fold(0, |sum, row| Ok(sum + taste(&row?.1[8..])))
    }

    fn turn(&self, add: &Row, take: u64) -> Result<(), Failure> {
        self.write(|txn| {
            self.rows.put(txn, &add.key.to_be_bytes(), &value(add))?;
            if self.rows.delete(txn, &take.to_be_bytes())? { Ok(()) } else { Err(missing(take)) }
        })
    }

    fn put_large(&self, values: &[(u64, Vec<u8>)]) -> Result<(), Failure> {
        self.write(|txn| {
            let mut put = |(key, value): &(u64, Vec<u8>)| {
                self.large.put_with_flags(txn, PutFlags::APPEND, &key.to_be_bytes(), value)
            };
            Ok(values.iter().try_for_each(&mut put)?)
        })
    }

    fn get_large(&self, key: u64) -> Result<u64, Failure> {
        let txn = self.env.read_txn()?;
        Ok(read_all(self.large.get(&txn, &key.to_be_bytes())?.ok_or_else(|| missing(key))?))
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(self.env.force_sync()?)
    }
}
