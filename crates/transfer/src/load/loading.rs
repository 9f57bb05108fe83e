//! A load, from its settings to what is left of it.

use std::io::Read;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use pantile::Database;

use crate::error::{Error, LoadError};
use crate::format::Format;
use crate::load::input::Input;
use crate::load::session::Session;
use crate::load::settings::{Loaded, Settings};
use crate::load::work::Work;
use crate::load::{files, rows, stream};
use crate::progress::Progress;

/// Loads rows, or the tables of a dump, into a database.
///
/// A table that does not exist is created, and several threads fill it in many transactions. If the load fails, the
/// table is dropped. Rows of existing tables go into one transaction, or into several with [`Load::batch`].
///
/// ```
/// # use pantile::{Database, MediumKind, Options, Range, TableDef, Type};
/// use pantile_transfer::{Dump, Format, Load};
/// # let new = |name| Options::new().medium(MediumKind::Dram).open(name);
/// # let (db, other) = (new("unused")?, new("unused")?);
/// let pets = db.create_table(
///     TableDef::new("pets").column("id", Type::U32).nullable("name", Type::String(40)).primary_key(["id"]),
/// )?;
/// let csv = "name,id\nRex,1\n\\N,2\n";
/// let loaded = Load::new(&db).rows("pets", Format::Csv, csv.as_bytes())?;
/// assert_eq!((loaded.rows, loaded.tables_created), (2, 0));
///
/// let mut copy = Vec::new();
/// Dump::new(&db)?.write(&mut copy)?;
/// let loaded = Load::new(&other).dump(&copy[..])?;
/// assert_eq!((loaded.rows, loaded.tables_created), (2, 1));
/// assert_eq!(other.table("pets")?.definition(), pets.definition());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Load<'l> {
    settings: Settings<'l>,
}

impl std::fmt::Debug for Load<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Settings { batch, is_alone, null, tables, threads, .. } = &self.settings;
        f.debug_struct("Load")
            .field("batch", batch)
            .field("is_alone", is_alone)
            .field("null", null)
            .field("tables", tables)
            .field("threads", threads)
            .finish_non_exhaustive()
    }
}

impl<'l> Load<'l> {
    /// A load into this database.
    pub fn new(db: &'l Database) -> Self {
        let settings = Settings {
            db,
            batch: None,
            is_alone: false,
            null: None,
            tables: Vec::new(),
            threads: thread::available_parallelism().map_or(1, usize::from),
            progress: &|_| ControlFlow::Continue(()),
        };
        Self { settings }
    }

    /// Commits rows of existing tables in batches of `rows`, in the order of the input.
    ///
    /// If the load fails, the rows that are committed stay, and [`LoadError::committed`] says which they are.
    ///
    /// ```
    /// # use pantile::{MediumKind, Options, TableDef, Type};
    /// use pantile_transfer::{Committed, Format, Load, Place};
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
    /// let text = "id\n1\n2\n3\n3\n";
    /// let failed = Load::new(&db).batch(2).rows("pets", Format::Csv, text.as_bytes()).unwrap_err();
    /// let last = Place { file: None, line: 3 };
    /// assert_eq!(failed.committed, [Committed { table: "pets".into(), rows: 2, last }]);
    /// # Ok::<(), pantile::Error>(())
    /// ```
    #[must_use]
    pub fn batch(mut self, rows: u64) -> Self {
        self.settings.batch = Some(rows.max(1));
        self
    }

