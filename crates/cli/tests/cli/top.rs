//! Looking at a database that another process has open.

use std::path::Path;
use std::process::{Command, Output};

use pantile::{Database, Error, TableDef, TransactionOptions, Type, Value};
use pantile_testkit::Patience;

fn pantile(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pantile")).args(args).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn refused(args: &[&str], phrase: &str) {
    let output = pantile(args);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(1) && told.contains(phrase), "{args:?}: {told}");
    assert_eq!(told.lines().filter(|line| line.starts_with("pantile: ")).count(), 1, "{told}");
}

/// Waits until the command shows this of the database.
fn shown(dir: &str, args: &[&str], shows: impl Fn(&str) -> bool) -> String {
    let patience = Patience::new();
    loop {
        let output = pantile(&[&["top", dir], args].concat());
        let last = text(&output.stdout).to_owned();
        if output.status.success() && shows(&last) {
            return last;
        }
        patience.check(|| format!("it never shows that: {last}"));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// This process has the database open, and the command is the other one.
#[test]
fn a_holder_shows_in_another_process() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("shop");
    let name = dir.to_str().unwrap();
    refused(&["top", name], "nobody has the database open");
    let db = Database::open(&dir).expect("open");
    let def = TableDef::new("orders").column("id", Type::U64).column("data", Type::Bytes(400));
    let orders = db.create_table(def.primary_key(["id"])).expect("create");
    let write = || {
        let row = |id: u64| [Value::UInt(id), Value::Bytes(&[7; 300])];
        db.run(|txn| (0..200).try_for_each(|id| txn.upsert(&orders, &row(id)).map(|_| ()))).expect("write");
    };
    write();
    let report = db.begin_with(TransactionOptions::new().read_only(true).name("nightly")).expect("begin");
    write();
    // What it holds is counted anew now and then.
    let held = |page: &str| {
        let page: serde_json::Value = serde_json::from_str(page).unwrap_or_default();
        page["transactions"][0]["held_bytes"].as_u64().unwrap_or(0)
    };
    let json = shown(name, &["--json", "-"], |page| held(page) >= 200 * 300);
    let page = shown(name, &["--once"], |page| page.contains("nightly"));
    for part in ["orders", "cli/top.rs", "commits/s", "p99", "full in", "room", "holds"] {
        assert!(page.contains(part) || part == "full in" && page.contains("not growing"), "{part} in {page}");
    }
    assert!(page.contains(&format!("process {}", std::process::id())), "{page}");
    let page: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let holder = &page["transactions"][0];
    assert_eq!((&holder["name"], &holder["id"]), (&"nightly".into(), &report.id().get().into()));
    assert_eq!(holder["tables"][0]["table"], "orders");
    assert!(page["figures"]["commits"].as_u64() >= Some(2), "{page}");
    assert!(page["history"]["seconds"].as_array().is_some_and(|samples| !samples.is_empty()));
    drop(report);
    shown(name, &["--once"], |page| page.contains("no transaction is open"));
    db.close().expect("close");
    refused(&["top", name, "--once"], "nobody has the database open");
}

const HOLDER: &str = "PANTILE_TEST_TOP_HOLDER";

/// Opens a database and holds it until it is killed; does nothing otherwise.
#[test]
fn top_holder() {
    let Some(dir) = std::env::var_os(HOLDER) else { return };
    let _db = Database::open(dir).expect("open");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_dead_process_is_said_to_be_dead() {
    let place = tempfile::tempdir().unwrap();
    let name = place.path().to_str().unwrap();
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "top::top_holder", "--nocapture"])
        .env(HOLDER, place.path())
        .spawn()
        .expect("a child");
    let page = shown(name, &["--once"], |page| page.contains("at rest"));
    assert!(page.contains(&format!("in process {},", child.id())), "{page}");
    is_refused_by_name(place.path(), child.id());
    child.kill().expect("kill");
    child.wait().expect("wait");
    let gone = format!(
        "process {}, which had the database in {name} open, has ended without closing it",
        child.id()
    );
    refused(&["top", name, "--once"], &gone);
    refused(&["top", name, "--json", "-"], "its last statistics are");
    drop(Database::open(place.path()).expect("it can be opened"));
}

/// The message of a lock that another process has names it by its command.
fn is_refused_by_name(dir: &Path, process: u32) {
    let Err(error @ Error::AlreadyOpen { .. }) = Database::open(dir) else { panic!("it is open already") };
    let command = std::fs::read_to_string(format!("/proc/{process}/comm")).expect("it runs");
    let told = error.to_string();
    for part in [format!("in process {process} ({})", command.trim_end()), dir.display().to_string()] {
        assert!(told.contains(&part), "{part} in {told}");
    }
}
