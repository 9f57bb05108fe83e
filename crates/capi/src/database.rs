//! Databases, tables and indexes.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use pantile::{Database, Error, Index, Options, Table, Type};

use crate::c_text::as_c;
use crate::definition::{index_def, pantile_table_def, pantile_type};
use crate::error::{Failure, PANTILE_OK, call};
use crate::options::pantile_options;
use crate::pointer::{Out, free, lent, taken, tell, text};
use crate::stop::{go_on, pantile_stop};

/// An open database.
pub struct pantile_db {
    pub(crate) db: Database,
}

/// A table of an open database.
pub struct pantile_table {
    pub(crate) table: Table,
    name: CString,
    pub(crate) columns: Arc<[ColumnFacts]>,
}

/// An index of a table.
pub struct pantile_index {
    pub(crate) index: Index,
    pub(crate) columns: Arc<[ColumnFacts]>,
}

/// What C may want to know of a column.
pub(crate) struct ColumnFacts {
    name: CString,
    ty: Type,
    nullable: bool,
}

impl ColumnFacts {
    pub fn is_text(&self) -> bool {
        matches!(self.ty, Type::String(_) | Type::FixedString(_))
    }
}

impl pantile_table {
    pub(crate) fn new(table: Table) -> Self {
        let columns = table.columns();
        let facts =
            columns.iter().map(|c| ColumnFacts { name: as_c(&c.name), ty: c.ty, nullable: c.nullable });
        Self { name: as_c(table.name()), columns: facts.collect(), table }
    }
}

/// Names, one after the other.
pub struct pantile_names {
    names: Vec<CString>,
}

/// What a database has done and takes.
#[repr(C)]
pub struct pantile_stats {
    /// Transactions that have committed since the database was opened.
    pub commits: u64,
    /// Transactions that have not.
    pub aborts: u64,
    /// Transactions that are open now.
    pub running: u64,
    /// Rows, as the newest transaction sees them, and one for each table in the catalog.
    pub rows: u64,
    /// Their bytes, with a header of 24 bytes each.
    pub live_bytes: u64,
    /// Bytes of the medium.
    pub medium_bytes: u64,
    /// Bytes of versions that are not the newest and wait to be reclaimed.
    pub obsolete_bytes: u64,
    /// Bytes of the medium that are free.
    pub free_bytes: u64,
    /// Bytes of memory that the database takes.
    pub memory_bytes: u64,
    /// Rows that were found to be damaged.
    pub damaged_rows: u64,
    /// Bytes written to the medium since the database was opened, for whatever purpose.
    pub written_bytes: u64,
    /// Syncs that reached the device since then.
    pub syncs: u64,
}

/// Opens the database in the directory `path`, or makes it. `options` may be NULL. The database is closed by
/// `pantile_close`, or let go by `pantile_release`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_open(
    path: *const c_char,
    options: *const pantile_options,
    out: *mut *mut pantile_db,
) -> c_int {
    call(|| open(path, options, out, |options, path| options.open(path)))
}

/// Opens the database in the directory `path` to read it, also while another process has it open and writes. Its state
/// is that of now, and stays that; open it again to see what was committed since. `options` may be NULL. Writing fails
/// with `PANTILE_READ_ONLY`. If the process that has it open does not answer within ten seconds, the call fails with
/// `PANTILE_ALREADY_OPEN`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_open_read_only(
    path: *const c_char,
    options: *const pantile_options,
    out: *mut *mut pantile_db,
) -> c_int {
    call(|| open(path, options, out, |options, path| options.open_read_only(path)))
}

fn open(
    path: *const c_char,
    options: *const pantile_options,
    out: *mut *mut pantile_db,
    open: impl FnOnce(Options, &str) -> pantile::Result<Database>,
) -> Result<c_int, Failure> {
    let out = Out::new(out)?;
    let path = text(path, "the path")?;
    let options = match options.is_null() {
        true => Options::new(),
        false => lent(options, "options")?.for_opening(),
    };
    out.give(pantile_db { db: open(options, path)? });
    Ok(PANTILE_OK)
}

/// Closes a database: waits for transactions that are open, makes everything durable, and lets other processes open it.
/// Handles of tables and indexes are still to be freed, and of no other use.
///
/// If it fails with `PANTILE_BUSY`, because a transaction did not end, the database is as open as before. After any other
/// error of the database it is closed, but its last state could not be recorded: nothing that was acknowledged as durable
/// is lost, and the next opening takes longer. `db` is then still to be given to `pantile_release`, which lets the
/// directory be opened again.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_close(db: *mut pantile_db) -> c_int {
    call(|| {
        lent(db, "the database")?.db.clone().close()?;
        drop(taken(db));
        Ok(PANTILE_OK)
    })
}

