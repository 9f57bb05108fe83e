//! `Stats::dram_bytes` is what the engine holds, and memory of a large
//! transaction goes back to the system. Both are measured in a process of their
//! own, by an allocator that counts.

#![allow(unsafe_code)] // an allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};

use pantile::{Database, Durability, IndexDef, Options, Table, TableDef, Transaction, Type};
use pantile_testkit::{Patience, ScratchDir, run_case};

const CHILD: &str = "PANTILE_TEST_COUNTED";

/// Bytes that are allocated now.
static LIVE: AtomicI64 = AtomicI64::new(0);

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as i64 - layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(start, layout, size) }
    }
}

/// Private memory of the process that is in use, in bytes.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("RssAnon");
    line.split_whitespace().nth(1).expect("a number").parse::<i64>().expect("a number") << 10
}

/// Sizes of the database that are small beside what is measured.
const SLACK: f64 = 300_000.0;
/// Ids of deleted rows are allocated, and counted with the anchors: at most two words for each.
const COUNTED_TWICE: f64 = (ROWS / 2 * 16) as f64;

struct Measured<'d> {
    db: &'d Database,
    before: i64,
}

impl Measured<'_> {
    /// Asserts that the statistics are right. Indexes, their free nodes and anchors lie in
    /// mappings of their own; everything else is allocated. Returns what is held.
    fn check(&self, what: &str) -> i64 {
        // The worker gives memory back meanwhile, such as that of tiles which nobody needs any more.
        let patience = Patience::new();
        let (allocated, stats) = loop {
            let (live, stats) = (LIVE.load(Ordering::Relaxed), self.db.stats());
            if (LIVE.load(Ordering::Relaxed) - live).abs() < 64 << 10 {
                break (live - self.before, stats);
            }
            patience.check(|| format!("{what}: memory comes and goes all the time"));
        };
        let mapped = stats.index_bytes + stats.free_node_bytes + stats.anchor_bytes;
        let held = (allocated as u64 + mapped) as f64;
        let said = stats.dram_bytes as f64;
        println!("{what}: {held} bytes, dram_bytes {said}; {stats:?}");
        let allowed = held * 0.1 + SLACK;
        let is_right = (-allowed - COUNTED_TWICE..=allowed).contains(&(said - held));
        assert!(is_right, "{what}: {held} bytes held, {said} reported");
        held as i64
    }
}

fn tables(db: &Database) -> [Table; 3] {
    let plain = TableDef::new("plain").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let wide = TableDef::new("wide")
        .column("id", Type::U64)
        .column("name", Type::String(200))
        .primary_key(["id"])
        .index(IndexDef::new("by_name", ["name"]));
    let one =
        TableDef::new("one").column("id", Type::U64).column("text", Type::String(2000)).primary_key(["id"]);
    [plain, wide, one].map(|def| db.create_table(def).expect("create"))
}

/// A transaction that writes each of them takes more than glibc may keep.
const ROWS: u64 = 300_000;
/// Times that one row is written: 30 MB, if each is kept.
const AGAIN: u64 = 30_000;

