//! What a transaction sees, as a store of its own.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::limits::BLOCK_SLOTS;
use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp, TupleId, share_out};
use pantile_media::{Create, Durability, FileMedium, FileOptions, MediumError};
use pantile_store::{ContentFlags, HEADER_BYTES, NewContent, Scan, Store, StoreError, StoreOptions, Urgency};

use crate::api::database::Database;
use crate::api::opening::identity;
use crate::engine::catalog;
use crate::engine::failure::from_store;
use crate::engine::table::TableInner;
use crate::tools::backup::options::{BackupOptions, BackupProgress};
use crate::tools::backup::sync_ahead::SyncAhead;
use crate::transactions::transaction::Transaction;
use crate::types::encoding::Encoded;
use crate::types::error::{Error, Result};
use crate::types::options::Options;

/// About the most bytes, and the most contents, that are appended at once.
const BATCH_BYTES: u64 = 1 << 20;
const BATCH_CONTENTS: usize = 4096;

/// The longest pause. The database may be closed meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// Tuples that are fetched together where reads wait for the device.
const FETCHED: u64 = 256;

/// Copies what `txn` sees into a new store in the directory `part`, and closes
/// the store. Returns what was copied.
pub(super) fn copy(
    db: &Database,
    txn: Transaction,
    part: &Path,
    options: &BackupOptions,
) -> Result<BackupProgress> {
    let (tables, timestamp) = (tables(db, &txn)?, txn.timestamp());
    let store = create(part)?;
    let ahead = SyncAhead::default();
    // One thread uses the transaction.
    let (txn, done) = (Mutex::new(txn), Mutex::new(None));
    share_out(2, |share| match share {
        0 => {
            let (_end, txn) = (ahead.until_dropped(), txn.lock());
            let total_bytes = db.core.counters.live_bytes();
            let copy = Copy {
                db,
                txn: &txn,
                store: &store,
                part,
                options,
                ahead: &ahead,
                began: db.core.registry.clock().elapsed(),
                done: BackupProgress { total_bytes, ..BackupProgress::default() },
                batch: Vec::with_capacity(BATCH_CONTENTS),
                batch_bytes: 0,
            };
            *done.lock() = Some(copy.all(&tables));
        }
        // A failure latches in the medium and shows at the next append.
        _ => ahead.serve(|| store.medium().sync_all().is_ok()),
    });
    drop(txn);
    let copied = done.into_inner().expect("the first share was done")?;
    // Nothing in the copy is later, so all of it has been decided (I-8, I-9).
    store.record_closed(store.sample(timestamp)).map_err(|error| target_error(error, part))?;
    Ok(copied)
}

/// The tables that exist at the transaction's timestamp, the hidden ones
/// included. What is dropped while it runs stays until it ends.
fn tables(db: &Database, txn: &Transaction) -> Result<Vec<Arc<TableInner>>> {
    let known = &db.core.tables;
    // A table that is being created may be in the catalog and not yet known.
    let _change = known.change();
    let catalog = known.catalog()?.inner;
    let mut ids = Vec::new();
    for tuple in (0..catalog.tuples_end()).map(TupleId) {
        let Some((_, row)) = txn.copied(&catalog, tuple)? else { continue };
        let mut id = [0; 4];
        id.copy_from_slice(row.raw(&row.schema.columns[0]));
        ids.push(TableId(u32::from_le_bytes(id)));
    }
    let mut tables = vec![catalog];
    for id in ids {
        let table = known.in_use(id).expect("a table stays while a transaction that sees it runs");
        tables.extend(table.layouts().can_move_out.then(|| known.pieces_of(id)));
        tables.push(table);
    }
    Ok(tables)
}

/// An empty store in a file. Nothing waits for syncs: it counts only when all
/// of it is durable.
fn create(part: &Path) -> Result<Store> {
    let file =
        FileOptions { durability: Durability::None, create: Create::MustBeNew, ..FileOptions::default() };
    let options =
        StoreOptions { streams: 1, block_slots: BLOCK_SLOTS as u32, boot: 0, relaxed: false, reuse: None };
    let medium = FileMedium::open(part, file).map_err(StoreError::Medium);
    let store = medium.and_then(|medium| Store::open(medium, options, identity(&Options::new())));
    let empty = Scan { threads: 1, found: &|_, _| {}, progress: &|_| {} };
    let recovered = store.and_then(|store| store.recover(&empty).map(|_| store));
    recovered.map_err(|error| target_error(error, part))
}

