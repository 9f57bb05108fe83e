//! A dump, from the snapshot to what is written of it.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use pantile::{Database, Table, TableDef, Transaction};

use crate::dump::files::{self, Files};
use crate::dump::left_out::{Call, LeftOut};
use crate::dump::out::{Dumped, Out};
use crate::dump::rows::Rows;
use crate::error::Error;
use crate::format::Format;
use crate::progress::Progress;
use crate::schema::{DumpEnd, Header, TableEnd, TableLine, VERSION};

/// Writes the contents of a database at one moment: when the dump was begun.
///
/// As long as the dump exists, everything that it may read is kept, as for every transaction.
///
/// ```
/// # use pantile::{MediumKind, Options, TableDef, Type};
/// use pantile_transfer::Dump;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// db.run(|txn| txn.insert(&pets, &[7u32.into()]))?;
/// let dump = Dump::new(&db)?;
/// db.run(|txn| txn.delete(&pets, &[7u32.into()]))?;
/// let mut text = Vec::new();
/// let dumped = dump.write(&mut text)?;
/// assert_eq!((dumped.tables, dumped.rows), (1, 1));
/// assert_eq!(
///     String::from_utf8(text).unwrap(),
///     r#"{"pantile_dump":1}
/// {"table":"pets","columns":[{"name":"id","type":"u32"}],"primary_key":["id"]}
/// [7]
/// {"end_of_table":"pets","rows":1}
/// {"end_of_dump":true,"tables":1,"rows":1}
/// "#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dump<'d> {
    txn: Transaction,
    tables: Vec<(Table, TableDef)>,
    prepared: Vec<Vec<u8>>,
    progress: &'d dyn Fn(&Progress<'_>) -> ControlFlow<()>,
    left_out: Option<Call<'d>>,
}

impl std::fmt::Debug for Dump<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dump").field("tables", &self.tables).finish_non_exhaustive()
    }
}

