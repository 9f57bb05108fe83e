//! The statistics page beside the data file.

use std::fs;

use pantile::stats::Page;
use pantile::tools::watch;
use pantile::{Database, Error, MediumKind, Options, TableDef, TransactionOptions, Type, Value};
use pantile_testkit::{ScratchDir, await_that, fails};

use super::rewrite;

const FILE: &str = "pantile.stats";

fn rows(place: &ScratchDir) -> (Database, pantile::Table) {
    let db = Database::open(place.path()).expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(400));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    (db, table)
}

/// The first page that shows this.
fn page_with(place: &ScratchDir, shows: impl Fn(&Page) -> bool) -> Page {
    let mut found = None;
    await_that("the page shows it", || {
        found = watch(place.path()).ok().filter(|page| shows(page));
        found.is_some()
    });
    found.expect("it was found")
}

#[test]
fn a_page_shows_what_the_database_does() {
    let place = ScratchDir::new();
    let (db, table) = rows(&place);
    rewrite(&db, &table, 50, 1);
    let report = db.begin_with(TransactionOptions::new().read_only(true).name("report")).expect("begin");
    rewrite(&db, &table, 50, 2);
    let page = page_with(&place, |page| page.figures.commits >= db.stats().commits);
    assert_eq!((page.process, page.medium.as_str()), (std::process::id(), "file"));
    assert!(page.is_process_running());
    assert!(page.figures.syncs > 0 && page.figures.commit_max_nanos >= page.figures.commit_p50_nanos);
    let table = page.tables.iter().find(|space| space.table == "t").expect("the table");
    assert_eq!(*table, db.space_by_table().into_iter().find(|space| space.table == "t").expect("the table"));
    let [holder] = &page.transactions[..] else { panic!("{:?}", page.transactions) };
    assert_eq!((holder.id, holder.name.as_str()), (report.id().get(), "report"));
    assert!(holder.place.contains("insight/page.rs") && holder.held_bytes > 50 * 200, "{holder:?}");
    assert_eq!(holder.tables[0].table, "t");
    assert!(!page.history.seconds.is_empty());
    // Nothing happens any more, and the page says so and stays.
    let quiet = page_with(&place, |page| page.is_quiet);
    assert_eq!(quiet.transactions.len(), 1);
    drop(report);
    page_with(&place, |page| page.transactions.is_empty());
}

/// A transaction that begins in a database at rest shows, although it writes
/// nothing.
#[test]
fn a_beginning_wakes_the_page() {
    let place = ScratchDir::new();
    let (db, _) = rows(&place);
    page_with(&place, |page| page.is_quiet);
    let reader = db.begin_read().expect("begin");
    let page = page_with(&place, |page| page.figures.running == 1);
    assert_eq!(page.transactions[0].id, reader.id().get());
}

#[test]
fn what_is_no_page_is_not_shown() {
    let place = ScratchDir::new();
    let refused = |part: &str| {
        fails!(watch(place.path()), Error::NoStatistics { .. }, "no statistics of a running database", part);
    };
    refused("nobody has the database open");
    let (db, _) = rows(&place);
    let page = page_with(&place, |page| page.is_quiet);
    let path = place.path().join(FILE);
    let whole = fs::read(&path).expect("read");
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    fs::write(&path, &damaged).expect("write");
    refused("its checksum does not fit");
    fs::write(&path, &whole[..whole.len() / 2]).expect("write");
    refused("its checksum does not fit");
    fs::write(&path, vec![b'x'; 5000]).expect("write");
    refused("is not a statistics page");
    let mut later = whole.clone();
    later[8] = 99;
    fs::write(&path, &later).expect("write");
    refused("has version 99");
    // None of it matters to the database, which writes the next page over it.
    drop(db.begin());
    page_with(&place, |again| again.written_millis > page.written_millis);
    fs::remove_file(&path).expect("remove");
    db.run(|txn| txn.insert(&db.table("t")?, &[77u64.into(), Value::Bytes(b"x")])).expect("insert");
    refused("which publishes none");
    db.close().expect("close");
    let db = Database::open(place.path()).expect("open");
    let txn = db.begin_read().expect("begin");
    assert!(txn.get(&db.table("t").expect("table"), &[Value::UInt(77)]).expect("get").is_some());
}

#[test]
fn the_page_goes_when_the_database_is_closed() {
    let place = ScratchDir::new();
    let (db, table) = rows(&place);
    page_with(&place, |_| true);
    rewrite(&db, &table, 10, 1);
    db.close().expect("close");
    assert!(!place.path().join(FILE).exists());
    fails!(watch(place.path()), Error::NoStatistics { .. }, "nobody has the database open");
}

/// What a dead process has left is known by its process, and replaced.
#[test]
fn a_page_of_another_process_is_replaced() {
    let place = ScratchDir::new();
    let (db, _) = rows(&place);
    page_with(&place, |page| page.is_quiet);
    let mut left = fs::read(place.path().join(FILE)).expect("read");
    db.close().expect("close");
    left.extend([9; 3000]);
    fs::write(place.path().join(FILE), &left).expect("write");
    let left = watch(place.path()).expect("a page");
    let db = Database::open(place.path()).expect("open");
    let page = page_with(&place, |page| page.opened_millis > left.opened_millis);
    assert!(page.is_process_running());
    drop(db);
}

#[test]
fn nothing_is_published_unless_wanted() {
    let place = ScratchDir::new();
    let db = Options::new().publish_stats(false).open(place.path()).expect("open");
    await_that("a sample", || !db.history().seconds.is_empty());
    assert!(!place.path().join(FILE).exists());
    fails!(watch(place.path()), Error::NoStatistics { .. }, "open in this process, which publishes none");
    let dram = ScratchDir::new();
    let db = Options::new().medium(MediumKind::Dram).open(dram.path()).expect("open");
    await_that("a sample", || !db.history().seconds.is_empty());
    assert_eq!(fs::read_dir(dram.path()).expect("read").count(), 0);
}