/// Lets go of a database without waiting for transactions. It stays open as long as transactions of it are not freed, or
/// commits are in flight; tables and indexes do not keep it open. If there are none it is closed by this call, which may
/// take a second. What has been acknowledged is as safe as after closing.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_release(db: *mut pantile_db) {
    free(db);
}

/// Creates a table. It is durable when the call returns. `out` may be NULL; the handle is freed by `pantile_table_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_create_table(
    db: *mut pantile_db,
    def: *const pantile_table_def,
    out: *mut *mut pantile_table,
) -> c_int {
    call(|| {
        let table = lent(db, "the database")?.db.create_table(lent(def, "the definition")?.def.clone())?;
        if !out.is_null() {
            Out::new(out)?.give(pantile_table::new(table));
        }
        Ok(PANTILE_OK)
    })
}

/// Finds a table by its name. Freed by `pantile_table_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_open(
    db: *mut pantile_db,
    name: *const c_char,
    out: *mut *mut pantile_table,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let table = lent(db, "the database")?.db.table(text(name, "the table's name")?)?;
        out.give(pantile_table::new(table));
        Ok(PANTILE_OK)
    })
}

/// Frees the handle of a table. The table stays.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_free(table: *mut pantile_table) {
    free(table);
}

/// Drops a table with its rows and indexes.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_drop_table(db: *mut pantile_db, name: *const c_char) -> c_int {
    call(|| {
        lent(db, "the database")?.db.drop_table(text(name, "the table's name")?)?;
        Ok(PANTILE_OK)
    })
}

/// Waits until all that others can see by now is durable: what was published, too, and all commits with
/// `PANTILE_DURABILITY_NONE`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_sync(db: *mut pantile_db) -> c_int {
    call(|| {
        lent(db, "the database")?.db.sync()?;
        Ok(PANTILE_OK)
    })
}

/// Whether the database shows every commit that was acknowledged when it was opened. That is false only after
/// `pantile_open_read_only` beside another process, if commits were made there while another transaction went on writing.
/// To see them, open the database again when that transaction has ended.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_is_current(db: *mut pantile_db, out: *mut bool) -> c_int {
    call(|| {
        Out::new(out)?.set(lent(db, "the database")?.db.is_current());
        Ok(PANTILE_OK)
    })
}

/// The names of all tables, in order. Freed by `pantile_names_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_names(db: *mut pantile_db, out: *mut *mut pantile_names) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let names = lent(db, "the database")?.db.tables();
        out.give(pantile_names { names: names.iter().map(|name| as_c(name)).collect() });
        Ok(PANTILE_OK)
    })
}

/// The names of a table's indexes, without the primary one. Freed by `pantile_names_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_index_names(table: *const pantile_table, out: *mut *mut pantile_names) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let definition = lent(table, "the table")?.table.definition();
        out.give(pantile_names { names: definition.indexes.iter().map(|index| as_c(&index.name)).collect() });
        Ok(PANTILE_OK)
    })
}

/// How many names there are; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_names_len(names: *const pantile_names) -> usize {
    lent(names, "the names").map_or(0, |names| names.names.len())
}

/// One of the names, or NULL. It is valid until the names are freed.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_names_get(names: *const pantile_names, n: usize) -> *const c_char {
    let found = lent(names, "the names").ok().and_then(|names| names.names.get(n));
    found.map_or(ptr::null(), |name| name.as_ptr())
}

/// Frees names.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_names_free(names: *mut pantile_names) {
    free(names);
}

/// The name of a table, or NULL for NULL. It is valid until the handle is freed.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_name(table: *const pantile_table) -> *const c_char {
    lent(table, "the table").map_or(ptr::null(), |table| table.name.as_ptr())
}

/// How many columns a table has; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_columns(table: *const pantile_table) -> usize {
    lent(table, "the table").map_or(0, |table| table.columns.len())
}

