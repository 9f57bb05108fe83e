//! Codes, messages, and the barrier that panics do not pass.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pantile::{Conflict, Error};

use crate::c_text::as_c;

/// The call has done what it is for.
pub const PANTILE_OK: c_int = 0;
/// There is no such row.
pub const PANTILE_NOT_FOUND: c_int = 1;
/// The cursor has no more rows.
pub const PANTILE_DONE: c_int = 2;

/// The call was not made as it must be. It has done nothing.
pub const PANTILE_MISUSE: c_int = 100;
/// The library has a fault. The transaction can only be rolled back.
pub const PANTILE_PANIC: c_int = 101;

/// A concurrent transaction has read or written what this one would write. Run the transaction again.
pub const PANTILE_CONFLICT: c_int = 110;
/// Another running transaction has locked the row, and the call was not to wait. Run the transaction again.
pub const PANTILE_LOCKED: c_int = 111;
/// Another running transaction has locked the row, and has not ended in time. Run the transaction again.
pub const PANTILE_TIMED_OUT: c_int = 112;
/// Waiting would have closed a circle of transactions. Run the transaction again.
pub const PANTILE_DEADLOCK: c_int = 113;
/// As many transactions are open as can be. Run the transaction again.
pub const PANTILE_TOO_MANY_TRANSACTIONS: c_int = 114;
/// Another transaction has changed the row since the snapshot. Run the transaction again.
pub const PANTILE_CHANGED: c_int = 115;
/// A wait for a row that another transaction has locked was interrupted.
pub const PANTILE_INTERRUPTED: c_int = 116;

/// The transaction was ended from outside: by `pantile_end_transaction`, or because it held back too much. It can only be
/// rolled back.
pub const PANTILE_ENDED: c_int = 117;

/// A row with this key is there.
pub const PANTILE_DUPLICATE_KEY: c_int = 120;
/// No table, index or column of this name.
pub const PANTILE_UNKNOWN_NAME: c_int = 121;
/// A table or index of this name is there.
pub const PANTILE_NAME_EXISTS: c_int = 122;
/// The table was dropped while it was in use.
pub const PANTILE_TABLE_DROPPED: c_int = 123;
/// A value that its column does not take: its kind, its range, its length, NULL, or the number of values.
pub const PANTILE_BAD_VALUE: c_int = 124;
/// A row that is too large.
pub const PANTILE_ROW_TOO_LARGE: c_int = 125;
/// An update would change the primary key.
pub const PANTILE_PRIMARY_KEY_CHANGED: c_int = 126;
/// A definition or an option that makes no sense.
pub const PANTILE_INVALID: c_int = 127;
/// A write in a transaction that only reads.
pub const PANTILE_READ_ONLY: c_int = 128;
/// More rows than one transaction may write.
pub const PANTILE_TRANSACTION_TOO_LARGE: c_int = 129;
/// No such savepoint.
pub const PANTILE_UNKNOWN_SAVEPOINT: c_int = 130;
/// No such transaction is open.
pub const PANTILE_UNKNOWN_TRANSACTION: c_int = 131;

/// The medium has no room.
pub const PANTILE_STORAGE_FULL: c_int = 140;
/// The database may not take more memory.
pub const PANTILE_MEMORY_FULL: c_int = 141;
/// The medium failed earlier and takes no more writes.
pub const PANTILE_MEDIUM_FAILED: c_int = 142;
/// Committed data is damaged.
pub const PANTILE_DAMAGED: c_int = 143;
/// The system refused something before anything was changed.
pub const PANTILE_IO: c_int = 144;

/// A process has the database open.
pub const PANTILE_ALREADY_OPEN: c_int = 150;
/// There is no database at this path.
pub const PANTILE_NO_DATABASE: c_int = 151;
/// These files are not a database that this library can read.
pub const PANTILE_NOT_A_DATABASE: c_int = 152;
/// The medium cannot be used at this path.
pub const PANTILE_UNFIT_MEDIUM: c_int = 153;
/// The database is closed or is being closed.
pub const PANTILE_CLOSED: c_int = 154;
/// Others have not ended in time. The call has changed nothing.
pub const PANTILE_BUSY: c_int = 155;
/// The caller has stopped the work.
pub const PANTILE_CANCELLED: c_int = 156;
/// There is something in the directory.
pub const PANTILE_NOT_EMPTY: c_int = 157;