impl<'d> Dump<'d> {
    /// Begins a dump of all tables. Prepared transactions are left out, because they can be
    /// committed only in the database in which they were prepared; [`Dump::prepared`] names them.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn new(db: &'d Database) -> Result<Self, Error> {
        let names = db.tables().into_iter().filter(|name| !db.is_for_prepared(name));
        Self::of_tables(db, &names.collect::<Vec<_>>())
    }

    /// The names of the prepared transactions that wait to be committed or rolled back, and are
    /// not in the dump, whichever tables they have changed.
    pub fn prepared(&self) -> &[Vec<u8>] {
        &self.prepared
    }

    /// Begins a dump of these tables, each of them once.
    ///
    /// # Errors
    /// [`Error::Database`], for example if there is no such table.
    pub fn of_tables<S: AsRef<str>>(db: &'d Database, names: &[S]) -> Result<Self, Error> {
        let is_first = |n: usize| !names[..n].iter().any(|name| name.as_ref() == names[n].as_ref());
        let names: Vec<_> = (0..names.len()).filter(|n| is_first(*n)).map(|n| names[n].as_ref()).collect();
        loop {
            let tables: Result<Vec<Table>, _> = names.iter().map(|name| db.table(name)).collect();
            let tables = tables?;
            // Tables are older than the transaction that reads them.
            let txn = db.begin_read()?;
            // If one was altered in between, the transaction sees more columns than these handles.
            let is_same =
                |table: &Table| db.table(table.name()).is_ok_and(|now| now.columns() == table.columns());
            if !tables.iter().all(is_same) {
                continue;
            }
            let tables = tables.into_iter().map(|table| (table.definition(), table));
            let tables = tables.map(|(def, table)| (table, def)).collect();
            let progress = &|_: &Progress<'_>| ControlFlow::Continue(());
            return Ok(Self { txn, tables, prepared: db.written_prepared()?, progress, left_out: None });
        }
    }

    /// Sets a function that reports progress. If it returns `Break`, the dump stops and fails with
    /// [`Error::Interrupted`].
    #[must_use]
    pub fn progress(mut self, call: &'d dyn Fn(&Progress<'_>) -> ControlFlow<()>) -> Self {
        self.progress = call;
        self
    }

    /// Leaves damaged rows out instead of failing, and calls `call` with each.
    ///
    /// Use it for a database that [`pantile::salvage`] has opened.
    ///
    /// ```
    /// # use pantile::{MediumKind, Options, TableDef, Type};
    /// use pantile_transfer::{Dump, LeftOut};
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let warn = |row: LeftOut| eprintln!("{}: the row {:?} is lost: {}", row.table, row.key, row.why);
    /// let dumped = Dump::new(&db)?.leave_out_damaged(&warn).write(Vec::new())?;
    /// # assert_eq!(dumped.rows, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn leave_out_damaged(mut self, call: &'d dyn Fn(LeftOut)) -> Self {
        self.left_out = Some(call);
        self
    }

    /// Writes all tables with their rows, for [`Load::dump`](crate::Load::dump).
    ///
    /// # Errors
    /// [`Error::Write`]; [`Error::Database`], for example if a table was dropped meanwhile;
    /// [`Error::Interrupted`]. A part of the dump may have been written then, without its last
    /// line.
    pub fn write(&self, to: impl Write) -> Result<Dumped, Error> {
        let mut out = Out::new(to, self.progress);
        out.line(&Header { pantile_dump: VERSION, schema_only: false })?;
        for (table, def) in &self.tables {
            out.line(&TableLine::new(def))?;
            let rows = self.rows(table, def).arrays(&mut out)?;
            out.line(&TableEnd { end_of_table: def.name.clone(), rows })?;
        }
        let tables = self.tables.len() as u64;
        out.line(&DumpEnd { end_of_dump: true, tables, rows: Some(out.rows()) })?;
        out.finish(tables)
    }

    /// Writes the definitions of all tables, for [`Load::dump`](crate::Load::dump).
    ///
    /// # Errors
    /// [`Error::Write`].
    ///
    /// ```
    /// # use pantile::{MediumKind, Options, TableDef, Type};
    /// # use pantile_transfer::{Dump, Load};
    /// # let new = || Options::new().medium(MediumKind::Dram).open("unused");
    /// # let (db, other) = (new()?, new()?);
    /// db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
    /// let mut schema = Vec::new();
    /// Dump::new(&db)?.write_schema(&mut schema)?;
    /// assert_eq!(Load::new(&other).dump(&schema[..])?.tables_created, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_schema(&self, to: impl Write) -> Result<Dumped, Error> {
        self.write_definitions(to, self.tables.iter().map(|(_, def)| TableLine::new(def)))
    }

    fn write_definitions(
        &self,
        to: impl Write,
        lines: impl Iterator<Item = TableLine>,
    ) -> Result<Dumped, Error> {
        let mut out = Out::new(to, self.progress);
        out.line(&Header { pantile_dump: VERSION, schema_only: true })?;
        let mut tables = 0;
        for line in lines {
            out.line(&line)?;
            tables += 1;
        }
        out.line(&DumpEnd { end_of_dump: true, tables, rows: None })?;
        out.finish(tables)
    }

    /// Writes the rows of one table of the dump, for [`Load::rows`](crate::Load::rows).
    ///
    /// # Errors
    /// As [`Dump::write`], and [`Error::NoSuchTable`].
    pub fn write_rows(&self, table: &str, format: Format, to: impl Write) -> Result<Dumped, Error> {
        let found = self.tables.iter().find(|(_, def)| def.name == table);
        let (table, def) = found.ok_or_else(|| Error::NoSuchTable(table.to_owned()))?;
        let mut out = Out::new(to, self.progress);
        self.rows(table, def).write(format, &mut out)?;
        out.finish(1)
    }

    /// Writes all tables with their rows to a new directory, for
    /// [`Load::files`](crate::Load::files).
    ///
    /// The directory has a file for the rows of each table, and the file `schema.jsonl` with the
    /// definitions. The files are synced.
    ///
    /// # Errors
    /// As [`Dump::write`], and [`Error::Exists`]. If writing fails, the new directory is removed.
    ///
    /// ```
    /// # use pantile::{MediumKind, Options, TableDef, Type};
    /// # use pantile_transfer::{Dump, Format, Load};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("pets");
    /// # let new = || Options::new().medium(MediumKind::Dram).open("unused");
    /// # let (db, other) = (new()?, new()?);
    /// db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
    /// Dump::new(&db)?.write_files(&dir, Format::Csv)?;
    /// assert!(dir.join("schema.jsonl").exists() && dir.join("pets.csv").exists());
    /// assert_eq!(Load::new(&other).files(&dir)?.tables_created, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_files(&self, dir: impl AsRef<Path>, format: Format) -> Result<Dumped, Error> {
        let files = Files::create(dir.as_ref())?;
        let written = self.write_into(&files, format);
        if written.is_err() {
            files.remove();
        }
        written
    }

    fn write_into(&self, files: &Files<'_>, format: Format) -> Result<Dumped, Error> {
        let (mut lines, mut all) = (Vec::new(), Dumped::default());
        for (n, (table, def)) in self.tables.iter().enumerate() {
            let name = files::name(&def.name, n, format);
            let add = |progress: &Progress<'_>| {
                let (rows, bytes) = (progress.rows + all.rows, progress.bytes + all.bytes);
                (self.progress)(&Progress { rows, bytes, ..*progress })
            };
            let written = files.write(&name, |file| {
                let mut out = Out::new(file, &add);
                self.rows(table, def).write(format, &mut out)?;
                out.finish(1)
            })?;
            let mut line = TableLine::new(def);
            (line.file, line.rows) = (Some(name), Some(written.rows));
            lines.push(line);
            (all.rows, all.bytes) = (all.rows + written.rows, all.bytes + written.bytes);
        }
        // Last, so that a directory without it is known not to be whole.
        let schema = files.write(files::SCHEMA, |file| self.write_definitions(file, lines.into_iter()))?;
        files.sync()?;
        Ok(Dumped { tables: schema.tables, rows: all.rows, bytes: all.bytes + schema.bytes })
    }

    fn rows<'r>(&'r self, table: &'r Table, def: &'r TableDef) -> Rows<'r> {
        Rows { txn: &self.txn, table, def, left_out: self.left_out }
    }
}
