//! What a running database does: who holds garbage, ending that, and where the space is.

use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::time::Duration;

use pantile::stats::{IndexParts, RunningTransaction, TableParts};
use pantile::{Isolation, TransactionId};

use crate::c_text::as_c;
use crate::database::pantile_db;
use crate::error::{Failure, PANTILE_NOT_FOUND, PANTILE_OK, call};
use crate::options::on_pinned;
use crate::pointer::{Out, array_mut, free, lent};
use crate::transaction::{PANTILE_READ_COMMITTED, PANTILE_SERIALIZABLE, PANTILE_SNAPSHOT};

/// Transactions that are open, the oldest first.
pub struct pantile_transactions {
    list: Vec<Listed>,
}

struct Listed {
    running: RunningTransaction,
    name: Option<CString>,
    ended: Option<CString>,
    tables: Vec<CString>,
}

/// A transaction that is open. Texts are valid until the list is freed. The figures of what it holds are upper bounds: a
/// block counts with everything superseded in it as soon as the transaction may see one version there.
#[repr(C)]
pub struct pantile_running {
    /// By which `pantile_end_transaction` knows it; 0 for work of the database itself.
    pub id: u64,
    /// What the program calls it, or NULL; for work of the database itself, what it is.
    pub name: *const c_char,
    /// Its number among those of this name, if `has_number`.
    pub number: u64,
    /// Whether it has one.
    pub has_number: bool,
    /// `PANTILE_SERIALIZABLE`, `PANTILE_SNAPSHOT` or `PANTILE_READ_COMMITTED`; -1 for work of the database itself.
    pub isolation: c_int,
    /// Whether it only reads.
    pub read_only: bool,
    /// Whether it is prepared: only a decision under its name ends it.
    pub prepared: bool,
    /// What has ended it, if its program has not taken note yet; else NULL.
    pub ended: *const c_char,
    /// Microseconds since it began; at a safe snapshot, the age of what it reads.
    pub age: u64,
    /// Where it reads.
    pub timestamp: u64,
    /// Superseded bytes on the medium, in blocks that it may be reading.
    pub held_bytes: u64,
    /// Those blocks.
    pub held_blocks: u64,
    /// The part of `held_bytes` that no other transaction holds: what its end would free, at most.
    pub freed_bytes: u64,
    /// Memory that it holds back.
    pub held_memory: u64,
    /// Memory of its own writes.
    pub buffer_bytes: u64,
    /// In how many tables it holds something; see `pantile_transactions_held`.
    pub tables: usize,
}

/// What a transaction holds of one table. The name is valid until the list is freed.
#[repr(C)]
pub struct pantile_held {
    /// The table's name.
    pub table: *const c_char,
    /// Superseded bytes, in blocks that the transaction may be reading.
    pub bytes: u64,
    /// Those blocks.
    pub blocks: u64,
}

fn text_or_null(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

impl Listed {
    fn new(running: RunningTransaction) -> Self {
        Self {
            name: running.transaction.name.map(as_c),
            ended: running.transaction.ended.map(|by| as_c(&by.to_string())),
            tables: running.tables.iter().map(|held| as_c(&held.table)).collect(),
            running,
        }
    }

    fn for_c(&self) -> pantile_running {
        let RunningTransaction { transaction, .. } = &self.running;
        pantile_running {
            id: transaction.id.map_or(0, TransactionId::get),
            name: text_or_null(self.name.as_ref()),
            number: transaction.number.unwrap_or(0),
            has_number: transaction.number.is_some(),
            isolation: match transaction.isolation {
                Some(Isolation::Serializable) => PANTILE_SERIALIZABLE,
                Some(Isolation::Snapshot) => PANTILE_SNAPSHOT,
                Some(Isolation::ReadCommitted) => PANTILE_READ_COMMITTED,
                _ => -1,
            },
            read_only: transaction.read_only,
            prepared: transaction.prepared,
            ended: text_or_null(self.ended.as_ref()),
            age: transaction.age.as_micros() as u64,
            timestamp: self.running.timestamp.get(),
            held_bytes: self.running.held_bytes,
            held_blocks: self.running.held_blocks,
            freed_bytes: self.running.freed_bytes,
            held_memory: self.running.held_dram_bytes,
            buffer_bytes: self.running.buffer_bytes,
            tables: self.tables.len(),
        }
    }
}

/// An element of a list.
fn nth<T>(list: &[T], n: usize) -> Result<&T, Failure> {
    list.get(n).ok_or_else(|| Failure::misuse(format!("there is no element {n}")))
}

/// Lists the transactions that are open, the oldest first, and what each holds back. Visits every block. Freed by
/// `pantile_transactions_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_transactions_list(
    db: *mut pantile_db,
    out: *mut *mut pantile_transactions,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let running = lent(db, "the database")?.db.transactions();
        out.give(pantile_transactions { list: running.into_iter().map(Listed::new).collect() });
        Ok(PANTILE_OK)
    })
}