/// Why a call has failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: c_int,
    about: Box<About>,
}

#[derive(Debug, Default)]
struct About {
    message: String,
    table: Option<String>,
    index: Option<String>,
    column: Option<String>,
    again: Option<Error>,
}

impl Failure {
    fn new(code: c_int, message: String) -> Self {
        Self { code, about: Box::new(About { message, ..About::default() }) }
    }

    /// What the engine says, where running the transaction again can succeed.
    pub fn take_again(&mut self) -> Option<Error> {
        self.about.again.take()
    }

    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(PANTILE_MISUSE, message.into())
    }

    pub fn null(what: &str) -> Self {
        Self::misuse(format!("{what} is NULL"))
    }

    pub fn panicked() -> Self {
        Self::new(
            PANTILE_PANIC,
            "an earlier call of this transaction has panicked; roll the transaction back".into(),
        )
    }

    pub fn message(&self) -> &str {
        &self.about.message
    }

    fn from_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        let what = "this is a fault of the library; roll the transaction back, unless this call was to end it, and report it";
        Self::new(PANTILE_PANIC, format!("panicked: {text}; {what}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut failure = Self::new(code_of(&error), error.to_string());
        let about = &mut *failure.about;
        match &error {
            Error::Conflict { table, .. }
            | Error::UnknownTable(table)
            | Error::ForeignTable(table)
            | Error::TableExists(table)
            | Error::TableDropped(table)
            | Error::WrongArity { table, .. }
            | Error::RowTooLarge { table, .. }
            | Error::PrimaryKeyChanged { table } => about.table = Some(table.clone()),
            Error::DuplicateKey { table, index }
            | Error::UnknownIndex { table, index }
            | Error::IndexExists { table, index } => {
                (about.table, about.index) = (Some(table.clone()), Some(index.clone()));
            }
            Error::UnknownColumn { table, column }
            | Error::ColumnDropped { table, column }
            | Error::WrongType { table, column, .. }
            | Error::OutOfRange { table, column, .. }
            | Error::ReadOutOfRange { table, column, .. }
            | Error::TooLong { table, column, .. }
            | Error::NotNull { table, column } => {
                (about.table, about.column) = (Some(table.clone()), Some(column.clone()));
            }
            _ => {}
        }
        about.again = error.is_retryable().then_some(error);
        failure
    }
}

fn code_of(error: &Error) -> c_int {
    match error {
        Error::Conflict { conflict: Conflict::Locked, .. } => PANTILE_LOCKED,
        Error::Conflict { conflict: Conflict::TimedOut, .. } => PANTILE_TIMED_OUT,
        Error::Conflict { conflict: Conflict::Deadlock, .. } => PANTILE_DEADLOCK,
        Error::Conflict { conflict: Conflict::Interrupted, .. } => PANTILE_INTERRUPTED,
        Error::Conflict { conflict: Conflict::ChangedSinceSnapshot, .. } => PANTILE_CHANGED,
        Error::Conflict { .. } => PANTILE_CONFLICT,
        Error::TooManyTransactions { .. } => PANTILE_TOO_MANY_TRANSACTIONS,
        Error::DuplicateKey { .. } => PANTILE_DUPLICATE_KEY,
        Error::UnknownTable(_)
        | Error::ForeignTable(_)
        | Error::UnknownIndex { .. }
        | Error::UnknownColumn { .. }
        | Error::ColumnDropped { .. }
        | Error::UnknownPrepared { .. } => PANTILE_UNKNOWN_NAME,
        Error::TableExists(_) | Error::IndexExists { .. } | Error::AlreadyPrepared { .. } => {
            PANTILE_NAME_EXISTS
        }
        Error::TableDropped(_) => PANTILE_TABLE_DROPPED,
        Error::WrongType { .. }
        | Error::OutOfRange { .. }
        | Error::ReadOutOfRange { .. }
        | Error::TooLong { .. }
        | Error::NotNull { .. }
        | Error::WrongArity { .. }
        | Error::OutOfLine { .. } => PANTILE_BAD_VALUE,
        Error::RowTooLarge { .. } => PANTILE_ROW_TOO_LARGE,
        Error::PrimaryKeyChanged { .. } => PANTILE_PRIMARY_KEY_CHANGED,
        Error::InvalidDefinition(_)
        | Error::InvalidOption(_)
        | Error::DefinitionDiffers { .. }
        | Error::InvalidMigrations(_) => PANTILE_INVALID,
        Error::MigrationFailed { error, .. } => {
            Error::in_chain(error.as_ref()).map_or(PANTILE_INVALID, code_of)
        }
        Error::ReadOnly => PANTILE_READ_ONLY,
        Error::TransactionTooLarge => PANTILE_TRANSACTION_TOO_LARGE,
        Error::UnknownSavepoint => PANTILE_UNKNOWN_SAVEPOINT,
        Error::TransactionEnded { .. } => PANTILE_ENDED,
        Error::UnknownTransaction(_) => PANTILE_UNKNOWN_TRANSACTION,
        Error::StorageFull { .. } => PANTILE_STORAGE_FULL,
        Error::MemoryFull(_) => PANTILE_MEMORY_FULL,
        Error::MediumFailed { .. } => PANTILE_MEDIUM_FAILED,
        Error::Damaged { .. } => PANTILE_DAMAGED,
        Error::AlreadyOpen { .. } | Error::ReadersRefused { .. } | Error::BeingFilled(_) => {
            PANTILE_ALREADY_OPEN
        }
        Error::NoDatabase(_) => PANTILE_NO_DATABASE,
        Error::NotADatabase { .. }
        | Error::FormatVersion { .. }
        | Error::IncompleteBackup(_)
        | Error::IncrementalBackup(_) => PANTILE_NOT_A_DATABASE,
        Error::UnfitMedium { .. } => PANTILE_UNFIT_MEDIUM,
        Error::Closed => PANTILE_CLOSED,
        Error::Cancelled => PANTILE_CANCELLED,
        Error::NotEmpty(_) => PANTILE_NOT_EMPTY,
        Error::Timeout(_)
        | Error::StillOpen { .. }
        | Error::PreparedChanges { .. }
        | Error::TransactionPrepared(_) => PANTILE_BUSY,
        Error::UnknownCursor | Error::UnknownPosition { .. } => PANTILE_MISUSE,
        _ => PANTILE_IO,
    }
}

