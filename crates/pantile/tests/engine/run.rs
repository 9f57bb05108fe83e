//! Transactions whose closures fail with errors of the caller.

use std::fmt;

use pantile::{
    Conflict, Database, Error, MediumKind, Options, Table, TableDef, TransactionError, Type, Value,
};

fn database() -> (Database, Table) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U8).column("n", Type::I64).primary_key(["id"]);
    (db.clone(), db.create_table(def).expect("create"))
}

fn rows(db: &Database, table: &Table) -> u64 {
    db.begin_read().and_then(|txn| txn.count(table, pantile::Range::all())).expect("count")
}

fn conflict() -> Error {
    Error::Conflict { conflict: Conflict::ReadChanged, table: "t".into() }
}

/// An error with the database's as its source, as derived ones have it.
#[derive(Debug)]
enum AppError {
    NoMoney,
    Database(Error),
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for AppError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AppError::NoMoney => None,
            AppError::Database(error) => Some(error),
        }
    }
}

impl From<Error> for AppError {
    fn from(error: Error) -> Self {
        AppError::Database(error)
    }
}

impl TransactionError for AppError {
    fn of_database(&self) -> Option<&Error> {
        Error::in_chain(self)
    }
}

/// Runs a transaction that inserts a row and then fails with each of these in turn.
fn run<E: TransactionError>(errors: Vec<E>) -> (u64, usize, Option<E>) {
    let (db, table) = database();
    let (mut errors, mut runs) = (errors.into_iter(), 0);
    let outcome = db.run(|txn| {
        runs += 1;
        txn.insert(&table, &[1u8.into(), Value::Int(0)])?;
        errors.next().map_or(Ok(()), Err)
    });
    (rows(&db, &table), runs, outcome.err())
}

#[test]
fn an_error_of_the_caller_rolls_back_and_comes_out() {
    assert!(matches!(run(vec![AppError::NoMoney]), (0, 1, Some(AppError::NoMoney))));
    assert!(matches!(run(vec![Error::ReadOnly]), (0, 1, Some(Error::ReadOnly))));
    let (rows, runs, error) = run::<Box<dyn std::error::Error>>(vec!["no".into()]);
    assert_eq!((rows, runs, error.expect("it").to_string()), (0, 1, "no".to_owned()));
}

#[test]
fn a_conflict_within_an_error_of_the_caller_runs_it_again() {
    assert!(matches!(run(vec![conflict(), conflict()]), (1, 3, None)));
    assert!(matches!(run(vec![AppError::Database(conflict())]), (1, 2, None)));
    let boxed: Box<dyn std::error::Error> = Box::new(AppError::Database(conflict()));
    assert!(matches!(run(vec![boxed]), (1, 2, None)));
    let boxed: Box<dyn std::error::Error + Send + Sync> = conflict().into();
    assert!(matches!(run(vec![boxed]), (1, 2, None)));
    let in_two: Box<dyn std::error::Error> = Box::new(Box::new(conflict()));
    assert!(matches!(run(vec![in_two]), (1, 2, None)));
    let after = vec![AppError::Database(conflict()), AppError::NoMoney];
    assert!(matches!(run(after), (0, 2, Some(AppError::NoMoney))));
}

#[cfg(feature = "anyhow")]
#[test]
fn a_conflict_with_context_runs_it_again() {
    let with_context = anyhow::Error::new(conflict()).context("while paying");
    assert!(matches!(run(vec![with_context]), (1, 2, None)));
    let boxed = anyhow::Error::new(Box::new(conflict())).context("while paying");
    assert!(matches!(run(vec![boxed]), (1, 2, None)));
    let (rows, runs, error) = run(vec![anyhow::anyhow!("no money")]);
    assert_eq!((rows, runs, error.expect("it").to_string()), (0, 1, "no money".to_owned()));
}

/// The engine's own errors arrive as the caller's, also those of the beginning and
/// the commit.
#[test]
fn errors_of_the_database_are_converted() {
    let (db, table) = database();
    db.run(|txn| txn.insert(&table, &[1u8.into(), 0.into()])).expect("insert");
    let twice = db.run(|txn| Ok::<_, AppError>(txn.insert(&table, &[1u8.into(), 0.into()])?));
    assert!(matches!(twice, Err(AppError::Database(Error::DuplicateKey { .. }))));
    db.clone().close().expect("close");
    let closed = db.run(|_| Ok::<_, AppError>(()));
    assert!(matches!(closed, Err(AppError::Database(Error::Closed))));
}