    /// Promises that nobody else uses the database during the load.
    ///
    /// Tables that exist and are empty are then filled like new ones, which is faster. If the load fails they are
    /// truncated, so handles of them become invalid.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.settings.is_alone = true;
        self
    }

    /// Sets the text that stands for NULL in CSV, instead of `\N`.
    ///
    /// ```
    /// # use pantile::{MediumKind, Options, TableDef, Type};
    /// # use pantile_transfer::{Format, Load};
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let pets = TableDef::new("pets").column("id", Type::U32).nullable("name", Type::String(40));
    /// let pets = db.create_table(pets.primary_key(["id"]))?;
    /// Load::new(&db).null("").rows("pets", Format::Csv, &b"id,name\n1,\n"[..])?;
    /// let name = db.run(|txn| txn.get(&pets, &[1u32.into()])?.expect("a row").get::<Option<&str>>(1).map(|name| name.is_some()))?;
    /// assert!(!name);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn null(mut self, text: impl Into<String>) -> Self {
        self.settings.null = Some(text.into());
        self
    }

    /// Loads only these tables of a dump.
    #[must_use]
    pub fn tables<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.settings.tables = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how many threads read and insert rows, by default one per core.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = threads.max(1);
        self
    }

    /// Sets a function that reports progress. If it returns `Break`, the load stops and fails with
    /// [`Error::Interrupted`].
    #[must_use]
    pub fn progress(mut self, call: &'l dyn Fn(&Progress<'_>) -> ControlFlow<()>) -> Self {
        self.settings.progress = call;
        self
    }

    /// Loads a dump that [`Dump::write`](crate::Dump::write) or
    /// [`Dump::write_schema`](crate::Dump::write_schema) has written. A table that
    /// exists must have the dump's columns and primary key, and keeps its indexes.
    ///
    /// # Errors
    /// [`Error::NotADump`], [`Error::Version`]; [`Error::Damaged`] if the dump is truncated or is not what was
    /// written; [`Error::TableDiffers`], [`Error::NoSuchTable`], [`Error::WrongValue`]; [`Error::Row`] if a key
    /// occurs twice; [`Error::Read`], [`Error::Database`], [`Error::Interrupted`]. [`LoadError`] says what is left:
    /// nothing, unless the load is in batches or something could not be removed.
    pub fn dump(&self, input: impl Read) -> Result<Loaded, LoadError> {
        self.run(|session| stream::read(session, &mut Input::new(input, None)))
    }

    /// Loads rows into an existing table, with columns by their names. A column that is not in the input gets its
    /// default, or NULL.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`] and [`Error::MissingColumn`], before anything is
    /// written if the format is CSV; otherwise as [`Load::dump`].
    pub fn rows(&self, table: &str, format: Format, input: impl Read) -> Result<Loaded, LoadError> {
        self.run(|session| {
            let target = session.existing(table)?;
            rows::read(session, &target, format, &mut Input::new(input, None)).map(drop)
        })
    }

    /// Loads the directory that [`Dump::write_files`](crate::Dump::write_files)
    /// has written.
    ///
    /// # Errors
    /// As [`Load::dump`].
    pub fn files(&self, dir: impl AsRef<Path>) -> Result<Loaded, LoadError> {
        self.run(|session| files::read(session, dir.as_ref()))
    }

    /// Runs `read` beside the threads that insert what it hands to them.
    fn run(&self, read: impl FnOnce(&mut Session<'_>) -> Result<(), Error>) -> Result<Loaded, LoadError> {
        let Settings { db, batch, threads, .. } = self.settings;
        let work = Work::new(db, batch);
        // Enough to keep the threads busy; each block may be as long as a long value.
        let (sender, receiver) = mpsc::sync_channel(threads + 1);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut session = Session::new(&self.settings, &work);
        let read = thread::scope(|scope| {
            for _ in 0..threads {
                let (work, receiver) = (&work, Arc::clone(&receiver));
                scope.spawn(move || work.run(&receiver));
            }
            drop(receiver);
            session.sender = Some(sender);
            let read =
                catch_unwind(AssertUnwindSafe(|| read(&mut session).and_then(|()| session.check_names())));
            // Otherwise the threads wait for more, also after a panic.
            session.sender = None;
            read
        });
        let (read, panic) = match read {
            Ok(outcome) => (outcome, None),
            Err(panic) => (Err(Error::Interrupted), Some(panic)),
        };
        let (loaded, made) = session.end();
        let (outcome, committed) = work.end(read);
        let outcome = outcome.map(|()| loaded).map_err(|cause| {
            let left = made.into_iter().filter_map(|table| table.take_back(db)).collect();
            LoadError { cause: cause.into(), committed, left }
        });
        panic.map_or(outcome, |panic| resume_unwind(panic))
    }
}
