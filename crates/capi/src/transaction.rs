//! Transactions: beginning, writing, reading by key, ending.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::{CStr, c_char, c_int, c_void};

use pantile::{InFlight, Isolation, RowId, Savepoint, Transaction, TransactionOptions, Value};
use smallvec::SmallVec;

use crate::database::{pantile_db, pantile_index, pantile_table};
use crate::error::{
    Failure, PANTILE_NOT_FOUND, PANTILE_OK, PANTILE_PANIC, call, guarded, note, pantile_is_retryable,
};
use crate::options::policy;
use crate::pointer::{Out, array, free, lent, lent_mut, taken, tell};
use crate::row::pantile_row;
use crate::stop::Context;
use crate::value::{Values, pantile_value, values};

/// Transactions are as if run one by one, in an order that agrees with real time. The default.
pub const PANTILE_SERIALIZABLE: c_int = 0;
/// Reads show the moment at which the transaction began.
pub const PANTILE_SNAPSHOT: c_int = 1;
/// Reads show the moment at which the statement began.
pub const PANTILE_READ_COMMITTED: c_int = 2;

/// How a transaction runs. Zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pantile_txn_options {
    /// `PANTILE_SERIALIZABLE`, `PANTILE_SNAPSHOT` or `PANTILE_READ_COMMITTED`.
    pub isolation: c_int,
    /// Whether it only reads. It then sees all that was acknowledged before it began, and what others write does not make
    /// it fail, except rows of prepared transactions (docs/isolation.md).
    pub read_only: bool,
    /// Whether it reads a state from before every writer that is running. No writer notices it: for long reports.
    pub safe_snapshot: bool,
    /// Whether `lock_wait` counts. Otherwise the database's does.
    pub has_lock_wait: bool,
    /// For how many milliseconds calls wait for rows that others have locked.
    pub lock_wait: u64,
    /// What people call it, in lists, warnings and messages; NULL for no name. The text must stay valid as long as the
    /// database is open: a literal.
    pub name: *const c_char,
    /// Whether `number` counts.
    pub has_number: bool,
    /// Its number among those of this name, that of a connection for example.
    pub number: u64,
}

/// A transaction.
pub struct pantile_txn {
    txn: UnsafeCell<Transaction>,
    savepoints: RefCell<SmallVec<[Savepoint; 4]>>,
    /// Why the last call failed, if running the transaction again can succeed.
    again: Cell<Option<pantile::Error>>,
    has_panicked: Cell<bool>,
    /// It is of `pantile_run`, which ends it.
    is_lent: bool,
}

/// A commit on its way to the medium.
pub struct pantile_in_flight {
    flight: InFlight,
}

impl pantile_in_flight {
    pub(crate) fn new(flight: InFlight) -> Self {
        Self { flight }
    }
}

impl pantile_txn {
    fn new(txn: Transaction, is_lent: bool) -> Self {
        Self {
            txn: UnsafeCell::new(txn),
            savepoints: RefCell::default(),
            again: Cell::new(None),
            has_panicked: Cell::new(false),
            is_lent,
        }
    }

    /// For reading.
    pub(crate) fn open(&self) -> Result<&Transaction, Failure> {
        self.check_panicked()?;
        // SAFETY: one thread uses the transaction at a time, and what the calls
        // lend ends with them.
        Ok(unsafe { &*self.txn.get() })
    }

    /// For writing, for the time of one call.
    #[allow(clippy::mut_from_ref, reason = "the handle is shared, and one thread uses it at a time")]
    pub(crate) fn open_mut(&self) -> Result<&mut Transaction, Failure> {
        self.check_panicked()?;
        // SAFETY: as for `open`.
        Ok(unsafe { &mut *self.txn.get() })
    }

    fn check_panicked(&self) -> Result<(), Failure> {
        if self.has_panicked.get() { Err(Failure::panicked()) } else { Ok(()) }
    }

    fn into_open(self) -> Result<Transaction, Failure> {
        self.check_panicked()?;
        Ok(self.txn.into_inner())
    }
}

/// Runs a call about a transaction.
pub(crate) fn about(
    txn: *const pantile_txn,
    body: impl FnOnce(&pantile_txn) -> Result<c_int, Failure>,
) -> c_int {
    let txn = match lent(txn, "the transaction") {
        Ok(txn) => txn,
        Err(failure) => return note(failure),
    };
    guarded(|| body(txn)).unwrap_or_else(|mut failure| {
        txn.has_panicked.set(txn.has_panicked.get() || failure.code == PANTILE_PANIC);
        // What fails after a conflict does not hide it: the body may return either.
        if let Some(again) = failure.take_again() {
            txn.again.set(Some(again));
        }
        note(failure)
    })
}