/// The last error of a thread, as C reads it.
#[derive(Default)]
struct Last {
    message: CString,
    table: Option<CString>,
    index: Option<CString>,
    column: Option<CString>,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Notes why a call has failed, and returns its code.
pub(crate) fn note(failure: Failure) -> c_int {
    let About { message, table, index, column, .. } = *failure.about;
    let last = Last {
        message: as_c(&message),
        table: table.as_deref().map(as_c),
        index: index.as_deref().map(as_c),
        column: column.as_deref().map(as_c),
    };
    // A thread that is ending has no last error any more.
    let _ = LAST.try_with(|place| place.replace(last));
    failure.code
}

/// Notes why a call fails that a program adds to this interface in Rust. Returns `PANTILE_MISUSE`.
pub fn misuse(message: impl Into<String>) -> c_int {
    note(Failure::misuse(message))
}

/// Runs the body of a call. No panic passes.
pub(crate) fn call(body: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    guarded(body).unwrap_or_else(note)
}

/// The same for a caller that has something left to do.
pub(crate) fn guarded<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Failure::from_panic(&*panic)))
}

fn last(of: impl FnOnce(&Last) -> Option<&CString>) -> *const c_char {
    let found = LAST.try_with(|last| of(&last.borrow()).map(|text| text.as_ptr()));
    found.ok().flatten().unwrap_or(ptr::null())
}

/// What went wrong in the last call of this thread that returned an error, what is still true and what to do. Empty if
/// there was none. The text is valid until the next call of this thread that returns an error.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_error_message() -> *const c_char {
    let found = last(|last| Some(&last.message));
    if found.is_null() { c"".as_ptr() } else { found }
}

/// The table that the last error is about, or NULL. Valid as long as the message.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_error_table() -> *const c_char {
    last(|last| last.table.as_ref())
}

/// The index that the last error is about, or NULL: of a duplicate key, `primary` for the primary key. Valid as long as
/// the message.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_error_index() -> *const c_char {
    last(|last| last.index.as_ref())
}

/// The column that the last error is about, or NULL. Valid as long as the message.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_error_column() -> *const c_char {
    last(|last| last.column.as_ref())
}

/// Whether the whole transaction can succeed if it is run again.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_is_retryable(code: c_int) -> bool {
    (PANTILE_CONFLICT..=PANTILE_CHANGED).contains(&code)
}

/// The version of the library, as in "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn pantile_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