/// How many there are; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_transactions_len(list: *const pantile_transactions) -> usize {
    lent(list, "the list").map_or(0, |list| list.list.len())
}

/// One of the transactions.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_transactions_get(
    list: *const pantile_transactions,
    n: usize,
    out: *mut pantile_running,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        out.set(nth(&lent(list, "the list")?.list, n)?.for_c());
        Ok(PANTILE_OK)
    })
}

/// What transaction `n` holds of one of the tables in which it holds something, the most first.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_transactions_held(
    list: *const pantile_transactions,
    n: usize,
    table: usize,
    out: *mut pantile_held,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let listed = nth(&lent(list, "the list")?.list, n)?;
        let (held, name) = (nth(&listed.running.tables, table)?, nth(&listed.tables, table)?);
        out.set(pantile_held { table: name.as_ptr(), bytes: held.bytes, blocks: held.blocks });
        Ok(PANTILE_OK)
    })
}

/// Frees a list of transactions.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_transactions_free(list: *mut pantile_transactions) {
    free(list);
}

/// Ends a transaction of any thread: nothing more of it is committed. Its next call fails with `PANTILE_ENDED`, and so does
/// one that waits for a lock. What it holds, locks included, goes when its thread rolls it back. A commit that has begun goes
/// on. Returns `PANTILE_UNKNOWN_TRANSACTION` if no such transaction is open.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_end_transaction(db: *mut pantile_db, id: u64) -> c_int {
    call(|| {
        lent(db, "the database")?.db.end_transaction(TransactionId::from_number(id))?;
        Ok(PANTILE_OK)
    })
}

/// Limits for how many milliseconds a transaction may hold back garbage, and says what is done about one that is older:
/// `PANTILE_WARN` or `PANTILE_END`. 0 is no limit, which is the default. One that holds back nothing may be of any age.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_set_max_pinned_age(db: *mut pantile_db, milliseconds: u64, then: c_int) -> c_int {
    call(|| {
        let then = on_pinned(then)?;
        let limit = (milliseconds > 0).then(|| (Duration::from_millis(milliseconds), then));
        lent(db, "the database")?.db.set_max_pinned_age(limit);
        Ok(PANTILE_OK)
    })
}

/// The same for the bytes that a transaction may hold back.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_set_max_pinned_bytes(db: *mut pantile_db, bytes: u64, then: c_int) -> c_int {
    call(|| {
        let then = on_pinned(then)?;
        lent(db, "the database")?.db.set_max_pinned_bytes((bytes > 0).then_some((bytes, then)));
        Ok(PANTILE_OK)
    })
}

/// In how many seconds the medium has no room left, if its used part goes on growing as in the last minute.
/// `PANTILE_NOT_FOUND` if it has not grown.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_full_in(db: *mut pantile_db, out: *mut u64) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let Some(time) = lent(db, "the database")?.db.full_in() else { return Ok(PANTILE_NOT_FOUND) };
        out.set(time.as_secs());
        Ok(PANTILE_OK)
    })
}

/// A process that reads the database beside this one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pantile_reader {
    /// Its number; 0 if it was there before this process opened the database.
    pub process: u32,
    /// For how many microseconds it has read; 0 if that is not known.
    pub age: u64,
    /// Superseded bytes on the medium, in blocks that it may be reading. Others may hold them, too.
    pub held_bytes: u64,
}