/// Reads a row and locks it. The place then knows whether it was locked before.
pub(crate) fn lock_into(
    txn: &pantile_txn,
    place: &mut pantile_row,
    read: impl FnOnce(&mut Transaction, &mut pantile_row) -> Result<c_int, Failure>,
) -> Result<c_int, Failure> {
    let txn = txn.open_mut()?;
    let before = txn.locked_rows();
    let code = read(txn, place)?;
    place.set_newly_locked(txn.locked_rows() > before);
    Ok(code)
}

fn options_of(options: *const pantile_txn_options) -> Result<TransactionOptions, Failure> {
    if options.is_null() {
        return Ok(TransactionOptions::new());
    }
    let options = lent(options, "options")?;
    let isolation = match options.isolation {
        PANTILE_SERIALIZABLE => Isolation::Serializable,
        PANTILE_SNAPSHOT => Isolation::Snapshot,
        PANTILE_READ_COMMITTED => Isolation::ReadCommitted,
        other => return Err(Failure::misuse(format!("there is no isolation {other}"))),
    };
    let mut made = TransactionOptions::new().isolation(isolation).read_only(options.read_only);
    if options.safe_snapshot {
        made = made.safe_snapshot();
    }
    if !options.name.is_null() {
        // SAFETY: the caller's promise.
        let name: &'static CStr = unsafe { CStr::from_ptr(options.name) };
        made = made.name(name.to_str().map_err(|_| Failure::misuse("the transaction's name is not UTF-8"))?);
    }
    if options.has_number {
        made = made.number(options.number);
    }
    Ok(if options.has_lock_wait { made.conflict(policy(options.lock_wait)) } else { made })
}

/// Begins a transaction. `options` may be NULL. Ended by `pantile_commit`, `pantile_publish` or `pantile_rollback`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_begin(
    db: *mut pantile_db,
    options: *const pantile_txn_options,
    out: *mut *mut pantile_txn,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let txn = lent(db, "the database")?.db.begin_with(options_of(options)?)?;
        out.give(pantile_txn::new(txn, false));
        Ok(PANTILE_OK)
    })
}

/// By which `pantile_end_transaction` knows the transaction.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_txn_id(txn: *const pantile_txn, out: *mut u64) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        out.set(lent(txn, "the transaction")?.open()?.id().get());
        Ok(PANTILE_OK)
    })
}

/// Checks that a transaction can be ended by its holder, and takes it.
pub(crate) fn ended(txn: *mut pantile_txn) -> Result<Transaction, Failure> {
    let held = lent(txn, "the transaction")?;
    if held.is_lent {
        return Err(Failure::misuse("pantile_run ends the transaction; return a code instead"));
    }
    // Before it is taken: it is still to be rolled back.
    held.check_panicked().map_err(|panicked| Failure::misuse(panicked.message()))?;
    taken(txn).ok_or_else(|| Failure::null("the transaction"))?.into_open()
}

/// Commits: makes the writes visible and durable, all or none. `timestamp` may be NULL; transactions with a greater one
/// see them. The transaction has ended in any case, unless the call returns `PANTILE_MISUSE`. It is rolled back if the
/// call fails; after `PANTILE_MEDIUM_FAILED` the next opening shows whether it has been committed, and after
/// `PANTILE_PANIC` a look at what it was to change.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_commit(txn: *mut pantile_txn, timestamp: *mut u64) -> c_int {
    call(|| {
        let committed = ended(txn)?.commit()?;
        tell(timestamp, committed.get());
        Ok(PANTILE_OK)
    })
}

/// The same, but returns as soon as the writes are visible. `out` says when they are durable, and is given to
/// `pantile_in_flight_wait`. One thread can so have many commits on their way.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_publish(txn: *mut pantile_txn, out: *mut *mut pantile_in_flight) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        out.give(pantile_in_flight::new(ended(txn)?.publish()?));
        Ok(PANTILE_OK)
    })
}

/// Whether waiting would return at once; also for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_in_flight_is_over(flight: *const pantile_in_flight) -> bool {
    lent(flight, "the commit").map_or(true, |flight| flight.flight.is_over())
}

