//! Backups of an open database, and looking whether its rows are whole.

use std::ffi::{c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use pantile::BackupOptions;

use crate::c_text::as_c;
use crate::database::{pantile_db, pantile_table};
use crate::error::{Failure, PANTILE_OK, call};
use crate::pointer::{lent, tell, text};
use crate::stop::{Context, go_on, pantile_stop};

/// Is told that the moment of a backup is fixed, and whether all that was acknowledged before the call is in it. The
/// backup ends with `PANTILE_CANCELLED` if it returns false.
pub type pantile_at_moment = Option<unsafe extern "C" fn(context: *mut c_void, is_current: bool) -> bool>;

/// Is told of a row that is damaged: its number in the table, and what is wrong. Valid during the call.
pub type pantile_damaged =
    Option<unsafe extern "C" fn(context: *mut c_void, tuple: u64, what: *const c_char)>;

/// How to back up. Zeros are the defaults.
#[repr(C)]
pub struct pantile_backup_options {
    /// Copies at most this many bytes a second; 0 for as fast as it goes.
    pub bytes_per_second: u64,
    /// Whether `wait` counts. Otherwise it is ten seconds.
    pub has_wait: bool,
    /// For how many milliseconds the backup waits at its beginning for running serializable writers to end.
    pub wait: u64,
    /// Called once the moment of the backup is fixed, in the thread of the call; may be NULL.
    pub at_moment: pantile_at_moment,
    /// Asked about once for each megabyte, in a thread of the backup; the backup ends with `PANTILE_CANCELLED` when it
    /// returns true. May be NULL.
    pub stop: pantile_stop,
    /// What these take. Valid until the call returns.
    pub context: *mut c_void,
}

/// What was backed up.
#[repr(C)]
pub struct pantile_backup_report {
    /// Whether every commit that was acknowledged before the call is in it. If a serializable writer ran for longer than
    /// the wait, those beside it may not be.
    pub is_current: bool,
    /// Tables.
    pub tables: u64,
    /// Rows.
    pub rows: u64,
    /// Bytes of the backup's file.
    pub file_bytes: u64,
}

impl pantile_backup_options {
    fn rust(&self) -> BackupOptions {
        let mut options = BackupOptions::new();
        if self.bytes_per_second > 0 {
            options = options.rate(self.bytes_per_second);
        }
        if self.has_wait {
            options = options.wait(Duration::from_millis(self.wait));
        }
        let goes_on = |it| if it { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        if let Some(at_moment) = self.at_moment {
            let context = Context(self.context);
            options = options.at_moment(move |is_current| {
                let Context(context) = &context;
                // SAFETY: the caller has handed over a function and what it takes.
                goes_on(unsafe { at_moment(*context, is_current) })
            });
        }
        if let Some(stop) = self.stop {
            let context = Context(self.context);
            options = options.progress(move |_| {
                let Context(context) = &context;
                // SAFETY: as above.
                goes_on(!unsafe { stop(*context) })
            });
        }
        options
    }
}

/// Copies the database, beside transactions that go on, into the directory `path`, which is created if need be. The copy
/// is a database of one moment at the beginning of the call: it has what was committed up to then, and nothing else. It
/// is durable when the call returns `PANTILE_OK`, and no database before. `options` and `report` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_backup(
    db: *mut pantile_db,
    path: *const c_char,
    options: *const pantile_backup_options,
    report: *mut pantile_backup_report,
) -> c_int {
    call(|| {
        let db = &lent(db, "the database")?.db;
        let path = Path::new(text(path, "the path")?);
        let options = match options.is_null() {
            true => BackupOptions::new(),
            false => lent(options, "options")?.rust(),
        };
        let done = db.backup_to(path, &options)?;
        tell(
            report,
            pantile_backup_report {
                is_current: done.is_current,
                tables: done.tables,
                rows: done.rows,
                file_bytes: done.file_bytes,
            },
        );
        Ok(PANTILE_OK)
    })
}

/// Looks whether the newest version of every row of a table can be read and its checksum fits, beside transactions that
/// go on. `damaged` is told of each that is not so; `rows`, which may be NULL, gets how many are whole. Damage is no
/// error of the call. `stop` is asked now and then, and the call fails with `PANTILE_CANCELLED` when it returns true;
/// it may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_verify_table(
    db: *mut pantile_db,
    table: *const pantile_table,
    damaged: pantile_damaged,
    stop: pantile_stop,
    context: *mut c_void,
    rows: *mut u64,
) -> c_int {
    call(|| {
        let damaged = damaged.ok_or_else(|| Failure::null("the function"))?;
        let table = &lent(table, "the table")?.table;
        // SAFETY: the caller has handed over functions and what they take.
        let go_on = || unsafe { go_on(stop, context) };
        let found = lent(db, "the database")?.db.verify_table(table, go_on)?;
        for row in &found.damaged {
            let what = as_c(&row.what);
            // SAFETY: as above.
            unsafe { damaged(context, row.tuple, what.as_ptr()) };
        }
        tell(rows, found.rows);
        Ok(PANTILE_OK)
    })
}
