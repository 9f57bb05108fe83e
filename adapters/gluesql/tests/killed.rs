//! A session is killed. What it has acknowledged is there, and no statement or transaction is there in part.
//!
//! The test starts its own binary again as a child, which writes until it is killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use gluesql_core::prelude::{Glue, Payload, Value};
use pantile::Database;
use pantile_gluesql::PantileStorage;

const PLACE: &str = "PANTILE_GLUESQL_KILL_PLACE";
const DONE: &str = "done ";
const TABLES: &str = "
    CREATE TABLE notes (text TEXT, round INTEGER);
    CREATE INDEX by_round ON notes (round);
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents INTEGER);
    INSERT INTO accounts VALUES (1, 1000), (2, 1000);
";

fn open(place: &Path) -> Glue<PantileStorage> {
    Glue::new(PantileStorage::new(Database::open(place).expect("open")).expect("a session"))
}

/// Each round is a statement of three rows, and a transaction of two statements.
fn round(sql: &mut Glue<PantileStorage>, round: i64) {
    let text = "x".repeat(2000);
    let statements = format!(
        "INSERT INTO notes VALUES ('{text}', {round}), ('two', {round}), ('three', {round});
         BEGIN;
         UPDATE accounts SET cents = cents - {round} WHERE id = 1;
         UPDATE accounts SET cents = cents + {round} WHERE id = 2;
         COMMIT;"
    );
    sql.execute(statements).expect("a round");
}

/// Does nothing unless it is started as the child.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let mut sql = open(Path::new(&place));
    let first = number(&mut sql, "SELECT COUNT(*) FROM notes") / 3;
    for n in first.. {
        round(&mut sql, n);
        println!("{DONE}{n}");
    }
}

fn start_child(place: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "child", "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

fn number(sql: &mut Glue<PantileStorage>, query: &str) -> i64 {
    let found = sql.execute(query).expect("a query");
    match &found[..] {
        [Payload::Select { rows, .. }] => match rows[0][0] {
            Value::I64(number) => number,
            ref other => panic!("{query}: {other:?}"),
        },
        other => panic!("{query}: {other:?}"),
    }
}

/// Kills the child when it has acknowledged so many rounds; returns the last that it has.
fn killed_after(place: &Path, rounds: usize) -> i64 {
    let mut child = start_child(place);
    let output = BufReader::new(child.stdout.take().expect("output"));
    let done = output.lines().map_while(Result::ok);
    let mut done = done.filter_map(|line| line.split_once(DONE)?.1.parse::<i64>().ok());
    let last = done.by_ref().nth(rounds - 1).expect("the child goes on");
    child.kill().expect("kill");
    child.wait().expect("wait");
    done.last().unwrap_or(last)
}

#[test]
fn a_killed_session_loses_nothing_and_leaves_nothing_half_done() {
    let place = tempfile::tempdir().expect("a directory");
    let mut sql = open(place.path());
    sql.execute(TABLES).expect("tables");
    drop(sql);
    let (mut first, mut before) = (0, 0);
    for rounds in [1, 40, 17] {
        let last = killed_after(place.path(), rounds);
        let mut sql = open(place.path());
        let notes = number(&mut sql, "SELECT COUNT(*) FROM notes");
        assert!(notes % 3 == 0, "{notes} notes: a statement is there in part");
        assert!(notes == 3 * (last + 1) || notes == 3 * (last + 2), "{notes} notes after round {last}");
        assert_eq!(number(&mut sql, "SELECT COUNT(*) FROM notes WHERE round >= 0"), notes, "by the index");
        assert_eq!(number(&mut sql, &format!("SELECT COUNT(*) FROM notes WHERE round = {last}")), 3);
        assert_eq!(
            number(&mut sql, "SELECT SUM(cents) FROM accounts"),
            2000,
            "a transaction is there in part"
        );
        let moved = number(&mut sql, "SELECT cents FROM accounts WHERE id = 2") - 1000;
        // The statement of the next round may be there without its transaction: they are two.
        let acknowledged = before + (first..=last).sum::<i64>();
        assert!([acknowledged, acknowledged + last + 1].contains(&moved), "{moved}, not {acknowledged}");
        (first, before) = (notes / 3, moved);
    }
}