/// Waits until a commit is durable, and frees it. `timestamp` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_in_flight_wait(flight: *mut pantile_in_flight, timestamp: *mut u64) -> c_int {
    call(|| {
        let flight = taken(flight).ok_or_else(|| Failure::null("the commit"))?;
        tell(timestamp, flight.flight.wait()?.get());
        Ok(PANTILE_OK)
    })
}

/// Leaves a commit to itself: it becomes durable soon, and nobody learns if it does not. Does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_in_flight_free(flight: *mut pantile_in_flight) {
    free(flight);
}

/// Undoes all writes and ends the transaction. Does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_rollback(txn: *mut pantile_txn) -> c_int {
    if txn.is_null() {
        return PANTILE_OK;
    }
    call(|| {
        let held = lent(txn, "the transaction")?;
        match held.has_panicked.get() && !held.is_lent {
            // What it holds goes, whatever state it is in.
            true => drop(taken(txn)),
            false => ended(txn)?.rollback(),
        }
        Ok(PANTILE_OK)
    })
}

/// The timestamp of the transaction: it sees what was committed at or before it. From this call on the transaction does not
/// begin again at a later one, as it may when it locks its first row and has read nothing before.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_txn_timestamp(txn: *const pantile_txn, out: *mut u64) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        out.set(lent(txn, "the transaction")?.open()?.timestamp().get());
        Ok(PANTILE_OK)
    })
}

/// What `pantile_run` calls: it reads and writes, and returns `PANTILE_OK`, the code of a call that has failed, or a
/// negative number of its own.
pub type pantile_body = Option<unsafe extern "C" fn(txn: *mut pantile_txn, context: *mut c_void) -> c_int>;

/// Runs `body` in a transaction and commits it. Starts again, after a while and for some time, if the body or the commit
/// has met a conflict, so the body may run several times. If the body returns anything else than `PANTILE_OK`, the
/// transaction is rolled back and the call returns the same. `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_run(
    db: *mut pantile_db,
    options: *const pantile_txn_options,
    body: pantile_body,
    context: *mut c_void,
) -> c_int {
    call(|| {
        let db = &lent(db, "the database")?.db;
        let options = options_of(options)?;
        let body = body.ok_or_else(|| Failure::null("the body"))?;
        let mut retry = db.retry();
        loop {
            let outcome = db.begin_with(options).map_err(Failure::from).and_then(|txn| {
                let txn = Box::into_raw(Box::new(pantile_txn::new(txn, true)));
                // SAFETY: callers hand over a function that may be called so. It has
                // returned when the transaction is used again.
                let code = unsafe { body(txn, context) };
                let txn = taken(txn).ok_or_else(|| Failure::null("the transaction"))?;
                match txn.again.take() {
                    Some(error) if pantile_is_retryable(code) => Err(error.into()),
                    _ if code != PANTILE_OK => Ok(code),
                    _ => Ok(txn.into_open()?.commit().map(|_| PANTILE_OK)?),
                }
            });
            let mut failure = match outcome {
                Ok(code) => return Ok(code),
                Err(failure) => failure,
            };
            match failure.take_again() {
                Some(error) if retry.again(&error) => {}
                Some(error) => return Err(error.into()),
                None => return Err(failure),
            }
        }
    })
}

/// Sets a savepoint. Savepoints are numbered from 0.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_savepoint(txn: *mut pantile_txn, out: *mut usize) -> c_int {
    about(txn, |txn| {
        let out = Out::new(out)?;
        let savepoint = txn.open_mut()?.savepoint();
        let mut set = txn.savepoints.borrow_mut();
        out.set(set.len());
        set.push(savepoint);
        Ok(PANTILE_OK)
    })
}

/// Undoes all writes since a savepoint, which stays valid. Later ones do not. Locks taken since it are released.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_rollback_to(txn: *mut pantile_txn, savepoint: usize) -> c_int {
    about(txn, |txn| {
        let mut set = txn.savepoints.borrow_mut();
        let found = set.get(savepoint).copied().ok_or(pantile::Error::UnknownSavepoint)?;
        txn.open_mut()?.rollback_to(found)?;
        set.truncate(savepoint + 1);
        Ok(PANTILE_OK)
    })
}

/// Forgets a savepoint and those that were set after it. What was written since stays.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_release_savepoint(txn: *mut pantile_txn, savepoint: usize) -> c_int {
    about(txn, |txn| {
        let mut set = txn.savepoints.borrow_mut();
        let found = set.get(savepoint).copied().ok_or(pantile::Error::UnknownSavepoint)?;
        txn.open_mut()?.release(found);
        set.truncate(savepoint);
        Ok(PANTILE_OK)
    })
}

