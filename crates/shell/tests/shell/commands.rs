//! Commands one by one.

use std::sync::atomic::{AtomicBool, Ordering};

use pantile::{Database, Decimal, Isolation, OwnedValue, TableDef, TransactionOptions, Type, Value};
use pantile_shell::{Error, Flow, Shell};

use crate::home::{self, GO_ON, done, refused};

fn numbers(rows: u32) -> Database {
    let db = home::new();
    let def = TableDef::new("n").column("a", Type::U32).column("b", Type::U32).column("t", Type::String(20));
    let table = db.create_table(def.primary_key(["a", "b"])).expect("a table");
    let insert = |n: u32| -> [Value<'_>; 3] { [(n / 10).into(), (n % 10).into(), "to".into()] };
    db.run(|txn| (0..rows).try_for_each(|n| txn.insert(&table, &insert(n)))).expect("rows");
    db
}

/// The keys that a scan prints.
fn keys(shell: &mut Shell<'_>, line: &str) -> Vec<String> {
    shell.set_mode(pantile_shell::Mode::Csv);
    let csv = done(shell, line);
    csv.lines().skip(1).map(|line| line.rsplit_once(',').expect("fields").0.to_owned()).collect()
}

#[test]
fn ranges_include_and_exclude_what_they_say() {
    let db = numbers(40);
    let mut shell = Shell::new(&db, &GO_ON);
    let all: Vec<String> = (0..40).map(|n| format!("{},{}", n / 10, n % 10)).collect();
    for (range, from, to) in [
        ("", 0, 40),
        ("prefix 2", 20, 30),
        ("from 2", 20, 40),
        ("after 2", 30, 40),
        ("to 2", 0, 30),
        ("before 2", 0, 20),
        ("from 1 5 before 3 1", 15, 31),
        ("after 1 5 to 3 1", 16, 32),
        ("limit 3", 0, 3),
    ] {
        assert_eq!(keys(&mut shell, &format!("scan n {range}")), all[from..to], "{range}");
        // A limit is of a scan; counting takes it too.
        assert_eq!(done(&mut shell, &format!("count n {range}")), format!("{}\n", to - from), "{range}");
    }
    let mut last = keys(&mut shell, "scan n reverse limit 2");
    last.reverse();
    assert_eq!(last, all[38..]);
    // A quoted word is a value and no keyword.
    done(&mut shell, "create index n by_text t");
    assert_eq!(done(&mut shell, "count n by by_text prefix \"to\""), "40\n");
    assert_eq!(done(&mut shell, "count n by by_text after \"to\""), "0\n");
}

#[test]
fn values_of_all_types_are_printed_as_they_are_entered() {
    let db = home::new();
    let types = [
        (Type::Bool, "true", Value::Bool(true)),
        (Type::I8, "-128", Value::Int(-128)),
        (Type::I16, "-1", Value::Int(-1)),
        (Type::I32, "7", Value::Int(7)),
        (Type::I64, "-9223372036854775808", Value::Int(i64::MIN)),
        (Type::U8, "255", Value::UInt(255)),
        (Type::U16, "1", Value::UInt(1)),
        (Type::U32, "2", Value::UInt(2)),
        (Type::U64, "18446744073709551615", Value::UInt(u64::MAX)),
        (Type::F32, "1.5", Value::Float(1.5)),
        (Type::F64, "-inf", Value::Float(f64::NEG_INFINITY)),
        (Type::Decimal { precision: 38, scale: 2 }, "-0.05", Value::Decimal(Decimal::new(-5, 2))),
        (Type::Timestamp, "1970-01-01T00:00:00.000001Z", Value::Timestamp(1)),
        (Type::FixedBytes(3), "AAEC", Value::Bytes(&[0, 1, 2])),
        (Type::FixedString(9), "ö", Value::Str("ö")),
        (Type::Bytes(9), "/w==", Value::Bytes(&[255])),
        (Type::String(9), r#""a ""b"", c""#, Value::Str(r#"a "b", c"#)),
    ];
    let def = TableDef::new("t").column("id", Type::U8).primary_key(["id"]);
    let name = |n: usize| format!("c{n}");
    let def = types.iter().enumerate().fold(def, |def, (n, (ty, _, _))| def.nullable(name(n), *ty));
    let table = db.create_table(def).expect("a table");
    let mut shell = Shell::new(&db, &GO_ON);
    let texts = types.map(|(_, text, _)| text);
    done(&mut shell, &format!("insert t 1 {}", texts.join(" ")));
    done(&mut shell, &format!("insert t 2 {}", types.map(|_| r"\N").join(" ")));
    let txn = db.begin_read().expect("a transaction");
    let row = txn.get(&table, &[1u8.into()]).expect("a read").expect("the row");
    for (n, (_, text, value)) in types.iter().enumerate() {
        assert_eq!(row.get::<OwnedValue>(n + 1).expect("a value"), OwnedValue::from(*value), "{text}");
    }
    drop(txn);
    done(&mut shell, ".mode csv");
    let printed = done(&mut shell, "scan t");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[1], format!("1,{}", texts.join(",")));
    assert_eq!(lines[2], format!("2,{}", types.map(|_| r"\N").join(",")));
}

/// A terminal would obey them, and lines would not be lines.
#[test]
fn control_characters_are_printed_escaped_and_entered_so() {
    let db = home::new();
    let def = TableDef::new("t").column("id", Type::U8).column("\u{1b}c", Type::String(40));
    let table = db.create_table(def.primary_key(["id"])).expect("a table");
    let text = "\u{1b}[31mred\0 \"a\\\n\u{9b}b\"";
    db.run(|txn| txn.insert(&table, &[1u8.into(), text.into()])).expect("a row");
    let mut shell = Shell::new(&db, &GO_ON);
    let printed = done(&mut shell, "get t 1");
    let (head, shown) = (r#"$"\u{1b}c""#, r#"$"\u{1b}[31mred\0 \"a\\\n\u{9b}b\"""#);
    let rule = "-".repeat(shown.len());
    assert_eq!(printed, format!("id  {head}\n--  {rule}\n 1  {shown}\n"));
    done(&mut shell, &format!("insert t 2 {shown}"));
    let txn = db.begin_read().expect("a transaction");
    let row = txn.get(&table, &[2u8.into()]).expect("a read").expect("the row");
    assert_eq!(row.get::<&str>(1).expect("a text"), text);
    drop(txn);
    let wrong = refused(&mut shell, &format!("get t {shown}"));
    assert!(!wrong.chars().any(char::is_control), "{wrong:?}");
}

#[test]
fn messages_name_the_column_and_what_it_takes() {
    let db = numbers(1);
    let mut shell = Shell::new(&db, &GO_ON);
    let range = "u32 (a whole number from 0 to 4294967295)";
    for (line, says) in [
        ("get n 1", "1 values are given where the key is (a, b)"),
        ("get n 1 2 3", "3 values are given where the key is (a, b)"),
        ("scan n from x", &format!("column \"a\": {range} is expected, not \"x\"")),
        ("insert n 1 2", "2 values are given where the columns are (a, b, t)"),
        ("insert n 1 -2 x", &format!("column \"b\": {range} is expected, not \"-2\"")),
        ("update n 0 0 set t", "\"t\" is not COLUMN=VALUE"),
        ("update n 0 0 set u=1", "table \"n\" has no column \"u\""),
        ("update n 0 0", "`update T KEY... set COLUMN=VALUE ...`"),
        ("scan n sideways", "\"sideways\" is not expected here"),
        ("scan n limit many", "`limit` is followed by one whole number"),
        ("scan n prefix 1 from 2", "`from` gives the range a second beginning or end"),
        ("scan n to 1 before 2", "`before` gives the range a second beginning or end"),
        ("rollback to here", "`rollback` stands alone; nothing was changed"),
        ("scan", "which table?"),
        ("scan m", "there is no table \"m\""),
        ("scan n by nothing", "table \"n\" has no index \"nothing\""),
        ("alter n add c text", "there is no type \"text\""),
        ("create table {}", "missing field"),
        ("commit", "no transaction is open"),
        ("select 1", "there is no SQL here"),
        ("fly", "there is no command \"fly\"; `.help` lists them"),
        ("get n \"1", "a quote is not closed"),
        (".read /nowhere/x", "cannot read /nowhere/x"),
    ] {
        let told = refused(&mut shell, line);
        assert!(told.contains(says), "{line}: {told}");
    }
    assert_eq!(done(&mut shell, "count n"), "1\n");
}

#[test]
fn a_transaction_is_seen_by_itself_alone_until_it_commits() {
    let db = numbers(10);
    let (mut one, mut other) = (Shell::new(&db, &GO_ON), Shell::new(&db, &GO_ON));
    done(&mut other, "begin snapshot");
    done(&mut one, "begin");
    assert!(refused(&mut one, "begin").contains("a transaction is open"));
    assert_eq!(done(&mut one, "delete n 0 3"), "deleted\n");
    assert_eq!(done(&mut one, "upsert n 0 4 new"), "replaced\n");
    assert_eq!((done(&mut one, "count n"), done(&mut other, "count n")), ("9\n".into(), "10\n".into()));
    assert!(refused(&mut one, "dump n n.csv").contains("end the open one"));
    done(&mut one, "commit");
    assert!(refused(&mut other, "delete n 0 0").contains("read-only"));
    done(&mut other, "rollback");
    assert_eq!(done(&mut other, "count n"), "9\n");
    done(&mut one, "begin");
    done(&mut one, "delete n 0 0");
    drop(one);
    assert_eq!(done(&mut other, "count n"), "9\n");
}

#[test]
fn a_stop_ends_a_scan_and_not_the_shell() {
    let (db, stop) = (numbers(1000), AtomicBool::new(false));
    let mut shell = Shell::new(&db, &stop);
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(home::run(&mut shell, "scan n"), Err(Error::Interrupted)));
    assert_eq!(done(&mut shell, "scan n").lines().count(), 1002);
    // Nor is one begun that does not look.
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(home::run(&mut shell, "drop table n"), Err(Error::Interrupted)));
    assert_eq!(done(&mut shell, "count n"), "1000\n");
}

