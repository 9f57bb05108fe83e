//! The one error type of the engine.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pantile_media::{Explained, User};

use crate::types::memory::MemoryUse;
use crate::types::running::{EndedBy, OpenTransaction, TransactionId};

/// A result whose error is [`Error`] by default.
///
/// ```
/// use pantile::{Database, Result, Table};
///
/// fn balance(db: &Database, accounts: &Table, id: u64) -> Result<Option<i64>> {
///     let txn = db.begin_read()?;
///     txn.get(accounts, &[id.into()])?.map(|row| row.get("balance")).transpose()
/// }
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What keeps a transaction from reading or writing.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&t, &[1u64.into(), 0i64.into()]))?;
/// let mut first = db.begin()?;
/// first.update(&t, &[1u64.into()], &[(1, 1i64.into())])?;
/// let at_once = TransactionOptions::new().conflict(ConflictPolicy::Abort);
/// let mut second = db.begin_with(at_once)?;
/// match second.update(&t, &[1u64.into()], &[(1, 2i64.into())]) {
///     Err(Error::Conflict { conflict, .. }) => assert_eq!(conflict, Conflict::Locked),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Conflict {
    /// A transaction with a later timestamp has already written the tuple.
    WrittenByLater,
    /// A transaction with a later timestamp has already read the tuple, or the
    /// gap into which a key was to go.
    ReadByLater,
    /// Later transactions have read what this one writes, so it had to move to a later timestamp.
    /// Something that it has read had changed by then.
    ReadChanged,
    /// Another running transaction has locked the tuple, by a write or by
    /// [`get_for_update`](crate::Transaction::get_for_update). The call did not
    /// wait, because the conflict policy is [`Abort`](crate::ConflictPolicy::Abort)
    /// or because waiting could not have helped.
    Locked,
    /// Another running transaction has locked the tuple. The call waited for it
    /// as long as the conflict policy allows, and it has not ended.
    TimedOut,
    /// Another running transaction has locked the tuple, and this one was told
    /// to stop waiting (see
    /// [`interrupt_when`](crate::Transaction::interrupt_when)).
    Interrupted,
    /// Waiting would have closed a cycle of transactions that wait for each other.
    Deadlock,
    /// Snapshot isolation: another transaction has committed the tuple since
    /// this one began (first committer wins).
    ChangedSinceSnapshot,
    /// In a serializable transaction: the table was created after the transaction began, so it does
    /// not exist at the transaction's timestamp, or the handle has columns of a later change. In a
    /// transaction that only reads, also at snapshot level: the table has taken the place of
    /// another one since.
    TableIsNewer,
}

