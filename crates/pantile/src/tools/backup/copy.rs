//! What a transaction sees, as a store of its own.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp, TupleId, share_out};
use pantile_media::{DATA_FILE, Durability, FileMedium, FileOptions, MediumError};
use pantile_store::{
    ContentFlags, HEADER_BYTES, Lineage, NewContent, Store, StoreError, StoreOptions, Urgency,
};

use crate::api::database::Database;
use crate::engine::catalog;
use crate::engine::failure::from_store;
use crate::engine::table::TableInner;
use crate::tools::backup::chain::{new_identity, scan};
use crate::tools::backup::held::{Held, Mark, deleted};
use crate::tools::backup::options::{BackupOptions, BackupProgress};
use crate::tools::backup::sync_ahead::SyncAhead;
use crate::tools::backup::target::io_error;
use crate::transactions::transaction::Transaction;
use crate::types::encoding::Encoded;
use crate::types::error::{Error, Result};

/// About the most bytes, and the most contents, that are appended at once.
const BATCH_BYTES: u64 = 1 << 20;
const BATCH_CONTENTS: usize = 4096;

/// The longest pause. The database may be closed meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// Tuples that are fetched together where reads wait for the device.
const FETCHED: u64 = 256;

/// How copying ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copied {
    /// The store holds what the transaction sees.
    All,
    /// What was held is not an earlier state of what the transaction sees.
    NotOurs,
}

/// What an earlier call has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Earlier {
    /// Contents of which at least some can be of use.
    Some,
    /// Nothing.
    Nothing,
}