/// What is known of a column. `name`, `type` and `nullable` may be NULL. The name is valid until the handle is freed.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_column(
    table: *const pantile_table,
    n: usize,
    name: *mut *const c_char,
    r#type: *mut pantile_type,
    nullable: *mut bool,
) -> c_int {
    call(|| {
        let columns = &lent(table, "the table")?.columns;
        let column = columns.get(n).ok_or_else(|| Failure::misuse(format!("there is no column {n}")))?;
        tell(name, column.name.as_ptr());
        tell(r#type, pantile_type::of(column.ty));
        tell(nullable, column.nullable);
        Ok(PANTILE_OK)
    })
}

/// The number of a column by its name.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_column_number(
    table: *const pantile_table,
    name: *const c_char,
    out: *mut usize,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        out.set(lent(table, "the table")?.table.column(text(name, "the column's name")?)?);
        Ok(PANTILE_OK)
    })
}

/// Creates an index of `len` columns, beside transactions that go on. `stop`, which may be NULL, is asked now and then;
/// when it returns true the call fails with `PANTILE_CANCELLED`, and there is no index. It must not change the table,
/// which waits for it. `out` may be NULL; the handle is freed by `pantile_index_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_create_index(
    db: *mut pantile_db,
    table: *const pantile_table,
    name: *const c_char,
    columns: *const *const c_char,
    len: usize,
    unique: bool,
    stop: pantile_stop,
    context: *mut c_void,
    out: *mut *mut pantile_index,
) -> c_int {
    call(|| {
        let table = lent(table, "the table")?;
        let def = index_def(name, columns, len, unique)?;
        // SAFETY: the caller has handed over a function and what it takes.
        let go_on = |_| unsafe { go_on(stop, context) };
        let index = lent(db, "the database")?.db.create_index_with(&table.table, def, go_on)?;
        if !out.is_null() {
            Out::new(out)?.give(pantile_index { index, columns: Arc::clone(&table.columns) });
        }
        Ok(PANTILE_OK)
    })
}

/// Finds an index of a table by its name. Freed by `pantile_index_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_index_open(
    table: *const pantile_table,
    name: *const c_char,
    out: *mut *mut pantile_index,
) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let table = lent(table, "the table")?;
        let index = table.table.index(text(name, "the index's name")?)?;
        out.give(pantile_index { index, columns: Arc::clone(&table.columns) });
        Ok(PANTILE_OK)
    })
}

/// How many columns an index of a table has.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_index_columns(
    table: *const pantile_table,
    name: *const c_char,
    out: *mut usize,
) -> c_int {
    call(|| {
        let (table, name) = (&lent(table, "the table")?.table, text(name, "the index's name")?);
        let found = table.definition().indexes.into_iter().find(|index| index.name == name);
        let unknown = || Error::UnknownIndex { table: table.name().into(), index: name.into() };
        Out::new(out)?.set(found.ok_or_else(unknown)?.columns.len());
        Ok(PANTILE_OK)
    })
}

/// Frees the handle of an index. The index stays.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_index_free(index: *mut pantile_index) {
    free(index);
}

/// Drops an index.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_drop_index(
    db: *mut pantile_db,
    table: *const pantile_table,
    name: *const c_char,
) -> c_int {
    call(|| {
        let table = &lent(table, "the table")?.table;
        lent(db, "the database")?.db.drop_index(table, text(name, "the index's name")?)?;
        Ok(PANTILE_OK)
    })
}

/// Gives all space back that can be given back, beside transactions that go on. Takes as long as copying the data. `stop`
/// is asked now and then, and the call fails with `PANTILE_CANCELLED` when it returns true; it may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_compact(db: *mut pantile_db, stop: pantile_stop, context: *mut c_void) -> c_int {
    call(|| {
        // SAFETY: the caller has handed over a function and what it takes.
        let go_on = || unsafe { go_on(stop, context) };
        // Where there is little to do, it may not be asked on the way.
        let mut flow = go_on();
        if flow.is_continue() {
            lent(db, "the database")?.db.compact_with(|_| {
                flow = go_on();
                flow
            })?;
        }
        if flow.is_break() { Err(Error::Cancelled.into()) } else { Ok(PANTILE_OK) }
    })
}

/// What a database has done and takes.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_statistics(db: *mut pantile_db, out: *mut pantile_stats) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let stats = lent(db, "the database")?.db.stats();
        out.set(pantile_stats {
            commits: stats.commits,
            aborts: stats.aborts,
            running: stats.running,
            rows: stats.tuples,
            live_bytes: stats.live_bytes,
            medium_bytes: stats.medium_bytes,
            obsolete_bytes: stats.obsolete_bytes,
            free_bytes: stats.free_bytes,
            memory_bytes: stats.dram_bytes,
            damaged_rows: stats.damaged_contents,
            written_bytes: stats.medium.bytes_written,
            syncs: stats.medium.syncs,
        });
        Ok(PANTILE_OK)
    })
}