#[test]
fn scripts_end_at_the_first_failure_with_its_line() {
    let (db, dir) = (numbers(0), tempfile::tempdir().expect("a directory"));
    let at = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    std::fs::write(at("good"), "# rows\n\ninsert n 1 1 a\ninsert n 1 2 b\n").expect("written");
    std::fs::write(at("bad"), format!(".read {}\ninsert n 1 1 c\ninsert n 1 3 d\n", at("good")))
        .expect("written");
    let mut shell = Shell::new(&db, &GO_ON);
    let told = refused(&mut shell, &format!(".read {}", at("bad")));
    assert!(told.starts_with(&format!("{}, line 2: table \"n\" already has a row", at("bad"))), "{told}");
    assert_eq!(done(&mut shell, "count n"), "2\n");
    std::fs::write(at("own"), format!(".read {}\n", at("own"))).expect("written");
    assert!(refused(&mut shell, &format!(".read {}", at("own"))).contains("does one run itself?"));
    std::fs::write(at("end"), ".quit\ninsert n 9 9 z\n").expect("written");
    let mut out = Vec::new();
    assert_eq!(shell.run(&format!(".read {}", at("end")), &mut out).expect("a script"), Flow::Quit);
    assert_eq!(done(&mut shell, "count n"), "2\n");
}