/// Everything that can go wrong.
///
/// The message of each says what happened, what is still true and what to do.
/// Unless a message says otherwise, the failed call has changed nothing and its
/// transaction can go on.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// db.run(|txn| txn.insert(&t, &[1u64.into(), 0i64.into()]))?;
/// let again = db.run(|txn| txn.insert(&t, &[1u64.into(), 0i64.into()]));
/// assert_eq!(
///     again.expect_err("the key is taken").to_string(),
///     "table \"t\" already has a row with this key of index \"primary\"; nothing was changed"
/// );
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A concurrent transaction is in the way. Run the transaction again.
    Conflict {
        /// What is in the way.
        conflict: Conflict,
        /// The table in which it is.
        table: String,
    },
    /// A row with this key exists, or a unique index has an entry of this key.
    DuplicateKey {
        /// The table.
        table: String,
        /// The unique index; `primary` for the primary key.
        index: String,
    },
    /// No table of this name.
    UnknownTable(String),
    /// The handle of this table is of another database.
    ForeignTable(String),
    /// A table of this name exists.
    TableExists(String),
    /// The table was dropped while a handle or a transaction still used it.
    TableDropped(String),
    /// The table has no index of this name.
    UnknownIndex {
        /// The table.
        table: String,
        /// The name asked for.
        index: String,
    },
    /// An index of this name exists.
    IndexExists {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// The table has no such column.
    UnknownColumn {
        /// The table.
        table: String,
        /// Name or number asked for.
        column: String,
    },
    /// The column has been dropped since the handle of the table was made. Get a new
    /// one by [`Database::table`](crate::Database::table).
    ColumnDropped {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A table of this name exists, and its definition is another one.
    DefinitionDiffers {
        /// The table.
        table: String,
        /// How it differs from what was asked for.
        differences: String,
    },
    /// The migrations contradict each other, or those that the database has had.
    InvalidMigrations(String),
    /// A step of a migration failed. The steps before it stay in effect.
    MigrationFailed {
        /// The migration.
        number: u64,
        /// Its name.
        name: String,
        /// The step, counted from 1.
        step: u64,
        /// Why: an [`Error`], or what the step's own code failed with.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value that is not of the column's type.
    WrongType {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The column's type.
        expected: String,
        /// What was given or asked for.
        got: String,
    },
    /// A number that the column's type cannot hold.
    OutOfRange {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The value.
        value: String,
        /// What the column takes.
        takes: String,
    },
    /// What serde reads from a row, or makes a row of, does not fit the table.
    #[cfg(feature = "serde")]
    Serde {
        /// The table.
        table: String,
        /// What does not fit, with the name of the field.
        message: String,
    },
    /// The column has a number that the requested Rust type cannot hold.
    ReadOutOfRange {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The value that the column has.
        value: String,
        /// What the type takes.
        takes: String,
    },
    /// A string or byte string longer than the column allows.
    TooLong {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Most bytes allowed.
        max: u64,
        /// Bytes given.
        len: u64,
    },
    /// NULL for a column that does not take it.
    NotNull {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A row or key with the wrong number of values.
    WrongArity {
        /// The table.
        table: String,
        /// Values expected (for a key prefix: at most).
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// A row that is too large even with its long values stored out of line.
    RowTooLarge {
        /// The table.
        table: String,
        /// Bytes it would take in line.
        len: usize,
    },
    /// The value is stored out of line and cannot be borrowed. Read it as a `String`, a `Vec<u8>`,
    /// a `Cow` or an [`OwnedValue`](crate::OwnedValue).
    OutOfLine {
        /// The column.
        column: String,
    },
    /// An update would change the primary key. Delete the row and insert it again.
    PrimaryKeyChanged {
        /// The table.
        table: String,
    },
    /// An invalid table or index definition, with the reason.
    InvalidDefinition(String),
    /// An invalid option, with the reason.
    InvalidOption(String),
    /// A write in a read-only transaction, or in a database that is open for reading.
    ReadOnly,
    /// All transaction slots are in use, and none became free within
    /// [`Options::begin_wait`](crate::Options::begin_wait).
    TooManyTransactions {
        /// How many transactions can be open at once. The limit is lower for one that may write, so
        /// that writers never keep readers out.
        limit: usize,
        /// How long the call waited.
        waited: Duration,
    },
    /// More than 16,777,215 contents in one transaction.
    TransactionTooLarge,
    /// Another thread, or a limit of the options, has ended the transaction. Nothing
    /// of it is committed, and its calls fail until it is dropped.
    TransactionEnded {
        /// The transaction.
        id: TransactionId,
        /// What has ended it.
        by: EndedBy,
    },
    /// No statistics of a running database can be shown; see [`tools::watch`](crate::tools::watch).
    NoStatistics {
        /// The database's directory.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// No transaction with this number is open.
    UnknownTransaction(TransactionId),
    /// The transaction is prepared: only
    /// [`Database::take_prepared`](crate::Database::take_prepared) ends it.
    TransactionPrepared(TransactionId),
    /// A transaction is prepared under this name.
    AlreadyPrepared {
        /// The name, as text.
        name: String,
    },
    /// No prepared transaction of this name waits to be committed or rolled back.
    UnknownPrepared {
        /// The name, as text.
        name: String,
    },
    /// A prepared transaction has changed rows of a table, so its definition cannot
    /// change.
    PreparedChanges {
        /// The table.
        table: String,
        /// The name of the transaction, as text.
        name: String,
    },
    /// A savepoint of another transaction, or one that is no longer valid.
    UnknownSavepoint,
    /// The cursor is of another transaction, or of a statement of this one that has ended.
    UnknownCursor,
    /// The position belongs to another table or to an index with other columns, or the table or one
    /// of these columns has been renamed or widened since.
    UnknownPosition {
        /// The table of the range.
        table: String,
    },
    /// The medium has no room for the commit, or for a new database. Transactions that only delete
    /// rows find room longest, but not for any number of rows: delete in small steps.
    StorageFull {
        /// Which limit was met and where, and what to do.
        detail: String,
        /// The transaction that keeps most from being freed, if one keeps anything.
        holder: Option<Box<Holding>>,
    },
    /// The database takes as much DRAM as
    /// [`Options::memory_limit`](crate::Options::memory_limit) allows.
    MemoryFull(Box<MemoryUse>),
    /// The medium cannot be used at this path.
    UnfitMedium {
        /// What is missing, and what to do.
        detail: String,
    },
    /// A write or sync of the medium failed earlier.
    MediumFailed {
        /// The first failure.
        cause: String,
    },
    /// Another process, or this one, has the database open, or is checking it.
    AlreadyOpen {
        /// The database's directory.
        path: PathBuf,
        /// The process, if the system says which.
        process: Option<u32>,
    },
    /// The process that has the database open does not let others read it.
    ReadersRefused {
        /// The database's directory.
        path: PathBuf,
        /// The process, if the system says which.
        process: Option<u32>,
    },
    /// There is no database at this path, or nothing in its data file, and none is to be created.
    NoDatabase(PathBuf),
    /// Another call is making a backup in this directory, or restoring one into it.
    BeingFilled(PathBuf),
    /// A backup or a restore into this directory has begun and is not complete.
    IncompleteBackup(PathBuf),
    /// The directory holds an incremental backup, which is no database by itself.
    IncrementalBackup(PathBuf),
    /// The backup that an incremental one continues is not where it was.
    MissingBackup {
        /// The directory of the incremental one.
        path: PathBuf,
        /// Where the backup before it was.
        since: PathBuf,
    },
    /// The backup given to [`BackupOptions::since`](crate::BackupOptions::since) is not an earlier
    /// state of this database.
    NotABackupOfThis(PathBuf),
    /// The directory for a backup or a restore is not empty.
    NotEmpty(PathBuf),
    /// The caller has stopped the work.
    Cancelled,
    /// The files here are not a Pantile database.
    NotADatabase {
        /// Where.
        path: PathBuf,
        /// What does not fit.
        detail: String,
    },
    /// The database has a format version that this build cannot read.
    FormatVersion {
        /// The version found.
        found: u32,
        /// The version that this build reads and writes.
        supported: u32,
    },
    /// Committed data on the medium is damaged.
    Damaged {
        /// Where: byte offset on the medium, block, slot and table, as far as known.
        place: String,
        /// What is wrong there.
        detail: String,
    },
    /// An operating-system call failed. The database is as it was. What a backup has written stays,
    /// and the same call goes on with it.
    Io {
        /// What the engine tried to do.
        operation: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The database is closed, or is just being closed and takes no new
    /// transactions.
    Closed,
    /// Another transaction did not end within this time.
    /// [`Database::create_index`](crate::Database::create_index) waits for commits that are under
    /// way. The call has changed nothing. End the transaction and call again.
    Timeout(Duration),
    /// [`Database::close`](crate::Database::close) has waited for open transactions, and some have
    /// not ended. The database stays open, and new transactions can begin again. End the open ones
    /// and call again, with another handle: the failed call has consumed its own.
    StillOpen {
        /// How long the call waited.
        waited: Duration,
        /// What is open, the oldest first.
        open: Vec<OpenTransaction>,
    },
}

/// A transaction and what it keeps from being freed; see [`Error::StorageFull`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Holding {
    /// The transaction.
    pub transaction: OpenTransaction,
    /// Bytes on the medium that its end would free, at most.
    pub bytes: u64,
}

impl Holding {
    pub(crate) fn new(transaction: OpenTransaction, bytes: u64) -> Self {
        Self { transaction, bytes }
    }
}

/// Transactions that the message of [`Error::StillOpen`] lists.
const LISTED: usize = 5;

fn write_still_open(f: &mut fmt::Formatter<'_>, waited: Duration, open: &[OpenTransaction]) -> fmt::Result {
    let n = open.len();
    let plural = if n == 1 { "transaction is" } else { "transactions are" };
    write!(f, "{n} {plural} still open after {waited:?} (")?;
    for (n, transaction) in open.iter().take(LISTED).enumerate() {
        write!(f, "{}{transaction}", if n == 0 { "" } else { "; " })?;
    }
    if n > LISTED {
        write!(f, "; and {} more", n - LISTED)?;
    }
    f.write_str("); nothing was closed, and the database goes on as before; end them and close it again")
}

impl Error {
    /// Whether running the whole transaction again can succeed.
    ///
    /// ```
    /// use pantile::{Conflict, Error};
    /// let error = Error::Conflict { conflict: Conflict::Locked, table: "t".into() };
    /// assert!(error.is_retryable());
    /// assert!(!Error::ReadOnly.is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Conflict { conflict, .. } => *conflict != Conflict::Interrupted,
            Error::TooManyTransactions { .. } => true,
            _ => false,
        }
    }

    /// Whether others came first, most of which a transaction with the database to
    /// itself would not have met.
    pub(crate) fn came_too_late(&self) -> bool {
        use Conflict::{ChangedSinceSnapshot, Deadlock, Locked, ReadByLater, ReadChanged, WrittenByLater};
        let late = |conflict| {
            matches!(
                conflict,
                WrittenByLater | ReadByLater | ReadChanged | ChangedSinceSnapshot | Locked | Deadlock
            )
        };
        matches!(self, Error::Conflict { conflict, .. } if late(*conflict))
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Conflict::WrittenByLater => "a transaction with a later timestamp has already written the tuple",
            Conflict::ReadByLater => {
                "a transaction with a later timestamp has already read the tuple or the key range"
            }
            Conflict::ReadChanged => {
                "another transaction has changed what this one has read, and it cannot commit before that"
            }
            Conflict::Locked => "another running transaction has locked the tuple",
            Conflict::TimedOut => {
                "another running transaction has locked the tuple and did not end while this one waited"
            }
            Conflict::Interrupted => {
                "another running transaction has locked the tuple, and the wait was interrupted"
            }
            Conflict::Deadlock => {
                "waiting would have closed a cycle of transactions that wait for each other"
            }
            Conflict::ChangedSinceSnapshot => {
                "another transaction has committed the tuple since this one took its snapshot"
            }
            Conflict::TableIsNewer => {
                "the table was created, or its columns were changed, after this transaction began"
            }
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Conflict { conflict, table } => {
                let again = if self.is_retryable() { " and run it again" } else { "" };
                write!(
                    f,
                    "conflict in table {table:?}: {conflict}; this call changed nothing; roll the transaction back{again}"
                )
            }
            Error::DuplicateKey { table, index } => {
                write!(
                    f,
                    "table {table:?} already has a row with this key of index {index:?}; nothing was changed"
                )
            }
            Error::UnknownTable(name) => write!(f, "there is no table {name:?}; nothing was changed"),
            Error::ForeignTable(name) => write!(
                f,
                "the handle of table {name:?} is of another database; nothing was done, get one from this database"
            ),
            Error::TableExists(name) => write!(f, "there is already a table {name:?}; nothing was changed"),
            Error::TableDropped(name) => {
                write!(f, "table {name:?} has been dropped; a transaction that has used it can only be rolled back")
            }
            Error::UnknownIndex { table, index } => {
                write!(f, "table {table:?} has no index {index:?}; nothing was changed")
            }
            Error::IndexExists { table, index } => {
                write!(f, "table {table:?} already has an index {index:?}; nothing was changed")
            }
            Error::UnknownColumn { table, column } => {
                write!(f, "table {table:?} has no column {column}; nothing was changed")
            }
            Error::ColumnDropped { table, column } => {
                write!(f, "column {column:?} of table {table:?} has been dropped; nothing was changed")
            }
            Error::DefinitionDiffers { table, differences } => {
                write!(f, "table {table:?} is there and differs: {differences}; nothing was changed")
            }
            Error::InvalidMigrations(why) => {
                write!(f, "the migrations do not fit the database: {why}; nothing was changed")
            }
            Error::MigrationFailed { number, name, step, error } => write!(
                f,
                "step {step} of migration {number}, {name:?}, has failed: {error}; the steps before it are made, and it will be tried again"
            ),
            Error::WrongType { table, column, expected, got } => {
                write!(
                    f,
                    "column {column:?} of table {table:?} holds {expected}, not {got}; nothing was changed"
                )
            }
            Error::OutOfRange { table, column, value, takes } => write!(
                f,
                "{value} does not fit column {column:?} of table {table:?}, which takes {takes}; nothing was changed"
            ),
            #[cfg(feature = "serde")]
            Error::Serde { table, message } => {
                write!(f, "{message}, in a row of table {table:?}; nothing was changed")
            }
            Error::ReadOutOfRange { table, column, value, takes } => {
                write!(f, "column {column:?} of table {table:?} has the value {value}, and {takes}")
            }
            Error::TooLong { table, column, max, len } => write!(
                f,
                "a value of {len} bytes is too long for column {column:?} of table {table:?}, which takes at most {max}; nothing was changed"
            ),
            Error::NotNull { table, column } => {
                write!(f, "column {column:?} of table {table:?} does not take NULL; nothing was changed")
            }
            Error::WrongArity { table, expected, got } => {
                write!(f, "{got} values given where table {table:?} takes {expected}; nothing was changed")
            }
            Error::RowTooLarge { table, len } => write!(
                f,
                "a row of {len} bytes is too large for table {table:?}: at most 65535 remain in line after long values have moved out; nothing was changed"
            ),
            Error::OutOfLine { column } => {
                write!(f, "the value of column {column:?} is stored out of line and cannot be borrowed; read it as a String, a Vec<u8>, a Cow or an OwnedValue")
            }
            Error::PrimaryKeyChanged { table } => write!(
                f,
                "an update of table {table:?} may not change the primary key; delete the row and insert it again; nothing was changed"
            ),
            Error::InvalidDefinition(reason) => {
                write!(f, "invalid definition: {reason}; nothing was changed")
            }
            Error::InvalidOption(reason) => write!(f, "invalid option: {reason}"),
            Error::ReadOnly => f.write_str("nothing is changed: the transaction, or the whole database, is read-only; write in one that is not"),
            Error::TooManyTransactions { limit, waited } => write!(
                f,
                "all {limit} slots that this transaction could have are taken, and none came free within {waited:?}; it did not begin; end others sooner, or give Options::begin_wait more time"
            ),
            Error::TransactionTooLarge => {
                f.write_str("more than 16777215 rows written in one transaction; it has left no trace; commit in smaller steps")
            }
            Error::UnknownCursor => {
                f.write_str("the cursor is of another transaction, or of a statement that has ended; nothing was done; make a new one")
            }
            Error::UnknownPosition { table } => write!(
                f,
                "the position is not of table {table:?} and this index; nothing was read, begin at the start of the range"
            ),
            Error::UnknownSavepoint => f.write_str(
                "the savepoint is not of this transaction, was released or has been rolled back; nothing was changed",
            ),
            Error::StorageFull { detail, holder } => {
                write!(f, "no room ({detail}")?;
                if let Some(held) = holder {
                    write!(f, ", or end what keeps {} bytes: {}", held.bytes, held.transaction)?;
                }
                f.write_str("); what was to be written has left no trace, and what was there can be read")
            }
            Error::TransactionEnded { id, by } => write!(
                f,
                "transaction {id} was ended by {by}; nothing of it is committed; drop it, and begin another one"
            ),
            Error::NoStatistics { path, detail } => {
                write!(f, "no statistics of a running database in {}: {detail}", path.display())
            }
            Error::UnknownTransaction(id) => write!(
                f,
                "no transaction {id} is open: it has ended, or is just committing; nothing was done"
            ),
            Error::TransactionPrepared(id) => write!(
                f,
                "transaction {id} is prepared and goes on as it is; commit it or roll it back by its name (Database::take_prepared)"
            ),
            Error::AlreadyPrepared { name } => write!(
                f,
                "a transaction is prepared under the name \"{name}\"; this one has been rolled back; commit that one or roll it back, or take another name"
            ),
            Error::UnknownPrepared { name } => write!(
                f,
                "no prepared transaction \"{name}\" waits: it has been committed or rolled back, or somebody has it in hand; nothing was done"
            ),
            Error::PreparedChanges { table, name } => write!(
                f,
                "the prepared transaction \"{name}\" has changed rows of table {table:?}; nothing was changed; commit it or roll it back first"
            ),
            Error::MemoryFull(taken) => write!(
                f,
                "no memory for the statement ({taken}); it has changed nothing, and reads, deletes and commits go on, but for reads of which a writer would have to take note; delete rows in small steps, drop an index, commit in smaller steps, read in read-only transactions, or open the database with a larger memory_limit"
            ),
            Error::UnfitMedium { detail } => f.write_str(detail),
            Error::MediumFailed { cause } => write!(
                f,
                "the medium failed ({cause}); what was acknowledged as durable before is kept in the data file, what was being committed may be there or not, no further commit is accepted, and reads go on; see to the cause, copying the rows first if the file itself is gone, then close the database and open it again"
            ),
            Error::AlreadyOpen { path, process } => {
                let user = User(*process);
                let handles = match *process == Some(std::process::id()) {
                    true => ", and drop every handle of it",
                    false => "",
                };
                write!(
                    f,
                    "the database in {} is open already {user}; close it there first{handles}",
                    path.display()
                )
            }
            Error::ReadersRefused { path, process } => {
                let user = User(*process);
                write!(
                    f,
                    "the database in {} is open {user}, which does not answer those who would read it; try again if it is still being opened; if its medium has failed, read the rows in that process; otherwise it must run on this machine and in this network namespace, with a worker, and with a collector that frees whole blocks",
                    path.display()
                )
            }
            Error::NoDatabase(path) => write!(f, "there is no database in {}", path.display()),
            Error::BeingFilled(path) => write!(
                f,
                "a backup is being made in {}, or restored into it, here or in another process; nothing was changed; wait until that has ended, or take another directory",
                path.display()
            ),
            Error::IncompleteBackup(path) => write!(
                f,
                "{} holds a part of a backup, or of what was restored, that was not completed; it was left as it is; do again what was begun, or remove it",
                path.display()
            ),
            Error::IncrementalBackup(path) => write!(
                f,
                "{} holds an incremental backup, which is no database by itself; restore it, and open what was restored (`pantile restore BACKUP --to DIR`, or pantile::restore)",
                path.display()
            ),
            Error::MissingBackup { path, since } => write!(
                f,
                "the backup in {} continues the one in {}, which is not there; bring that one back, or name its place in the second line of pantile.increment/since",
                path.display(),
                since.display()
            ),
            Error::NotABackupOfThis(path) => write!(
                f,
                "the backup in {} is not an earlier state of this database: it is of another one, is no backup, was written to, or is later than the database; make a backup of all of it",
                path.display()
            ),
            Error::NotEmpty(path) => write!(
                f,
                "{} is not empty; it was left as it is; name a directory that is empty or does not exist",
                path.display()
            ),
            Error::Cancelled => f.write_str(
                "the work was cancelled; rows and definitions are as they were; the same call begins anew, or goes on with a backup",
            ),
            Error::NotADatabase { path, detail } => {
                write!(f, "{} is not a Pantile database ({detail}); it was left as it is", path.display())
            }
            Error::FormatVersion { found, supported } => write!(
                f,
                "the database has format version {found}, and this build reads version {supported}; it was left as it is"
            ),
            Error::Damaged { place, detail } => {
                write!(
                    f,
                    "damaged data at {place}: {detail}; nothing was changed; restore a copy, or copy what is whole into a new database (`pantile salvage DIR --into DIR2`, or pantile::salvage)"
                )
            }
            Error::Io { operation, source } => {
                write!(f, "cannot {operation}: {}; no data was changed", Explained(source))
            }
            Error::Closed => f.write_str("the database is closed, or is just being closed; open it again"),
            Error::Timeout(limit) => write!(
                f,
                "another transaction did not end within {limit:?}; nothing was changed; end the transaction and call again"
            ),
            Error::StillOpen { waited, open } => write_still_open(f, *waited, open),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::MigrationFailed { error, .. } => Some(error.as_ref()),
            _ => None,
        }
    }
}
