//! The program `pantile-sql`, beside a process that has the database open.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pantile::{Database, TableDef, Type, Value};
use pantile_testkit::ScratchDir;

fn shop(path: &Path) -> Database {
    let db = Database::open(path).expect("open");
    let def = TableDef::new("orders").column("id", Type::U32).nullable("note", Type::String(20));
    let def = def.column("price", Type::Decimal { precision: 8, scale: 2 }).column("raw", Type::Bytes(4));
    let orders = db.create_table(def.primary_key(["id"])).expect("create");
    let price = |text: &str| Value::Decimal(text.parse().expect("a decimal"));
    let row =
        |id: u32, note: Value<'static>, text: &str| [id.into(), note, price(text), Value::Bytes(&[0xff, 7])];
    let rows = [row(1, "a, b".into(), "2.50"), row(2, Value::Null, "0.25"), row(3, "".into(), "10.00")];
    db.run(|txn| txn.insert_many(&orders, rows.iter())).expect("fill");
    db
}

fn sql(path: &Path, arguments: &[&str], input: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pantile-sql"));
    program.arg(path).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = program.spawn().expect("start");
    program.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("write");
    program.wait_with_output().expect("wait")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn statements_from_the_command_line_and_from_a_script() {
    let place = ScratchDir::new();
    // Another process has it open: this one.
    let db = shop(place.path());
    let done =
        sql(place.path(), &["--mode", "csv", "-c", "SELECT * FROM orders", "-c", "SELECT 1 AS one"], "");
    assert!(done.status.success(), "{done:?}");
    assert_eq!(
        text(&done.stdout),
        "id,note,price,raw\n1,\"a, b\",2.50,ff07\n2,,0.25,ff07\n3,,10.00,ff07\none\n1\n"
    );
    let script =
        "-- what is dear\nSELECT id,\n  price FROM orders\nWHERE price > 1.00 ORDER BY price DESC;\n\n";
    let done = sql(place.path(), &["--mode", "jsonl"], script);
    assert!(done.status.success(), "{done:?}");
    let lines: Vec<_> = text(&done.stdout).lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("{\"id\":3,\"price\":"), "{lines:?}");
    let done = sql(place.path(), &["-c", "SELECT sum(price) AS total FROM orders"], "");
    assert_eq!(text(&done.stdout), "+-------+\n| total |\n+-------+\n| 12.75 |\n+-------+\n");
    let done = sql(place.path(), &["-c", "SELECT id FROM orders WHERE id > 7"], "");
    assert_eq!(text(&done.stdout), "+----+\n| id |\n+----+\n+----+\n");
    db.close().expect("close");
}

#[test]
fn a_semicolon_ends_a_statement_wherever_it_is() {
    let place = ScratchDir::new();
    shop(place.path()).close().expect("close");
    let statements =
        "SELECT 1 AS a; SELECT 'x;\ny''' AS b -- here; nothing ends\n; SELECT 2 /* nor; here */ AS \"c;\";";
    for (arguments, input) in [
        (&["--mode", "csv"][..], statements),
        (&["--mode", "csv", "-c", statements], ""),
        (&["--mode", "csv", "-c", statements.trim_end_matches(';')], ""),
    ] {
        let done = sql(place.path(), arguments, input);
        assert!(done.status.success(), "{done:?}");
        assert_eq!(text(&done.stdout), "a\n1\nb\n\"x;\ny'\"\nc;\n2\n");
    }
    // Lines of a string are as they were written.
    for (arguments, input) in
        [(&[][..], "SELECT 'a  \n\n.quit\nb ' AS s;\n"), (&["-c", "SELECT 'a  \n\n.quit\nb ' AS s"], "")]
    {
        let done = sql(place.path(), &[&["--mode", "csv"], arguments].concat(), input);
        assert_eq!(text(&done.stdout), "s\n\"a  \n\n.quit\nb \"\n", "{done:?}");
    }
    // What comes before one that is not whole is run.
    let done = sql(place.path(), &["--mode", "csv"], "SELECT 1 AS a; SELECT 2");
    assert_eq!((done.status.code(), text(&done.stdout)), (Some(1), "a\n1\n"), "{done:?}");
}

#[test]
fn what_is_wrong_is_said() {
    let place = ScratchDir::new();
    shop(place.path()).close().expect("close");
    for (arguments, input, code, said) in [
        (&["-c", "SELECT * FROM nothing", "-c", "SELECT 1"][..], "", 1, "nothing"),
        (&["-c", "DELETE FROM orders"], "", 1, "not supported"),
        (
            &[],
            "SELECT id\nFROM orders\n",
            1,
            "the last statement has no semicolon at its end; it was not run",
        ),
        (&["--mode", "xml"], "", 2, "xml"),
    ] {
        let done = sql(place.path(), arguments, input);
        assert_eq!(done.status.code(), Some(code), "{done:?}");
        assert!(text(&done.stderr).contains(said) && done.stdout.is_empty(), "{done:?}");
    }
    let missing = sql(&place.path().join("missing"), &["-c", "SELECT 1"], "");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).starts_with("pantile-sql: "), "{missing:?}");
}

/// It is no failure that nobody reads the answer, but it is one if statements are left.
#[test]
fn output_that_nobody_reads_hides_no_statement() {
    let place = ScratchDir::new();
    shop(place.path()).close().expect("close");
    let run = |arguments: &[&str], input: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pantile-sql"));
        program.arg(place.path()).args(arguments).stdin(Stdio::piped()).stderr(Stdio::piped());
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut program = program.stdout(writer).spawn().expect("start");
        program.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("write");
        let ended = program.wait_with_output().expect("wait");
        (ended.status.code(), text(&ended.stderr).contains("not all statements were run"))
    };
    let (one, two) = ("SELECT id FROM orders;", "SELECT nosuch FROM orders;");
    assert_eq!(run(&["-c", one], ""), (Some(0), false));
    assert_eq!(run(&["-c", one, "-c", two], ""), (Some(1), true));
    assert_eq!(run(&["-c", &format!("{one}{two}")], ""), (Some(1), true));
    assert_eq!(run(&[], &format!("{one}\n-- the end\n\n")), (Some(0), false));
    assert_eq!(run(&[], &format!("{one}\n{two}\n")), (Some(1), true));
}