/// Writes up to `len` of the processes that read the database beside this one to `readers`, and to `found` how many there
/// are. `readers` may be NULL if `len` is 0.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_reading_processes(
    db: *mut pantile_db,
    readers: *mut pantile_reader,
    len: usize,
    found: *mut usize,
) -> c_int {
    call(|| {
        let found = Out::new(found)?;
        let places = array_mut(readers, len, "the readers")?;
        let reading = lent(db, "the database")?.db.reading_processes();
        for (place, reader) in places.iter_mut().zip(&reading) {
            *place = pantile_reader {
                process: reader.process.unwrap_or(0),
                age: reader.age.map_or(0, |age| age.as_micros() as u64),
                held_bytes: reader.held_bytes,
            };
        }
        found.set(reading.len());
        Ok(PANTILE_OK)
    })
}

/// What each table takes. Hidden tables of values out of line are listed by themselves, and so are dropped tables until
/// their space has been given back.
pub struct pantile_parts {
    list: Vec<Parts>,
}

struct Parts {
    parts: TableParts,
    name: CString,
    states: Vec<CString>,
    indexes: Vec<(CString, CString)>,
}

/// What a table takes. The name is valid until the list is freed; it is empty for what belongs to no table.
#[repr(C)]
pub struct pantile_table_parts {
    /// Its name.
    pub table: *const c_char,
    /// Its rows, as the newest transaction sees them.
    pub rows: u64,
    /// How many states its blocks are in; see `pantile_parts_blocks`.
    pub states: usize,
    /// How many indexes it has, the primary one included; see `pantile_parts_index`.
    pub indexes: usize,
}

/// The blocks of a table that are in one state.
#[repr(C)]
pub struct pantile_blocks {
    /// `open`: commits append to them. `sealed`: they are full. `frozen`: the collector empties them. `released`: they become
    /// free soon. `free`: they belong to no table. `record`: the database's own notes. Valid until the list is freed.
    pub state: *const c_char,
    /// How many.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The part of them in slots of the newest versions of rows.
    pub live_bytes: u64,
    /// The part in slots of superseded versions.
    pub obsolete_bytes: u64,
    /// The part in slots that are not written yet.
    pub unfilled_bytes: u64,
}

/// An index of a table. Texts are valid until the list is freed.
#[repr(C)]
pub struct pantile_index_parts {
    /// Its name; `primary` for the primary one.
    pub index: *const c_char,
    /// Its columns, most significant first, with commas between.
    pub columns: *const c_char,
    /// Whether it takes no second row with the same key.
    pub unique: bool,
    /// Whether it is in memory. Otherwise it is in an image on the medium, and is loaded when it is first used.
    pub is_loaded: bool,
    /// Its memory.
    pub bytes: u64,
}

impl Parts {
    fn new(parts: TableParts) -> Self {
        let index = |index: &IndexParts| (as_c(&index.name), as_c(&index.columns.join(",")));
        Self {
            name: as_c(&parts.table),
            states: parts.blocks.iter().map(|blocks| as_c(blocks.state)).collect(),
            indexes: parts.indexes.iter().map(index).collect(),
            parts,
        }
    }
}

/// What each table takes: its blocks by their state, its rows, and its indexes. Visits every block. Freed by
/// `pantile_parts_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_parts_by_table(db: *mut pantile_db, out: *mut *mut pantile_parts) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let parts = lent(db, "the database")?.db.parts_by_table();
        out.give(pantile_parts { list: parts.into_iter().map(Parts::new).collect() });
        Ok(PANTILE_OK)
    })
}

/// How many tables there are; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_parts_len(list: *const pantile_parts) -> usize {
    lent(list, "the list").map_or(0, |list| list.list.len())
}

/// One of the tables.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_parts_table(
    list: *const pantile_parts,
    n: usize,
    out: *mut pantile_table_parts,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let Parts { parts, name, states, indexes } = nth(&lent(list, "the list")?.list, n)?;
        out.set(pantile_table_parts {
            table: name.as_ptr(),
            rows: parts.rows,
            states: states.len(),
            indexes: indexes.len(),
        });
        Ok(PANTILE_OK)
    })
}