/// Begins a statement: at `PANTILE_READ_COMMITTED`, calls up to the next statement read the state of this moment.
/// Without, each call reads a state of its own.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_begin_statement(txn: *mut pantile_txn) -> c_int {
    about(txn, |txn| {
        txn.open_mut()?.begin_statement();
        Ok(PANTILE_OK)
    })
}

/// Ends a statement of a transaction that began at `PANTILE_READ_COMMITTED`: until it reads again, nothing is kept for it but
/// the rows that it has locked, and its snapshot if it has taken one. Without, all versions are kept that were visible since
/// it began. Cursors of the statement go on only after `pantile_cursor_turn`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_end_statement(txn: *mut pantile_txn) -> c_int {
    about(txn, |txn| {
        txn.open_mut()?.end_statement();
        Ok(PANTILE_OK)
    })
}

/// From here on, a transaction at `PANTILE_READ_COMMITTED` is one at `PANTILE_SNAPSHOT`, and its snapshot is of this
/// moment. What it has locked and written before stays.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_take_snapshot(txn: *mut pantile_txn) -> c_int {
    about(txn, |txn| {
        txn.open_mut()?.take_snapshot();
        Ok(PANTILE_OK)
    })
}

/// Whether a table was made, or emptied, after the moment at which the transaction reads: `PANTILE_OK`, or
/// `PANTILE_NOT_FOUND` if not. It shows no rows of that moment. At `PANTILE_READ_COMMITTED`, the moment at which it began
/// counts.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_is_before_table(txn: *mut pantile_txn, table: *const pantile_table) -> c_int {
    about(txn, |txn| {
        let table = &lent(table, "the table")?.table;
        Ok(found(txn.open_mut()?.is_before(table)))
    })
}

/// The number of rows that the transaction has locked, written ones included.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_locked_rows(txn: *mut pantile_txn, out: *mut usize) -> c_int {
    about(txn, |txn| {
        let out = Out::new(out)?;
        out.set(txn.open_mut()?.locked_rows());
        Ok(PANTILE_OK)
    })
}

/// Sets for how many milliseconds calls of this transaction wait for rows that others have locked. With 0 they fail at
/// once.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_set_lock_wait(txn: *mut pantile_txn, milliseconds: u64) -> c_int {
    about(txn, |txn| {
        txn.open_mut()?.set_conflict(policy(milliseconds));
        Ok(PANTILE_OK)
    })
}

/// Whether a wait for the transaction of this number is to end.
pub type pantile_stop_wait = Option<unsafe extern "C" fn(context: *mut c_void, number: u64) -> bool>;

/// Before the transaction waits for rows that others have locked, and every 20 milliseconds while it waits, it calls `stop`,
/// in the thread that waits, with the number of the transaction for which it waits (`UINT64_MAX` if that has none). The call
/// that waits returns `PANTILE_INTERRUPTED` when `stop` returns true. `context` must be valid as long as the transaction.
/// `stop` must not call anything with this transaction, which is in the middle of a call.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_interrupt_when(
    txn: *mut pantile_txn,
    stop: pantile_stop_wait,
    context: *mut c_void,
) -> c_int {
    about(txn, |txn| {
        let stop = stop.ok_or_else(|| Failure::null("the function"))?;
        let context = Context(context);
        txn.open_mut()?.interrupt_when(move |number| {
            let Context(context) = &context;
            // SAFETY: the caller has handed over a function and what it takes.
            unsafe { stop(*context, number.unwrap_or(u64::MAX)) }
        });
        Ok(PANTILE_OK)
    })
}

/// Inserts a row: `len` values, in the order of the table's columns.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_insert(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    row: *const pantile_value,
    len: usize,
) -> c_int {
    about(txn, |txn| {
        txn.open_mut()?.insert(&lent(table, "the table")?.table, &values(row, len)?)?;
        Ok(PANTILE_OK)
    })
}

/// Inserts a row, or replaces the one with the same primary key. `replaced` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_upsert(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    row: *const pantile_value,
    len: usize,
    replaced: *mut bool,
) -> c_int {
    about(txn, |txn| {
        let found = txn.open_mut()?.upsert(&lent(table, "the table")?.table, &values(row, len)?)?;
        tell(replaced, found);
        Ok(PANTILE_OK)
    })
}