#[test]
fn tables_go_to_files_and_come_back() {
    let (db, dir) = (numbers(25), tempfile::tempdir().expect("a directory"));
    let mut shell = Shell::new(&db, &GO_ON);
    let before = done(&mut shell, "scan n");
    for name in ["n.csv", "n.jsonl"] {
        let file = dir.path().join(name).to_str().expect("UTF-8").to_owned();
        assert_eq!(done(&mut shell, &format!("dump n {file}")), format!("25 rows written to {file}\n"));
        assert!(refused(&mut shell, &format!("dump n {file}")).contains("File exists"));
        assert!(refused(&mut shell, &format!("load n {file}")).ends_with("nothing was loaded"));
        (0..25).for_each(|n| drop(done(&mut shell, &format!("delete n {} {}", n / 10, n % 10))));
        assert_eq!(done(&mut shell, &format!("load n {file}")), format!("25 rows loaded from {file}\n"));
        assert_eq!(done(&mut shell, "scan n"), before);
    }
    assert!(refused(&mut shell, "dump n n.txt").contains(".csv or .jsonl"));
}

#[test]
fn tables_and_indexes_are_made_changed_and_dropped() {
    let db = numbers(3);
    let mut shell = Shell::new(&db, &GO_ON);
    let made = done(&mut shell, "schema n");
    done(&mut shell, "drop table n");
    assert_eq!(done(&mut shell, "tables"), "");
    done(&mut shell, &made);
    assert_eq!(done(&mut shell, "schema"), made);
    done(&mut shell, "insert n 1 2 a");
    done(&mut shell, "alter n add c decimal(9,2) nullable default 1.50");
    done(&mut shell, "alter n rename t u");
    done(&mut shell, "alter n name m");
    done(&mut shell, "create unique index m once u");
    assert!(refused(&mut shell, "insert m 2 2 a 1").contains("\"once\""));
    done(&mut shell, "alter m rename index once twice");
    assert!(refused(&mut shell, "insert m 2 2 a 1").contains("\"twice\""));
    done(&mut shell, "drop index m twice");
    done(&mut shell, "insert m 2 2 a 1");
    done(&mut shell, "alter m drop u");
    done(&mut shell, ".mode jsonl");
    assert_eq!(done(&mut shell, "get m 1 2"), "{\"a\":1,\"b\":2,\"c\":\"1.50\"}\n");
}

