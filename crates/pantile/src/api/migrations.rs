//! Numbered changes of a database's schema and rows, each made once.

use std::fmt;

use crate::api::database::Database;
use crate::engine::table::Table;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::schema::{IndexDef, TableDef, Type};
use crate::types::table_change::TableChange;
use crate::types::value::Value;

/// The table that says what has been done.
const RECORD: &str = "#migrations";

/// Why a step failed: an error of the database, or of the program.
type Failure = Box<dyn std::error::Error + Send + Sync>;

type Body = Box<dyn Fn(&Database, &mut Transaction) -> Result<(), Failure> + Send + Sync>;

enum Step {
    CreateTable(TableDef),
    AlterTable(String, TableChange),
    DropTable(String),
    CreateIndex(String, IndexDef),
    DropIndex(String, String),
    Run(Body),
}

/// One numbered change of a schema, made of steps.
///
/// The steps run one after the other. Each takes effect wholly or not at all, and only once, even
/// if the process ends in between: the database records how far the migration has come.
#[must_use]
pub struct Migration {
    number: u64,
    name: String,
    steps: Vec<Step>,
}

impl Migration {
    /// A migration without steps. Each migration has a higher number than the one before it. The
    /// name is for people.
    pub fn new(number: u64, name: impl Into<String>) -> Self {
        Self { number, name: name.into(), steps: Vec::new() }
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Creates a table; see [`Database::create_table`].
    pub fn create_table(self, def: TableDef) -> Self {
        self.step(Step::CreateTable(def))
    }

    /// Changes a table; see [`Database::alter_table`].
    pub fn alter_table(self, table: impl Into<String>, change: TableChange) -> Self {
        self.step(Step::AlterTable(table.into(), change))
    }

    /// Drops a table; see [`Database::drop_table`].
    pub fn drop_table(self, table: impl Into<String>) -> Self {
        self.step(Step::DropTable(table.into()))
    }

    /// Creates an index; see [`Database::create_index`].
    pub fn create_index(self, table: impl Into<String>, def: IndexDef) -> Self {
        self.step(Step::CreateIndex(table.into(), def))
    }

    /// Drops an index; see [`Database::drop_index`].
    pub fn drop_index(self, table: impl Into<String>, index: impl Into<String>) -> Self {
        self.step(Step::DropIndex(table.into(), index.into()))
    }

    /// Changes rows in one transaction, which runs again if it conflicts with others.
    ///
    /// The transaction also records that the step is done. `body` can fail with [`Error`] or with
    /// an error of your own, like the closure of [`Database::run`].
    pub fn run<E: Into<Failure>>(
        self,
        body: impl Fn(&Database, &mut Transaction) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.step(Step::Run(Box::new(move |db, txn| body(db, txn).map_err(Into::into))))
    }
}

impl fmt::Debug for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration")
            .field("number", &self.number)
            .field("name", &self.name)
            .field("steps", &self.steps.len())
            .finish()
    }
}

/// All migrations of a program, from the first one on.
///
/// The database records in its table `#migrations` which of them it has had, so each is applied
/// once.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let all = Migrations::new()
///     .then(Migration::new(1, "pets").create_table(
///         TableDef::new("pets").column("id", Type::U32).column("name", Type::String(40)).primary_key(["id"]),
///     ))
///     .then(
///         Migration::new(2, "ages")
///             .alter_table("pets", TableChange::new().add_column(ColumnDef::new("age", Type::U8).nullable()))
///             .run(|db, txn| txn.insert(&db.table("pets")?, &[1u32.into(), "Rex".into(), 7u8.into()])),
///     );
/// assert_eq!(all.apply(&db)?, [1, 2]);
/// assert!(all.apply(&db)?.is_empty());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Migrations {
    all: Vec<Migration>,
}

/// How far a migration has come.
struct Progress {
    name: String,
    /// Steps that are done.
    steps: u64,
    /// Whether the step after them has begun.
    is_under_way: bool,
    is_done: bool,
}

impl Migrations {
    /// No migrations yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a migration with a higher number than those before.
    pub fn then(mut self, migration: Migration) -> Self {
        self.all.push(migration);
        self
    }

    /// Applies the migrations that the database has not had, in order, and returns their numbers.
    ///
    /// A migration that was interrupted or has failed goes on from the step at which that happened.
    ///
    /// # Errors
    /// [`Error::InvalidMigrations`], before anything is done, in these cases: the numbers do not
    /// rise; a step of a migration calls this; the database has had a migration that is not among
    /// these, or that has another name here. Such a database belongs to another program, or to a
    /// newer version of this one.
    ///
    /// [`Error::MigrationFailed`] with the step and the reason. The steps before it stay in effect. The
    /// step itself is in effect only if the database failed after it, when it recorded that the
    /// step is done; after [`Error::MediumFailed`] it may be. A later call finds out, and does not
    /// make the step twice.
    pub fn apply(&self, db: &Database) -> Result<Vec<u64>> {
        self.check_order()?;
        let Some(_turn) = db.core.tables.migrate() else {
            return Err(Error::InvalidMigrations("a step of a migration makes migrations itself".into()));
        };
        let record = db.create_table_if_absent(
            TableDef::new(RECORD)
                .column("number", Type::U64)
                .column("name", Type::String(1000))
                .column("steps", Type::U64)
                .column("is_under_way", Type::Bool)
                .column("is_done", Type::Bool)
                .primary_key(["number"]),
        )?;
        self.check_record(db, &record)?;
        let mut made = Vec::new();
        for migration in &self.all {
            let mut progress = progress(db, &record, migration)?;
            if progress.is_done {
                continue;
            }
            for (n, step) in (0..).zip(&migration.steps).skip(progress.steps as usize) {
                let outcome = make(db, &record, migration, step, &mut progress);
                outcome.map_err(|error| Error::MigrationFailed {
                    number: migration.number,
                    name: migration.name.clone(),
                    step: n + 1,
                    error,
                })?;
            }
            progress.is_done = true;
            db.run(|txn| note(txn, &record, migration.number, &progress))?;
            made.push(migration.number);
        }
        Ok(made)
    }