/// The numbers of columns and what they are set to.
fn changes<'v>(
    columns: *const usize,
    new_values: *const pantile_value,
    len: usize,
) -> Result<SmallVec<[(usize, Value<'v>); 8]>, Failure> {
    let columns = array(columns, len, "the array of columns")?;
    let values = array(new_values, len, "the array of values")?;
    columns.iter().zip(values).map(|(&column, value)| Ok((column, value.to_value()?))).collect()
}

/// Sets `len` columns, by their numbers, of the row with this primary key. Returns `PANTILE_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_update(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    key: *const pantile_value,
    key_len: usize,
    columns: *const usize,
    new_values: *const pantile_value,
    len: usize,
) -> c_int {
    about(txn, |txn| {
        let changes = changes(columns, new_values, len)?;
        let table = &lent(table, "the table")?.table;
        Ok(found(txn.open_mut()?.update(table, &values(key, key_len)?, &changes)?))
    })
}

/// Deletes the row with this primary key. Returns `PANTILE_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_delete(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    key: *const pantile_value,
    key_len: usize,
) -> c_int {
    about(txn, |txn| {
        let table = &lent(table, "the table")?.table;
        Ok(found(txn.open_mut()?.delete(table, &values(key, key_len)?)?))
    })
}

/// Reads the row with this primary key into `row`. Returns `PANTILE_NOT_FOUND`, and leaves `row` as it was, if there is
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_get(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    key: *const pantile_value,
    key_len: usize,
    row: *mut pantile_row,
) -> c_int {
    about(txn, |txn| {
        let (table, place) = (lent(table, "the table")?, lent_mut(row, "the row")?);
        let row = txn.open()?.get(&table.table, &values(key, key_len)?)?;
        place.take(row, &table.columns)
    })
}

/// The same as `pantile_get`, and says the place of the row, as `pantile_cursor_row_id` would.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_find_row(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    key: *const pantile_value,
    key_len: usize,
    row: *mut pantile_row,
    id: *mut u64,
) -> c_int {
    about(txn, |txn| {
        let (table, place, id) = (lent(table, "the table")?, lent_mut(row, "the row")?, Out::new(id)?);
        let Some((at, row)) = txn.open()?.find_row(&table.table, &values(key, key_len)?)? else {
            return Ok(PANTILE_NOT_FOUND);
        };
        place.load(&row, &table.columns)?;
        place.set_place(at);
        id.set(at.get());
        Ok(PANTILE_OK)
    })
}

/// The same as `pantile_find_row`, and keeps others from writing the row until the transaction has ended.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_find_row_for_update(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    key: *const pantile_value,
    key_len: usize,
    row: *mut pantile_row,
    id: *mut u64,
) -> c_int {
    about(txn, |txn| {
        let (table, place, id) = (lent(table, "the table")?, lent_mut(row, "the row")?, Out::new(id)?);
        let key = values(key, key_len)?;
        lock_into(txn, place, |txn, place| {
            let found = txn.find_row_for_update(&table.table, &key)?;
            let Some((at, row)) = found else { return Ok(PANTILE_NOT_FOUND) };
            place.load(&row, &table.columns)?;
            place.set_place(at);
            id.set(at.get());
            Ok(PANTILE_OK)
        })
    })
}

/// Fetches rows that are read soon: into the processor's caches, or into memory if the database is larger than that.
/// `keys` are `count` primary keys of `key_len` values each, one behind the other, or the first values of primary keys; then
/// the first 16 rows, or less, of each are fetched. A key may have no row. That is only to save time: many rows are waited
/// for at once, not one after the other. It reads nothing in the sense of isolation.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_fetch_ahead(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    keys: *const pantile_value,
    key_len: usize,
    count: usize,
) -> c_int {
    about(txn, |txn| {
        let table = lent(table, "the table")?;
        let values = keys_of(keys, key_len, count)?;
        let keys: Vec<_> = values.chunks(key_len.max(1)).collect();
        Ok(txn.open()?.fetch_ahead(&table.table, &keys).map(|()| PANTILE_OK)?)
    })
}

/// The same for keys of a secondary index, or the first values of them. A join does so with the keys of its next rows.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_fetch_ahead_index(
    txn: *mut pantile_txn,
    index: *const pantile_index,
    keys: *const pantile_value,
    key_len: usize,
    count: usize,
) -> c_int {
    about(txn, |txn| {
        let index = lent(index, "the index")?;
        let values = keys_of(keys, key_len, count)?;
        let keys: Vec<_> = values.chunks(key_len.max(1)).collect();
        Ok(txn.open()?.fetch_ahead_index(&index.index, &keys).map(|()| PANTILE_OK)?)
    })
}