/// An error of the copy in words that do not speak of the source.
fn target_error(error: StoreError, part: &Path) -> Error {
    match error {
        StoreError::Medium(MediumError::Failed { cause }) => Error::Io {
            operation: format!("write the backup in {}", part.display()),
            source: std::io::Error::other(cause),
        },
        StoreError::Medium(full) if full.is_full() => {
            Error::StorageFull { detail: format!("the backup in {}: {full}", part.display()), holder: None }
        }
        other => from_store(other, part),
    }
}

/// A copy that is being made.
struct Copy<'c> {
    db: &'c Database,
    txn: &'c Transaction,
    store: &'c Store,
    part: &'c Path,
    options: &'c BackupOptions,
    ahead: &'c SyncAhead,
    began: Duration,
    done: BackupProgress,
    /// What is appended next, and its bytes.
    batch: Vec<NewContent<'c>>,
    batch_bytes: u64,
}

impl<'c> Copy<'c> {
    fn all(mut self, tables: &'c [Arc<TableInner>]) -> Result<BackupProgress> {
        self.go_on()?;
        self.done.total_tables = tables.iter().filter(|table| catalog::is_of_user(table.id)).count() as u64;
        for table in tables {
            self.table(table)?;
            self.done.tables += u64::from(catalog::is_of_user(table.id));
        }
        self.append()?;
        Ok(self.done)
    }

    fn table(&mut self, table: &'c TableInner) -> Result<()> {
        let end = table.tuples_end();
        for tuple in 0..end {
            if tuple % FETCHED == 0 {
                self.txn.fetch_tuples(table, tuple..(tuple + FETCHED).min(end));
                // A table of many ids and few rows takes a while, too.
                self.check_open()?;
            }
            if let Some((timestamp, row)) = self.txn.copied(table, TupleId(tuple))? {
                self.add(table.id, TupleId(tuple), timestamp, row)?;
            }
        }
        // Its blocks are not filled any further.
        self.append()?;
        self.store.give_up_idle(0);
        Ok(())
    }

    fn add(&mut self, table: TableId, tuple: TupleId, timestamp: Timestamp, row: Encoded<'c>) -> Result<()> {
        self.done.rows += u64::from(catalog::is_of_user(table));
        self.batch_bytes += (row.bytes.len() + HEADER_BYTES) as u64;
        self.batch.push(NewContent {
            table,
            tuple,
            flags: ContentFlags::COPY,
            layout: row.schema.layout,
            since: None,
            timestamp,
            transaction_contents: 1,
            row: row.bytes,
        });
        if self.batch_bytes < BATCH_BYTES && self.batch.len() < BATCH_CONTENTS {
            return Ok(());
        }
        self.append()
    }

    fn append(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let at = self.txn.timestamp();
        let mut addresses = Vec::with_capacity(self.batch.len());
        let contents = self.batch.iter().copied();
        let appended = self.store.append(0, Urgency::Write, contents, || at, &mut addresses);
        appended.and_then(|appended| appended.persist()).map_err(|error| target_error(error, self.part))?;
        self.done.bytes += std::mem::take(&mut self.batch_bytes);
        self.batch.clear();
        self.ahead.written(self.done.bytes);
        self.go_on()
    }

    /// Shows the progress, and waits as long as the rate demands.
    fn go_on(&self) -> Result<()> {
        if let ControlFlow::Break(()) = self.options.report(&self.done) {
            return Err(Error::Cancelled);
        }
        let clock = self.db.core.registry.clock();
        let due = self.options.bytes_per_second.map_or(Duration::ZERO, |rate| {
            self.began + Duration::from_secs_f64(self.done.bytes as f64 / rate as f64)
        });
        loop {
            self.check_open()?;
            let left = due.saturating_sub(clock.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            clock.sleep(left.min(PAUSE));
        }
    }

    /// Closing waits for this transaction, so it ends when closing begins.
    fn check_open(&self) -> Result<()> {
        if self.db.core.gate.is_open() { Ok(()) } else { Err(Error::Closed) }
    }
}