    fn check_order(&self) -> Result<()> {
        match self.all.windows(2).find(|two| two[0].number >= two[1].number) {
            None => Ok(()),
            Some(two) => {
                let (a, b) = (two[0].number, two[1].number);
                Err(Error::InvalidMigrations(format!("migration {b} comes after {a}")))
            }
        }
    }

    /// Compares these with those that the database has had.
    fn check_record(&self, db: &Database, record: &Table) -> Result<()> {
        let txn = db.begin_read()?;
        for row in txn.scan(record, crate::types::range::Range::all())? {
            let row = row?;
            let (number, name): (u64, &str) = (row.get("number")?, row.get("name")?);
            match self.all.iter().find(|migration| migration.number == number) {
                Some(known) if known.name == name => {}
                Some(known) => {
                    let what = format!("migration {number} is {name:?} there and {:?} here", known.name);
                    return Err(Error::InvalidMigrations(what));
                }
                None => {
                    let what =
                        format!("it has had migration {number}, {name:?}, which this program does not know");
                    return Err(Error::InvalidMigrations(what));
                }
            }
        }
        Ok(())
    }
}

fn progress(db: &Database, record: &Table, migration: &Migration) -> Result<Progress> {
    let txn = db.begin_read()?;
    let row = txn.get(record, &[migration.number.into()])?;
    Ok(match row {
        None => Progress { name: migration.name.clone(), steps: 0, is_under_way: false, is_done: false },
        Some(row) => Progress {
            name: row.get::<&str>("name")?.to_owned(),
            steps: row.get("steps")?,
            is_under_way: row.get("is_under_way")?,
            is_done: row.get("is_done")?,
        },
    })
}

fn note(txn: &mut Transaction, record: &Table, number: u64, progress: &Progress) -> Result<()> {
    let Progress { name, steps, is_under_way, is_done } = progress;
    let name = Value::Str(name);
    txn.upsert(record, &[number.into(), name, (*steps).into(), (*is_under_way).into(), (*is_done).into()])
        .map(drop)
}

/// The same. Of a migration that has done nothing there is no note, so that a program without it works as before.
fn note_or_forget(txn: &mut Transaction, record: &Table, number: u64, progress: &Progress) -> Result<()> {
    match progress.steps {
        0 => txn.delete(record, &[number.into()]).map(drop),
        _ => note(txn, record, number, progress),
    }
}

/// Makes a step and notes that it is done.
fn make(
    db: &Database,
    record: &Table,
    migration: &Migration,
    step: &Step,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let done = Progress {
        name: progress.name.clone(),
        steps: progress.steps + 1,
        is_under_way: false,
        is_done: false,
    };
    let note_done = |txn: &mut Transaction| note(txn, record, migration.number, &done);
    match step {
        Step::Run(body) => db.run(|txn| {
            body(db, txn)?;
            note_done(txn).map_err(Failure::from)
        })?,
        // The table does not say which change it has had, so the note commits with it.
        Step::AlterTable(table, change) => {
            db.alter_table_and(&db.table(table)?, change, note_done).map(drop)?
        }
        step => {
            let was_begun = progress.is_under_way;
            if !was_begun {
                let begun = Progress { is_under_way: true, name: progress.name.clone(), ..*progress };
                db.run(|txn| note(txn, record, migration.number, &begun))?;
            }
            if let Err(error) = change(db, step, was_begun) {
                if !matches!(error, Error::MediumFailed { .. }) {
                    // It has not happened, so it is not under way. If this cannot be noted, the next call looks for it.
                    progress.is_under_way = false;
                    let _ = db.run(|txn| note_or_forget(txn, record, migration.number, progress));
                }
                return Err(error.into());
            }
            db.run(note_done)?;
        }
    }
    *progress = done;
    Ok(())
}

/// Changes a definition, unless it is found that this has happened when the step
/// was under way before.
fn change(db: &Database, step: &Step, was_begun: bool) -> Result<()> {
    match step {
        Step::CreateTable(def) => match db.table(&def.name) {
            Ok(table) if was_begun && def.differences(&table.definition()).is_none() => Ok(()),
            _ => db.create_table(def.clone()).map(drop),
        },
        Step::DropTable(name) => match db.drop_table(name) {
            Err(Error::UnknownTable(_)) if was_begun => Ok(()),
            outcome => outcome,
        },
        Step::CreateIndex(name, def) => {
            let table = db.table(name)?;
            let made = table.definition().indexes.contains(def);
            if was_begun && made { Ok(()) } else { db.create_index(&table, def.clone()).map(drop) }
        }
        Step::DropIndex(name, index) => match db.drop_index(&db.table(name)?, index) {
            Err(Error::UnknownIndex { .. }) if was_begun => Ok(()),
            outcome => outcome,
        },
        Step::AlterTable(..) | Step::Run(_) => unreachable!("it commits with its note"),
    }
}