/// The values of `count` keys of `len` values each.
fn keys_of<'a>(keys: *const pantile_value, len: usize, count: usize) -> Result<Values<'a>, Failure> {
    let all = len.checked_mul(count).filter(|all| *all > 0 || count == 0);
    values(keys, all.ok_or_else(|| Failure::misuse("a key has no values"))?)
}

/// The same as `pantile_get`, and keeps others from writing the row until the transaction has ended.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_get_for_update(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    key: *const pantile_value,
    key_len: usize,
    row: *mut pantile_row,
) -> c_int {
    about(txn, |txn| {
        let (table, place) = (lent(table, "the table")?, lent_mut(row, "the row")?);
        let key = values(key, key_len)?;
        lock_into(txn, place, |txn, place| {
            place.take(txn.get_for_update(&table.table, &key)?, &table.columns)
        })
    })
}

/// Reads the first row with this key of an index into `row`. Returns `PANTILE_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_get_by_index(
    txn: *mut pantile_txn,
    index: *const pantile_index,
    key: *const pantile_value,
    key_len: usize,
    row: *mut pantile_row,
) -> c_int {
    about(txn, |txn| {
        let (index, place) = (lent(index, "the index")?, lent_mut(row, "the row")?);
        let row = txn.open()?.get_by_index(&index.index, &values(key, key_len)?)?;
        place.take(row, &index.columns)
    })
}

/// Reads the row at this place into `row`; places are from `pantile_cursor_row_id`. Returns `PANTILE_NOT_FOUND` if the
/// transaction sees none there.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_get_row(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    id: u64,
    row: *mut pantile_row,
) -> c_int {
    about(txn, |txn| {
        let (table, place) = (lent(table, "the table")?, lent_mut(row, "the row")?);
        let id = RowId::new(id);
        place.take_at(id, txn.open()?.get_row(&table.table, id)?, &table.columns)
    })
}

/// The same, and keeps others from writing the row until the transaction has ended.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_get_row_for_update(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    id: u64,
    row: *mut pantile_row,
) -> c_int {
    about(txn, |txn| {
        let (table, place) = (lent(table, "the table")?, lent_mut(row, "the row")?);
        lock_into(txn, place, |txn, place| {
            let id = RowId::new(id);
            place.take_at(id, txn.get_row_for_update(&table.table, id)?, &table.columns)
        })
    })
}

/// Sets `len` columns, by their numbers, of the row at this place. Returns `PANTILE_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_update_row(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    id: u64,
    columns: *const usize,
    new_values: *const pantile_value,
    len: usize,
) -> c_int {
    about(txn, |txn| {
        let changes = changes(columns, new_values, len)?;
        let table = &lent(table, "the table")?.table;
        Ok(found(txn.open_mut()?.update_row(table, RowId::new(id), &changes)?))
    })
}

/// Deletes the row at this place. Returns `PANTILE_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_delete_row(txn: *mut pantile_txn, table: *const pantile_table, id: u64) -> c_int {
    about(txn, |txn| {
        let table = &lent(table, "the table")?.table;
        Ok(found(txn.open_mut()?.delete_row(table, RowId::new(id))?))
    })
}

/// Lets go of a row that this transaction has locked last and not written. Returns `PANTILE_NOT_FOUND`, and does
/// nothing, if it is another one.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_unlock_row(txn: *mut pantile_txn, table: *const pantile_table, id: u64) -> c_int {
    about(txn, |txn| {
        let table = &lent(table, "the table")?.table;
        Ok(found(txn.open_mut()?.unlock_row(table, RowId::new(id))))
    })
}

fn found(found: bool) -> c_int {
    if found { PANTILE_OK } else { PANTILE_NOT_FOUND }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::PANTILE_MISUSE;

    /// What a call that ends the transaction says, a program can do: the handle is still there.
    #[test]
    fn after_a_panic_the_transaction_can_be_rolled_back() {
        let options = pantile::Options::new().medium(pantile::MediumKind::Dram);
        let db = options.open("unused").expect("a database");
        let txn = Box::into_raw(Box::new(pantile_txn::new(db.begin().expect("a transaction"), false)));
        assert_eq!(about(txn, |_| panic!("a fault")), PANTILE_PANIC);
        assert_eq!(pantile_commit(txn, std::ptr::null_mut()), PANTILE_MISUSE);
        assert_eq!(pantile_rollback(txn), PANTILE_OK);
        db.close().expect("nothing is open");
    }
}