/// One row, written again and again by one transaction: in the end with savepoints that
/// come and go, and one that stays.
fn write_again(measured: &Measured<'_>, table: &Table) {
    let name = |id: u64| format!("{id:01000}");
    let before = measured.check("before a row is written again");
    let check = |what: &str| {
        let held = measured.check(what) - before;
        assert!(held < 2 << 20, "{what}: {held} bytes are held for one row");
    };
    let mut txn = measured.db.begin().expect("begin");
    txn.insert(table, &[0u64.into(), name(0).as_str().into()]).expect("insert");
    let write = |txn: &mut Transaction, id: u64| {
        assert!(txn.update(table, &[0u64.into()], &[(1, name(id).as_str().into())]).expect("update"));
    };
    (0..AGAIN).for_each(|id| write(&mut txn, id));
    check("in a transaction that writes a row again and again");
    for id in 0..AGAIN {
        let savepoint = txn.savepoint();
        write(&mut txn, id);
        if id % 2 == 0 {
            txn.rollback_to(savepoint).expect("known");
        }
        txn.release(savepoint);
    }
    check("with a savepoint for each write");
    let savepoint = txn.savepoint();
    (0..AGAIN).for_each(|id| write(&mut txn, id));
    check("after one savepoint");
    for id in 0..AGAIN {
        assert!(txn.delete(table, &[0u64.into()]).expect("delete"));
        txn.insert(table, &[0u64.into(), name(id % 5).as_str().into()]).expect("insert");
    }
    check("with deletions in between");
    txn.rollback_to(savepoint).expect("known");
    let row = txn.get(table, &[0u64.into()]).expect("get").expect("a row");
    assert_eq!(row.get::<&str>(1).expect("text"), name(AGAIN - 1));
    for id in 1..AGAIN {
        txn.insert(table, &[id.into(), name(id).as_str().into()]).expect("insert");
    }
    txn.rollback_to(savepoint).expect("known");
    let held = measured.check("after going back to it");
    assert!(held - before < 20 << 20, "{} bytes are held for rows that were taken back", held - before);
    txn.rollback();
}

/// Does nothing unless it is started for it.
#[test]
fn child_that_counts() {
    let Some(place) = std::env::var_os(CHILD) else { return };
    // Images are made at times of their own, and what they take comes and goes.
    let options = Options::new().durability(Durability::None).streams(2).index_image(false);
    let before = LIVE.load(Ordering::Relaxed);
    let db = options.open(&place).expect("open");
    let measured = Measured { db: &db, before };
    measured.check("empty");
    let [plain, wide, one] = tables(&db);
    write_again(&measured, &one);
    let row = |id: u64| [id.into(), (id % 7).into()];
    for from in (0..ROWS).step_by(100) {
        db.run(|txn| (from..from + 100).try_for_each(|id| txn.insert(&plain, &row(id)))).expect("fill");
    }
    measured.check("filled by small transactions");

    let long = db.begin_read().expect("begin");
    for from in (0..ROWS).step_by(100) {
        db.run(|txn| (from..from + 100).try_for_each(|id| txn.upsert(&plain, &row(id)).map(|_| ())))
            .expect("update");
    }
    measured.check("with a reader that holds all tiles");
    drop(long);

    let name = |id: u64| format!("{id:070}");
    let mut txn = db.begin().expect("begin");
    for id in 0..ROWS / 2 {
        txn.insert(&wide, &[id.into(), name(id).as_str().into()]).expect("insert");
    }
    measured.check("in a large transaction");
    txn.commit().expect("commit");
    measured.check("after its commit");

    let large = resident();
    let mut txn = db.begin().expect("begin");
    for id in 0..ROWS {
        txn.upsert(&plain, &row(id)).expect("upsert");
        txn.delete(&plain, &row(id)[..1]).expect("delete");
    }
    measured.check("in a large transaction that deletes");
    txn.rollback();
    measured.check("after its rollback");
    let kept = resident() - large;
    println!("{kept} bytes stay resident after a large transaction");
    // glibc keeps up to 64 MB in the arena of a thread.
    assert!(kept < 65 << 20, "{kept} bytes stay resident after a large transaction");

    let mut txn = db.begin().expect("begin");
    for id in 0..ROWS / 2 {
        assert!(txn.delete(&wide, &[id.into()]).expect("delete"));
    }
    txn.commit().expect("commit");
    measured.check("with stale entries");
}

#[test]
fn dram_bytes_are_what_is_held() {
    let place = ScratchDir::new();
    let mut child = Command::new(std::env::current_exe().expect("this binary"));
    child.args(["--exact", "counted::child_that_counts", "--nocapture"]).env(CHILD, place.path());
    let output = run_case("counted", move || child.output().expect("run"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("with stale entries"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    print!("{said}");
}