#[test]
fn the_database_explains_itself() {
    let db = numbers(100);
    let mut shell = Shell::new(&db, &GO_ON);
    assert_eq!(done(&mut shell, "transactions"), "no transaction is open\n");
    done(&mut shell, "begin read");
    assert!(done(&mut shell, "transactions").contains("read-only, open for"));
    assert!(done(&mut shell, "stats").contains("\"live_bytes\""));
    let space = done(&mut shell, "explain space");
    let line = space.lines().find(|line| line.starts_with("n ")).expect("a line for the table");
    assert_eq!(line.split_whitespace().nth(1), Some("100"), "{space}");
    done(&mut shell, "rollback");
    done(&mut shell, "delete n 0 3");
    let space = done(&mut shell, "explain space");
    let line = space.lines().find(|line| line.starts_with("n ")).expect("a line for the table");
    assert_eq!(line.split_whitespace().nth(1), Some("99"), "{space}");
    assert!(space.contains("\namplification "), "{space}");
    done(&mut shell, ".timing on");
    assert!(done(&mut shell, "count n").starts_with("99\n0.0"));
    assert!(done(&mut shell, ".help").lines().count() > 26);
}

#[test]
fn prepared_transactions_are_listed_and_decided() {
    let db = numbers(2);
    let mut shell = Shell::new(&db, &GO_ON);
    assert_eq!(done(&mut shell, "prepared"), "no transaction is prepared\n");
    let table = db.table("n").expect("the table");
    for (n, name) in [(7u32, &b"transfer 5"[..]), (8, &b"\x01'"[..]), (9, &b"kept"[..])] {
        // Readers do not wait for it.
        let mut txn = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
        txn.insert(&table, &[n.into(), n.into(), "new".into()]).expect("a row");
        drop(db.prepare(txn, name).expect("prepared"));
    }
    assert_eq!(done(&mut shell, "PREPARED"), "\\x01\\'\nkept\n\"transfer 5\"\n");
    // The open transaction is another one.
    done(&mut shell, "begin");
    assert_eq!(done(&mut shell, "commit prepared \"transfer 5\""), "committed\n");
    assert_eq!(done(&mut shell, r"rollback prepared \x01\'"), "rolled back\n");
    assert!(shell.is_in_transaction());
    done(&mut shell, "rollback");
    assert_eq!(done(&mut shell, "prepared"), "kept\n");
    assert_eq!(done(&mut shell, "count n"), "3\n");
    for (command, message) in [
        ("commit prepared", "`commit prepared NAME`"),
        ("commit prepared a b", "`commit prepared NAME`"),
        ("rollback prepared \"transfer 5\"", "no prepared transaction is called \"transfer 5\""),
        ("prepared kept", "`prepared` stands alone"),
    ] {
        assert!(refused(&mut shell, command).contains(message), "{command}");
    }
}
