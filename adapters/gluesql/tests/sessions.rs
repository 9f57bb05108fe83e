//! What GlueSQL's suite does not look at: sessions beside each other, reopening, values that an index compares.

use gluesql_core::prelude::{Glue, Payload, Value};
use pantile::{Database, Isolation, MediumKind, Options, TransactionOptions};
use pantile_gluesql::PantileStorage;

type Sql = Glue<PantileStorage>;

fn in_memory() -> Database {
    Options::new().medium(MediumKind::Dram).open("unused").expect("open")
}

fn session(db: &Database) -> Sql {
    Glue::new(PantileStorage::new(db.clone()).expect("a session"))
}

fn run(sql: &mut Sql, statements: &str) {
    sql.execute(statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
}

fn rows(sql: &mut Sql, query: &str) -> Vec<String> {
    let found = sql.execute(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let [Payload::Select { rows, .. }] = &found[..] else { panic!("{query}: {found:?}") };
    let line = |row: &Vec<Value>| row.iter().map(String::from).collect::<Vec<_>>().join(" ");
    rows.iter().map(line).collect()
}

fn error(sql: &mut Sql, statements: &str) -> String {
    sql.execute(statements).expect_err(statements).to_string()
}

#[test]
fn everything_is_there_when_it_is_opened_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || session(&Database::open(dir.path()).expect("open"));
    let mut sql = open();
    run(&mut sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, n DECIMAL, m MAP)");
    run(&mut sql, "CREATE INDEX by_n ON t (n); CREATE FUNCTION twice (x INT) RETURN x * 2;");
    run(&mut sql, r#"INSERT INTO t VALUES (2, 0.05, '{"a": [1, 2]}'), (1, 0.5, '{}')"#);
    run(&mut sql, "BEGIN; INSERT INTO t VALUES (3, 3, '{}')");
    drop(sql);
    let mut sql = open();
    assert_eq!(rows(&mut sql, "SELECT id, n FROM t"), ["1 0.5", "2 0.05"]);
    assert_eq!(rows(&mut sql, "SELECT id FROM t ORDER BY n"), ["2", "1"]);
    assert_eq!(rows(&mut sql, "SELECT twice(id) FROM t"), ["2", "4"]);
    assert_eq!(rows(&mut sql, "SELECT m['a'] FROM t WHERE id = 2"), ["[1,2]"]);
}

#[test]
fn rows_stay_when_their_primary_key_goes() {
    let db = in_memory();
    let mut sql = session(&db);
    run(&mut sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)");
    run(&mut sql, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60), (7, 70)");
    run(&mut sql, "CREATE INDEX by_n ON t (n)");
    run(&mut sql, "ALTER TABLE t DROP COLUMN id");
    for n in [80, 90, 100, 110] {
        run(&mut sql, &format!("INSERT INTO t VALUES ({n})"));
    }
    let all = ["10", "20", "30", "40", "50", "60", "70", "80", "90", "100", "110"];
    assert_eq!(rows(&mut sql, "SELECT n FROM t ORDER BY n"), all);
    run(&mut sql, "DELETE FROM t WHERE n < 100");
    assert_eq!(rows(&mut sql, "SELECT n FROM t WHERE n > 0"), ["100", "110"]);
}

/// GlueSQL looks whether a key is free, and then stores the row.
#[test]
fn keys_are_unique_whatever_isolation_is_asked_for() {
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot] {
        let db = in_memory();
        let weak = || {
            let options = TransactionOptions::new().isolation(isolation);
            Glue::new(PantileStorage::with_options(db.clone(), options).expect("a session"))
        };
        let (mut one, mut other) = (weak(), weak());
        run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE)");
        for statements in ["INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (2, 1)"] {
            run(&mut one, "BEGIN");
            run(&mut other, "BEGIN");
            run(&mut one, "INSERT INTO t VALUES (1, 1)");
            let late = other.execute(statements).and_then(|_| {
                run(&mut one, "COMMIT");
                other.execute("COMMIT")
            });
            assert!(late.is_err(), "{isolation:?}: {statements}");
            let _ = other.execute("ROLLBACK");
            let _ = one.execute("COMMIT");
            assert_eq!(rows(&mut one, "SELECT id, n FROM t"), ["1 1"], "{isolation:?}");
            run(&mut one, "DELETE FROM t");
        }
    }
}

#[test]
fn sessions_do_not_see_what_is_not_committed() {
    let db = in_memory();
    let mut one = session(&db);
    let only_reads = TransactionOptions::new().read_only(true);
    let mut other = Glue::new(PantileStorage::with_options(db, only_reads).expect("a session"));
    run(&mut one, "CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1);");
    run(&mut one, "BEGIN; CREATE TABLE u (id INTEGER); INSERT INTO u VALUES (1); DELETE FROM t;");
    assert_eq!(rows(&mut other, "SELECT id FROM t"), ["1"]);
    assert_eq!(error(&mut other, "SELECT id FROM u"), "fetch: table not found: u");
    run(&mut one, "COMMIT");
    assert!(rows(&mut other, "SELECT id FROM t").is_empty());
    assert_eq!(rows(&mut other, "SELECT id FROM u"), ["1"]);
    assert!(error(&mut other, "DELETE FROM u").contains("read-only"));
}

