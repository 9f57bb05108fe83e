//! A cache that survives a restart.
//!
//! Entries expire. When the cache has grown too large, the least recently used entries are removed.
//!
//! A power failure may lose the newest entries. That costs nothing here, so commits do not wait for
//! the disk.
//!
//! `cargo run -p pantile --example cache`

use std::ops::Bound;

use pantile::{
    Database, Durability, IndexDef, Options, Range, Result, Table, TableDef, Transaction, Type, Value,
};

/// Most bytes of all values together.
const BOUND: u64 = 64 * 1024;

struct Cache {
    db: Database,
    entries: Table,
    /// One row: the bytes of all values.
    size: Table,
}

impl Cache {
    fn open(path: &std::path::Path) -> Result<Self> {
        let db = Options::new().durability(Durability::None).open(path)?;
        let entries = db.open_or_create(
            TableDef::new("entries")
                .column("key", Type::String(200))
                .column("value", Type::Bytes(16 * 1024))
                .column("bytes", Type::U64)
                .column("expires", Type::U64)
                .column("used", Type::U64)
                .primary_key(["key"])
                .index(IndexDef::new("by_expiry", ["expires"]))
                .index(IndexDef::new("by_use", ["used"])),
        )?;
        let size = TableDef::new("size").column("id", Type::U8).column("bytes", Type::U64);
        let size = db.open_or_create(size.primary_key(["id"]))?;
        Ok(Self { db, entries, size })
    }

    fn size(&self, txn: &Transaction) -> Result<u64> {
        txn.get(&self.size, &[0u8.into()])?.map_or(Ok(0), |row| row.get("bytes"))
    }

    /// Removes the first entry of a range of an index. Returns whether there was one.
    fn remove_first(&self, txn: &mut Transaction, index: &str, range: Range<'_>) -> Result<bool> {
        let index = self.entries.index(index)?;
        let mut cursor = txn.index_cursor(&index, range)?;
        let Some(row) = cursor.next_for_update(txn, false)? else { return Ok(false) };
        let bytes: u64 = row.get("bytes")?;
        let place = cursor.row_id().expect("the cursor has come to a row");
        txn.delete_row(&self.entries, place)?;
        let left = self.size(txn)? - bytes;
        txn.upsert(&self.size, &[0u8.into(), left.into()])?;
        Ok(true)
    }

    fn put(&self, key: &str, value: &[u8], now: u64, ttl: u64) -> Result<()> {
        let bytes = value.len() as u64;
        self.db.run(|txn| {
            let old = txn.get(&self.entries, &[key.into()])?.map_or(Ok(0), |row| row.get("bytes"))?;
            let row = [key.into(), value.into(), bytes.into(), (now + ttl).into(), now.into()];
            txn.upsert(&self.entries, &row)?;
            let size = self.size(txn)? + bytes - old;
            txn.upsert(&self.size, &[0u8.into(), size.into()])?;
            let now: [Value; 1] = [now.into()];
            let expired = Range::all().to(Bound::Included(&now));
            while self.remove_first(txn, "by_expiry", expired)? {}
            while self.size(txn)? > BOUND {
                self.remove_first(txn, "by_use", Range::all())?;
            }
            Ok(())
        })
    }

    fn get(&self, key: &str, now: u64) -> Result<Option<Vec<u8>>> {
        self.db.run(|txn| {
            let Some(row) = txn.get(&self.entries, &[key.into()])? else { return Ok(None) };
            if row.get::<u64>("expires")? <= now {
                return Ok(None);
            }
            let value = row.get("value")?;
            txn.update(&self.entries, &[key.into()], &[(4, now.into())])?;
            Ok(value)
        })
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let cache = Cache::open(dir.path())?;
    cache.put("greeting", b"hello", 0, 10)?;
    assert_eq!(cache.get("greeting", 9)?.as_deref(), Some(&b"hello"[..]));
    assert_eq!(cache.get("greeting", 10)?, None, "it has expired");

    for now in 20..220u64 {
        cache.put(&format!("page {now}"), &[7; 1024], now, 1000)?;
        // This one is asked for all the time.
        assert!(cache.get("page 20", now)?.is_some());
    }
    assert_eq!(cache.get("page 21", 220)?, None, "others were used later");
    cache.db.close()?;

    let cache = Cache::open(dir.path())?;
    let txn = cache.db.begin_read()?;
    let (entries, bytes) = (txn.count(&cache.entries, Range::all())?, cache.size(&txn)?);
    println!("of 201 entries the cache has kept {entries}, {bytes} bytes, over a restart");
    assert!(bytes == BOUND && entries == BOUND / 1024);
    Ok(())
}