/// Adds to a store in the directory `part` what `txn` sees, committed up to `moment`, and is not held, and
/// notes what is held and `txn` does not see. Closes the store.
pub(super) fn copy(
    db: &Database,
    (txn, moment): (Transaction, Timestamp),
    (store, part): (Store, &Path),
    held: &Held,
    options: &BackupOptions,
    done: &mut BackupProgress,
) -> Result<Copied> {
    let tables = tables(db, &txn)?;
    if held.highest > moment {
        return Ok(Copied::NotOurs);
    }
    let ahead = SyncAhead::default();
    // One thread uses the transaction.
    done.total_bytes = db.core.counters.live_bytes();
    let (txn, outcome) = (Mutex::new((txn, done)), Mutex::new(None));
    share_out(2, |share| match share {
        0 => {
            let _end = ahead.until_dropped();
            let (txn, done) = &mut *txn.lock();
            let copy = Copy {
                db,
                txn,
                moment,
                held,
                store: &store,
                part,
                options,
                ahead: &ahead,
                began: db.core.registry.clock().elapsed(),
                done,
                written: 0,
                unreported: 0,
                batch: Vec::with_capacity(BATCH_CONTENTS),
                batch_bytes: 0,
            };
            *outcome.lock() = Some(copy.all(&tables));
        }
        // A failure latches in the medium and shows at the next append.
        _ => ahead.serve(|| store.medium().sync_all().is_ok()),
    });
    drop(txn);
    let copied = outcome.into_inner().expect("the first share was done")?;
    if copied == Copied::All {
        // Nothing in the copy is later, so all of it has been decided (I-8, I-9).
        store.record_closed(store.sample(|| moment)).map_err(|error| target_error(error, part))?;
    }
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

/// The store in the directory `part`, which takes a backup of the database with
/// this lineage and is created if there is none. What an earlier call has left in it
/// is noted in `held`. What cannot be read goes, and what is of another database:
/// nothing of that may be in the backup, not even below newer rows.
pub(super) fn open_part(part: &Path, of: Lineage, held: &mut Held) -> Result<(Store, Earlier)> {
    let mut found = Held::default();
    match recovered(part, Some(of), &mut found) {
        Ok(store) if store.lineage().source == of.history => {
            let earlier = if found.is_empty() { Earlier::Nothing } else { Earlier::Some };
            held.join(found);
            return Ok((store, earlier));
        }
        Ok(other) => {
            // Some systems remove no file that is mapped.
            drop(other);
            remove_part(part)?;
        }
        Err(StoreError::Medium(MediumError::Truncated { .. }))
        | Err(StoreError::Foreign(_))
        | Err(StoreError::Version(_))
        | Err(StoreError::Damaged { .. }) => remove_part(part)?,
        Err(error) => return Err(target_error(error, part)),
    }
    let store = recovered(part, Some(of), held).map_err(|error| target_error(error, part))?;
    Ok((store, Earlier::Nothing))
}

/// Removes what an earlier call has left.
pub(super) fn remove_part(part: &Path) -> Result<()> {
    let data = part.join(DATA_FILE);
    fs::remove_file(&data).map_err(io_error("remove", &data))
}

/// A store in a file, to be written on, and what it holds. If there is none it
/// is created, for a backup of the database with the lineage `of`. Nothing waits for
/// syncs: it counts only when all of it is durable.
pub(super) fn recovered(part: &Path, of: Option<Lineage>, held: &mut Held) -> Result<Store, StoreError> {
    let file = FileOptions { durability: Durability::None, ..FileOptions::default() };
    let (medium, identity) = (FileMedium::open(part, file)?, new_identity());
    let store = match of {
        Some(of) => Store::open_backup(medium, StoreOptions::default(), identity, of)?,
        None => Store::open(medium, StoreOptions::default(), identity)?,
    };
    let (nothing_else, summary) = scan(&store, held, |_, _| Ok(()))?;
    debug_assert!(nothing_else.is_ok());
    if summary.was_closed {
        // What follows is not damage (I-23).
        store.record_state(store.sample(|| summary.highest), &[])?;
    }
    Ok(store)
}

/// An error of the copy in words that do not speak of the source.
pub(super) fn target_error(error: StoreError, part: &Path) -> Error {
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
    moment: Timestamp,
    held: &'c Held,
    store: &'c Store,
    part: &'c Path,
    options: &'c BackupOptions,
    ahead: &'c SyncAhead,
    began: Duration,
    done: &'c mut BackupProgress,
    /// Bytes appended, and bytes of progress that nobody has been told of.
    written: u64,
    unreported: u64,
    /// What is appended next, and its bytes.
    batch: Vec<NewContent<'c>>,
    batch_bytes: u64,
}

impl<'c> Copy<'c> {
    fn all(mut self, tables: &'c [Arc<TableInner>]) -> Result<Copied> {
        self.go_on()?;
        self.done.total_tables = tables.iter().filter(|table| catalog::is_of_user(table.id)).count() as u64;
        for table in tables {
            if self.table(table)? == Copied::NotOurs {
                return Ok(Copied::NotOurs);
            }
            self.done.tables += u64::from(catalog::is_of_user(table.id));
        }
        self.append()?;
        Ok(Copied::All)
    }

    fn table(&mut self, table: &'c TableInner) -> Result<Copied> {
        let (end, held) = (table.tuples_end(), self.held.of(table.id));
        for tuple in 0..end.max(held.len() as u64) {
            if tuple % FETCHED == 0 {
                self.txn.fetch_tuples(table, tuple..(tuple + FETCHED).min(end));
                // A table of many ids and few rows takes a while, too.
                self.check_open()?;
            }
            let before = held.get(tuple as usize).copied().unwrap_or_default();
            let (id, tuple) = (table.id, TupleId(tuple));
            let seen = if tuple.0 < end { self.txn.copied(table, tuple)? } else { None };
            match seen {
                Some((timestamp, row)) if before == Mark::row(timestamp, row.schema.layout, row.bytes) => {
                    self.keep(id, row)?;
                }
                Some((timestamp, _)) if before.hides(timestamp) => return Ok(Copied::NotOurs),
                Some((timestamp, row)) => self.add(id, tuple, timestamp, row)?,
                None if before.is_row() => self.bury(id, tuple, before)?,
                None => {}
            }
        }
        // Its blocks are not filled any further.
        self.append()?;
        self.store.give_up_idle(0);
        Ok(Copied::All)
    }

    /// A row that is held already.
    fn keep(&mut self, table: TableId, row: Encoded<'c>) -> Result<()> {
        let bytes = (row.bytes.len() + HEADER_BYTES) as u64;
        let of_user = u64::from(catalog::is_of_user(table));
        self.done.rows += of_user;
        self.done.kept_rows += of_user;
        self.done.kept_bytes += bytes;
        self.unreported += bytes;
        if self.unreported < BATCH_BYTES { Ok(()) } else { self.go_on() }
    }

    /// A row that is held and has been deleted.
    fn bury(&mut self, table: TableId, tuple: TupleId, held: Mark) -> Result<()> {
        self.done.deleted_rows += u64::from(catalog::is_of_user(table));
        self.put(deleted(table, tuple, held))
    }

    fn add(&mut self, table: TableId, tuple: TupleId, timestamp: Timestamp, row: Encoded<'c>) -> Result<()> {
        self.done.rows += u64::from(catalog::is_of_user(table));
        self.put(NewContent {
            table,
            tuple,
            flags: ContentFlags::COPY,
            layout: row.schema.layout,
            since: None,
            timestamp,
            transaction_contents: 1,
            row: row.bytes,
        })
    }

    fn put(&mut self, content: NewContent<'c>) -> Result<()> {
        self.batch_bytes += (content.row.len() + HEADER_BYTES) as u64;
        self.batch.push(content);
        if self.batch_bytes < BATCH_BYTES && self.batch.len() < BATCH_CONTENTS {
            return Ok(());
        }
        self.append()
    }

    fn append(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let at = self.moment;
        let mut addresses = Vec::with_capacity(self.batch.len());
        let contents = self.batch.iter().copied();
        let appended = self.store.append(0, Urgency::Write, contents, || at, &mut addresses);
        appended.and_then(|appended| appended.persist()).map_err(|error| target_error(error, self.part))?;
        let bytes = std::mem::take(&mut self.batch_bytes);
        self.written += bytes;
        self.done.bytes += bytes;
        self.batch.clear();
        self.ahead.written(self.written);
        self.go_on()
    }

    /// Shows the progress, and waits as long as the rate demands.
    fn go_on(&mut self) -> Result<()> {
        self.unreported = 0;
        let clock = self.db.core.registry.clock();
        let due = self.options.bytes_per_second.map_or(Duration::ZERO, |rate| {
            self.began + Duration::from_secs_f64(self.written as f64 / rate as f64)
        });
        loop {
            if let ControlFlow::Break(()) = self.options.report(self.done) {
                return Err(Error::Cancelled);
            }
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