/// A session that may write reads what a running one has written once that has ended, or says that it has not.
#[test]
fn sessions_that_write_wait_for_each_other() {
    let db = in_memory();
    let (mut one, mut other) = (session(&db), session(&db));
    run(&mut one, "CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1); BEGIN; DELETE FROM t;");
    error(&mut other, "SELECT id FROM t");
    assert!(other.storage.met_conflict());
    run(&mut one, "COMMIT");
    assert!(rows(&mut other, "SELECT id FROM t").is_empty());
    assert!(!other.storage.met_conflict());
}

#[test]
fn one_of_two_that_change_what_they_have_read_runs_again() {
    let db = in_memory();
    let (mut one, mut other) = (session(&db), session(&db));
    run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0);");
    run(&mut one, "BEGIN; SELECT n FROM t;");
    run(&mut other, "UPDATE t SET n = n + 1");
    let failed = one.execute("UPDATE t SET n = n + 10; COMMIT;").expect_err("it has read an old row");
    assert!(one.storage.met_conflict(), "{failed}");
    // A commit that fails has ended the transaction, another statement has not.
    let _ = one.execute("ROLLBACK");
    run(&mut one, "UPDATE t SET n = n + 10");
    assert!(!one.storage.met_conflict());
    assert_eq!(rows(&mut other, "SELECT n FROM t"), ["11"]);
}

/// Runs until it has met no other session.
fn run_again(sql: &mut Sql, statement: &str) {
    while let Err(error) = sql.execute(statement) {
        assert!(sql.storage.met_conflict(), "{statement}: {error}");
    }
}