/// The blocks of table `n` that are in one of their states.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_parts_blocks(
    list: *const pantile_parts,
    n: usize,
    state: usize,
    out: *mut pantile_blocks,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let table = nth(&lent(list, "the list")?.list, n)?;
        let (blocks, name) = (nth(&table.parts.blocks, state)?, nth(&table.states, state)?);
        out.set(pantile_blocks {
            state: name.as_ptr(),
            blocks: blocks.blocks,
            bytes: blocks.bytes,
            live_bytes: blocks.live_bytes,
            obsolete_bytes: blocks.obsolete_bytes,
            unfilled_bytes: blocks.unfilled_bytes,
        });
        Ok(PANTILE_OK)
    })
}

/// One of the indexes of table `n`, the primary one first.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_parts_index(
    list: *const pantile_parts,
    n: usize,
    index: usize,
    out: *mut pantile_index_parts,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let table = nth(&lent(list, "the list")?.list, n)?;
        let (parts, (name, columns)) = (nth(&table.parts.indexes, index)?, nth(&table.indexes, index)?);
        out.set(pantile_index_parts {
            index: name.as_ptr(),
            columns: columns.as_ptr(),
            unique: parts.unique,
            is_loaded: parts.bytes.is_some(),
            bytes: parts.bytes.unwrap_or(0),
        });
        Ok(PANTILE_OK)
    })
}

/// Frees a list of tables.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_parts_free(list: *mut pantile_parts) {
    free(list);
}

/// What the collector has done since the database was opened, and what waits for it.
#[repr(C)]
pub struct pantile_collector_stats {
    /// Blocks that it has freed.
    pub blocks_reclaimed: u64,
    /// The part of them that transactions older than the block did not hold up.
    pub blocks_bypassed: u64,
    /// The part of them that was emptied early because space was short.
    pub blocks_compacted: u64,
    /// Old versions whose space it has freed.
    pub versions_reclaimed: u64,
    /// Live versions that it has copied,
    pub survivors_relocated: u64,
    /// and their bytes.
    pub copied_bytes: u64,
    /// Blocks that wait: they are mostly obsolete.
    pub pending_blocks: u64,
    /// Blocks that no transaction can see into.
    pub queued_blocks: u64,
    /// Blocks that are being emptied.
    pub frozen_blocks: u64,
    /// Blocks that wait for a long transaction.
    pub long_tx_blocks: u64,
    /// Old versions that wait one by one, with collectors that free versions instead of blocks.
    pub waiting_versions: u64,
    /// Deleted rows that wait until they hide nothing any more.
    pub waiting_tombstones: u64,
    /// Index entries that wait to be cleaned up.
    pub stale_entries: u64,
    /// Memory of what waits.
    pub queue_bytes: u64,
    /// Superseded bytes that transactions hold back.
    pub pinned_bytes: u64,
    /// Bytes that can still be written.
    pub room_bytes: u64,
    /// Transactions that held back more than allowed and were warned of,
    pub pin_warnings: u64,
    /// and those that were ended for it.
    pub pin_ends: u64,
    /// Transactions that were ended from outside, and whose threads have not rolled them back yet.
    pub ended_not_dropped: u64,
}

/// What the collector has done, and what waits for it. Visits every block.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_collector_statistics(
    db: *mut pantile_db,
    out: *mut pantile_collector_stats,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let db = &lent(db, "the database")?.db;
        let (stats, figures) = (db.stats(), db.figures());
        let collector = stats.collector;
        out.set(pantile_collector_stats {
            blocks_reclaimed: collector.blocks_reclaimed,
            blocks_bypassed: collector.blocks_bypassed,
            blocks_compacted: collector.blocks_compacted,
            versions_reclaimed: collector.versions_reclaimed,
            survivors_relocated: collector.survivors_relocated,
            copied_bytes: stats.copied_bytes,
            pending_blocks: collector.pending_blocks,
            queued_blocks: collector.queued_blocks,
            frozen_blocks: collector.frozen_blocks,
            long_tx_blocks: collector.long_tx_blocks,
            waiting_versions: collector.waiting_versions,
            waiting_tombstones: collector.waiting_tombstones,
            stale_entries: stats.stale_entries,
            queue_bytes: collector.queue_bytes,
            pinned_bytes: figures.pinned_bytes,
            room_bytes: figures.room_bytes,
            pin_warnings: stats.pin_warnings,
            pin_ends: stats.pin_ends,
            ended_not_dropped: stats.ended_not_dropped,
        });
        Ok(PANTILE_OK)
    })
}
