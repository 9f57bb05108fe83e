//! Two-phase commit.

use std::ffi::{c_char, c_int, c_void};

use pantile::PreparedTransaction;

use crate::database::{pantile_db, pantile_table};
use crate::error::{Failure, PANTILE_OK, call};
use crate::pointer::{Out, array, free, lent, taken, tell};
use crate::transaction::{ended, pantile_in_flight, pantile_txn};

/// A transaction that is prepared: its commit cannot fail but for the medium.
pub struct pantile_prepared {
    prepared: PreparedTransaction,
}

fn name_of<'n>(name: *const c_void, len: usize) -> Result<&'n [u8], Failure> {
    array(name.cast::<u8>(), len, "the name")
}

fn in_hand(prepared: *mut pantile_prepared) -> Result<PreparedTransaction, Failure> {
    taken(prepared).map(|prepared| prepared.prepared).ok_or_else(|| Failure::null("the prepared transaction"))
}

/// Prepares a transaction, for a coordinator that commits parts of one in several databases. `name` is of `len` bytes, at
/// most 255, and is free. What the transaction has changed is durable under that name from then on, and its locks
/// stay, also when the database is opened again, until it is committed or rolled back. The transaction has ended in any
/// case, unless the call returns `PANTILE_MISUSE`. It is rolled back if the call fails; after `PANTILE_MEDIUM_FAILED` the
/// next opening shows whether it has been prepared.
///
/// Readers do not wait for it, unless it is at `PANTILE_SERIALIZABLE`. The definitions of tables whose rows it has changed
/// cannot change.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_prepare(
    db: *mut pantile_db,
    txn: *mut pantile_txn,
    name: *const c_void,
    len: usize,
    out: *mut *mut pantile_prepared,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let (db, name) = (lent(db, "the database")?, name_of(name, len)?);
        out.give(pantile_prepared { prepared: db.db.prepare(ended(txn)?, name)? });
        Ok(PANTILE_OK)
    })
}

/// Commits a prepared transaction. `timestamp` may be NULL. If the call fails it is prepared as before and
/// `pantile_prepared_take` takes it again, unless a sync has failed: then the next opening shows whether it has been
/// committed.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_prepared_commit(prepared: *mut pantile_prepared, timestamp: *mut u64) -> c_int {
    call(|| {
        tell(timestamp, in_hand(prepared)?.commit()?.get());
        Ok(PANTILE_OK)
    })
}

/// The same, but returns as soon as the writes are visible, as `pantile_publish`. If the process ends before they are
/// durable, the transaction is prepared when the database is next opened.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_prepared_publish(
    prepared: *mut pantile_prepared,
    out: *mut *mut pantile_in_flight,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        out.give(pantile_in_flight::new(in_hand(prepared)?.publish()?));
        Ok(PANTILE_OK)
    })
}

/// Undoes all writes of a prepared transaction. If the call fails it is prepared as before.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_prepared_rollback(prepared: *mut pantile_prepared) -> c_int {
    call(|| {
        in_hand(prepared)?.rollback()?;
        Ok(PANTILE_OK)
    })
}

/// Leaves a transaction prepared, for `pantile_prepared_take`. Does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_prepared_free(prepared: *mut pantile_prepared) {
    free(prepared);
}

/// Takes a prepared transaction by its name, to commit it or to roll it back: `PANTILE_UNKNOWN_NAME` if none of this name
/// waits.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_prepared_take(
    db: *mut pantile_db,
    name: *const c_void,
    len: usize,
    out: *mut *mut pantile_prepared,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let db = lent(db, "the database")?;
        out.give(pantile_prepared { prepared: db.db.take_prepared(name_of(name, len)?)? });
        Ok(PANTILE_OK)
    })
}

/// Checks that no prepared transaction has changed rows of a table: `PANTILE_BUSY` if one has. Then the table is neither
/// changed nor dropped.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_prepared_check_table(db: *mut pantile_db, table: *const pantile_table) -> c_int {
    call(|| {
        lent(db, "the database")?.db.check_prepared(&lent(table, "the table")?.table)?;
        Ok(PANTILE_OK)
    })
}

/// What `pantile_prepared_each` calls with each name.
pub type pantile_each_name =
    Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char, len: usize)>;

/// Calls `each` with the names of the prepared transactions that wait, in order.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_prepared_each(
    db: *mut pantile_db,
    each: pantile_each_name,
    context: *mut c_void,
) -> c_int {
    call(|| {
        let db = lent(db, "the database")?;
        let each = each.ok_or_else(|| Failure::null("the function"))?;
        for name in db.db.prepared() {
            // SAFETY: callers hand over a function that may be called so.
            unsafe { each(context, name.as_ptr().cast(), name.len()) };
        }
        Ok(PANTILE_OK)
    })
}