#[test]
fn threads_lose_no_update_and_break_no_constraint() {
    let db = in_memory();
    let mut sql = session(&db);
    run(&mut sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0);");
    run(&mut sql, "CREATE TABLE names (thread INTEGER, name TEXT UNIQUE)");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                let mut sql = session(db);
                for n in 0..25 {
                    run_again(&mut sql, "UPDATE t SET n = n + 1 WHERE id = 1");
                    let insert = format!("INSERT INTO names VALUES ({thread}, 'name {n}')");
                    while let Err(error) = sql.execute(&insert) {
                        if !sql.storage.met_conflict() {
                            assert!(error.to_string().contains("duplicate"), "{error}");
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(rows(&mut sql, "SELECT n FROM t"), ["100"]);
    assert_eq!(rows(&mut sql, "SELECT COUNT(*) FROM names"), ["25"]);
}

#[test]
fn functions_are_part_of_transactions() {
    let db = in_memory();
    let (mut one, mut other) = (session(&db), session(&db));
    run(&mut one, "BEGIN; CREATE FUNCTION twice (x INT) RETURN x * 2;");
    assert_eq!(rows(&mut one, "SELECT twice(4)"), ["8"]);
    run(&mut one, "ROLLBACK");
    error(&mut one, "SELECT twice(4)");
    run(&mut one, "CREATE FUNCTION twice (x INT) RETURN x * 2");
    assert_eq!(rows(&mut other, "SELECT twice(4)"), ["8"]);
}

#[test]
fn another_opening_reads_a_database_that_is_in_use() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Database::open(dir.path()).expect("open");
    let mut sql = session(&db);
    run(&mut sql, "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (7);");
    let only_reads = TransactionOptions::new().read_only(true);
    let beside = Database::open_read_only(dir.path()).expect("open");
    let mut reader = Glue::new(PantileStorage::with_options(beside, only_reads).expect("a session"));
    assert_eq!(rows(&mut reader, "SELECT id FROM t WHERE id = 7"), ["7"]);
    error(&mut reader, "INSERT INTO t VALUES (8)");
    assert_eq!(rows(&mut sql, "SELECT COUNT(*) FROM t"), ["1"]);
}

#[test]
fn sessions_add_rows_to_one_table_without_meeting() {
    let db = in_memory();
    let (mut one, mut other) = (session(&db), session(&db));
    run(&mut one, "CREATE TABLE t (id INTEGER)");
    run(&mut one, "BEGIN; INSERT INTO t VALUES (1);");
    run(&mut other, "BEGIN; INSERT INTO t VALUES (2);");
    for sql in [&mut one, &mut other] {
        run(sql, "INSERT INTO t VALUES (3); COMMIT;");
    }
    assert_eq!(rows(&mut one, "SELECT COUNT(*) FROM t"), ["4"]);
}

#[test]
fn a_statement_that_fails_has_changed_nothing() {
    let mut sql = session(&in_memory());
    run(&mut sql, "CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER); CREATE INDEX by_n ON t (n);");
    let long = format!("INSERT INTO t VALUES ('short', 1), ('{}', 2)", "x".repeat(1500));
    let message = error(&mut sql, &long);
    assert!(message.contains("1500"), "{message}");
    assert!(rows(&mut sql, "SELECT id FROM t").is_empty());
    run(&mut sql, "BEGIN; INSERT INTO t VALUES ('before', 0);");
    error(&mut sql, &long);
    run(&mut sql, "INSERT INTO t VALUES ('after', 3); COMMIT;");
    assert_eq!(rows(&mut sql, "SELECT id FROM t WHERE n >= 0"), ["before", "after"]);
    assert!(error(&mut sql, "COMMIT").contains("no transaction runs"));
    run(&mut sql, "BEGIN");
    assert!(error(&mut sql, "BEGIN").contains("a transaction runs"));
}

#[test]
fn a_table_is_not_renamed_over_another() {
    let mut sql = session(&in_memory());
    run(&mut sql, "CREATE TABLE a (id INTEGER); CREATE TABLE b (id INTEGER);");
    run(&mut sql, "INSERT INTO a VALUES (1); INSERT INTO b VALUES (2);");
    let message = error(&mut sql, "ALTER TABLE a RENAME TO b");
    assert!(message.contains("there is already a table \"b\"; nothing was changed"), "{message}");
    assert_eq!(rows(&mut sql, "SELECT id FROM a"), ["1"]);
    assert_eq!(rows(&mut sql, "SELECT id FROM b"), ["2"]);
    run(&mut sql, "ALTER TABLE a RENAME TO a; ALTER TABLE a RENAME TO c;");
    assert_eq!(rows(&mut sql, "SELECT id FROM c"), ["1"]);
}

/// The rows that each comparison finds with an index are those that it finds without.
#[test]
fn an_index_compares_as_sql_does() {
    for (ty, values) in [
        ("FLOAT", "(-2.5), (-1), (0), (0.5), (1), (1.5), (2), (1000000)"),
        ("FLOAT", "(-1), (0.5), (2), (CAST('NaN' AS FLOAT))"),
        ("FLOAT32", "(-2.5), (-1), (0), (0.5), (1), (1.5), (2)"),
        ("DECIMAL", "(-2.5), (-0.05), (-0.5), (0), (0.05), (0.5), (1), (1.5), (2)"),
        ("INT8", "(-128), (-1), (0), (1), (2), (127)"),
        ("UINT128", "(0), (1), (2), (340282366920938463463374607431768211455)"),
        ("DATE", "('1969-01-01'), ('2020-05-05'), ('0001-01-01')"),
        ("TEXT", "(''), ('1'), ('a'), ('ab'), ('b')"),
    ] {
        let mut sql = session(&in_memory());
        run(&mut sql, &format!("CREATE TABLE t (v {ty}); INSERT INTO t VALUES {values};"));
        let operands: &[&str] = match ty {
            "DATE" => &["'2000-01-01'", "DATE '2020-05-05'"],
            "TEXT" => &["''", "'a'", "'aa'", "'z'"],
            // Without an index, no unsigned number is greater than -1 for GlueSQL.
            "UINT128" => &["0", "1", "1.5", "2"],
            _ => &["-1", "0", "1", "1.5", "2"],
        };
        let mut queries = Vec::new();
        for operand in operands {
            let ops = ["=", "<", "<=", ">", ">="];
            queries.extend(ops.map(|op| format!("SELECT v FROM t WHERE v {op} {operand}")));
        }
        let found = |sql: &mut Sql| -> Vec<Vec<String>> {
            let sorted = |query: &String| {
                let mut rows = rows(sql, query);
                rows.sort();
                rows
            };
            queries.iter().map(sorted).collect()
        };
        let without = found(&mut sql);
        run(&mut sql, "CREATE INDEX by_v ON t (v)");
        assert_eq!(found(&mut sql), without, "{ty}");
    }
}

#[test]
fn an_index_follows_its_column() {
    let mut sql = session(&in_memory());
    run(&mut sql, "CREATE TABLE t (a INTEGER, b INTEGER); INSERT INTO t VALUES (1, 20), (2, 10);");
    run(&mut sql, "CREATE INDEX by_sum ON t (a + b); CREATE INDEX by_b ON t (b);");
    run(&mut sql, "ALTER TABLE t RENAME COLUMN b TO c");
    run(&mut sql, "INSERT INTO t VALUES (3, 15)");
    assert_eq!(rows(&mut sql, "SELECT a FROM t ORDER BY c"), ["2", "3", "1"]);
    assert_eq!(rows(&mut sql, "SELECT a FROM t WHERE a + c = 18"), ["3"]);
    run(&mut sql, "ALTER TABLE t RENAME TO u; ALTER TABLE u DROP COLUMN a;");
    assert_eq!(rows(&mut sql, "SELECT INDEX_NAME FROM GLUE_INDEXES"), ["by_b"]);
    assert_eq!(rows(&mut sql, "SELECT c FROM u WHERE c > 10"), ["15", "20"]);
    run(&mut sql, "UPDATE u SET c = 5 WHERE c = 20; DELETE FROM u WHERE c = 15; DROP INDEX u.by_b;");
    assert_eq!(rows(&mut sql, "SELECT c FROM u ORDER BY c"), ["5", "10"]);
}
