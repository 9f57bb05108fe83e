//! Reading damaged files: whatever is damaged, what is whole is read, no row is
//! read that was never committed, and the copy has the same rows.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use pantile::tools::Salvaged;
use pantile::{
    CheckOptions, Database, Durability, Error, MediumKind, Options, Result, TableDef, Type, Value, check,
    salvage,
};
use pantile_testkit::{Bed, Home, Random, ScratchDir, fails, from_env};

use super::hurt::{Hurt, any_bit, any_forgery, any_other};
use super::layout::What;
use super::subject::{Subject, read_tables};
use super::{Bench, Note, Outcome, campaign};

type Rows = BTreeMap<(usize, u64), (u64, String)>;

/// Most rows that a transaction of a subject writes.
const OF_TRANSACTION: usize = 4;

fn open(path: &Path) -> Result<Salvaged> {
    salvage(path, &CheckOptions::new().threads(1))
}

/// The rows of a salvaged database, and of the copy of it.
fn rows(found: Salvaged) -> Rows {
    let rows = read_tables(found.database());
    let refused = found.database().begin().expect("begin").commit();
    refused.expect("a transaction that only reads");
    let new = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let report = found.copy_into(&new, &|_, _| ControlFlow::Continue(())).expect("copy");
    let copied = read_tables(&new);
    assert_eq!(copied, rows, "{report:#?}");
    rows
}

fn differences(subject: &Subject, rows: &Rows) -> Vec<(usize, u64)> {
    let names = subject.rows.keys().chain(rows.keys());
    let mut names: Vec<_> = names.filter(|name| subject.rows.get(name) != rows.get(name)).copied().collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Every row was committed once.
fn are_committed(subject: &Subject, rows: &Rows) {
    for (name, row) in rows {
        assert!(subject.was_committed(*name, row), "{name:?} never was {row:?}");
    }
}

fn expect_of_bit(bench: &Bench<'_>, hurt: &Hurt, rows: &Rows) -> Outcome {
    let subject = bench.subject;
    are_committed(subject, rows);
    let touched = subject.parts.iter().find(|part| hurt.touches(subject, &part.bytes));
    let lost = differences(subject, rows);
    match touched.map(|part| part.what) {
        Some(What::Content) => {
            let has_table = |table| rows.keys().any(|name| name.0 == table);
            let of_tables = lost.iter().filter(|name| has_table(name.0)).count();
            assert!(of_tables <= OF_TRANSACTION, "{lost:?} for one content");
        }
        _ => assert!(lost.is_empty(), "{touched:?}: {lost:?}"),
    }
    if lost.is_empty() { Outcome::Harmless } else { Outcome::Lost }
}

#[test]
fn a_flipped_bit_costs_a_row_at_most() {
    campaign("flipped bits to salvage", from_env("PANTILE_FLIPS", 200), |bench, random| {
        let hurt = any_bit(bench.subject, random);
        let _note = Note(hurt.name.clone());
        bench.hurt(&hurt);
        let rows = rows(open(bench.path()).expect("anything can be salvaged"));
        bench.heal(&hurt);
        expect_of_bit(bench, &hurt, &rows)
    });
}

#[test]
fn no_lost_or_misdirected_write_brings_up_a_wrong_row() {
    campaign("other damages to salvage", from_env("PANTILE_DAMAGES", 120), |bench, random| {
        let hurt = any_other(bench.subject, random);
        let _note = Note(hurt.name.clone());
        bench.hurt(&hurt);
        let found = open(bench.path()).map(rows);
        bench.heal(&hurt);
        match found {
            Ok(rows) => {
                are_committed(bench.subject, &rows);
                let is_whole = differences(bench.subject, &rows).is_empty();
                if is_whole { Outcome::Harmless } else { Outcome::Lost }
            }
            // The first chunk is gone, or all of the file.
            Err(Error::NoDatabase(_) | Error::NotADatabase { .. } | Error::Damaged { .. }) => {
                Outcome::Refused
            }
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn forged_bytes_make_no_salvage_panic() {
    campaign("forgeries to salvage", from_env("PANTILE_FORGERIES", 100), |bench, random| {
        let hurt = any_forgery(bench.subject, random);
        let _note = Note(hurt.name.clone());
        bench.hurt(&hurt);
        let found = open(bench.path()).map(|found| super::look::at_rows(found.database()));
        bench.heal(&hurt);
        if found.is_ok() { Outcome::Harmless } else { Outcome::Refused }
    });
}

/// Everything that leads to contents may be lost, one thing at a time.
#[test]
fn what_leads_to_contents_is_found_otherwise() {
    let subjects = [Subject::closed(), Subject::killed(), Subject::holes()];
    for subject in &subjects {
        let bench = Bench::new(subject);
        let try_it = |what: &str, hurt: Hurt| {
            let _note = Note(format!("{what} of {}", subject.name));
            bench.hurt(&hurt);
            assert!(look_refuses(&bench), "{what}: opening does not notice");
            let found = open(bench.path()).expect("salvage");
            assert!(!found.lost().is_empty(), "{what}: nothing is reported");
            let rows = rows(found);
            bench.heal(&hurt);
            assert_eq!(differences(subject, &rows), [], "{what} of {}", subject.name);
        };
        let junk = |at: usize, len: usize| Hurt::over(subject, at, vec![0xA5; len]);
        try_it("the superblock", junk(0, 64));
        let headers = subject.parts.iter().filter(|part| part.what == What::ChunkHeader);
        for header in headers.take(4) {
            try_it("a chunk header", junk(header.bytes.start, 32));
        }
        for descriptor in subject.parts.iter().filter(|part| part.what == What::Descriptor).take(8) {
            try_it("a descriptor", junk(descriptor.bytes.start, 32));
        }
    }
}

/// A line that reads as zeros looks like one that was never written.
#[test]
fn lines_that_a_killed_database_has_lost_are_read_from_their_copies() {
    for subject in [Subject::killed(), Subject::frozen()] {
        let bench = Bench::new(&subject);
        let lines = subject.parts.windows(2).filter(|pair| pair[1].what == What::Copy);
        for (n, line) in lines.map(|pair| &pair[0].bytes).enumerate() {
            let _note = Note(format!("the line at {} of {}", line.start, subject.name));
            let len = if n % 4 == 0 { 512 } else { 64 };
            let hurt = Hurt::over(&subject, line.start / len * len, vec![0; len]);
            bench.hurt(&hurt);
            let report = check(bench.path(), &CheckOptions::new()).expect("check");
            let rows = bench.read().expect("read");
            bench.heal(&hurt);
            assert!(report.is_sound() && report.notices > 0, "{report:#?}");
            assert_eq!(rows, subject.rows);
        }
    }
    let subject = Subject::closed();
    let bench = Bench::new(&subject);
    let line = subject.parts.iter().find(|part| part.what == What::Descriptor).expect("a block");
    bench.hurt(&Hurt::over(&subject, line.bytes.start, vec![0; 64]));
    assert!(look_refuses(&bench), "opening does not notice");
    assert_eq!(differences(&subject, &rows(open(bench.path()).expect("salvage"))), []);
}

fn look_refuses(bench: &Bench<'_>) -> bool {
    super::look::open(bench.path()).is_err()
}

#[test]
fn rows_above_the_watermark_need_their_whole_transaction() {
    let subject = Subject::killed();
    let bench = Bench::new(&subject);
    let mut random = Random::new(from_env("PANTILE_FLIP_SEED", 5), 0);
    // Without any state record every transaction is judged by its contents.
    for _ in 0..10 {
        let records: Vec<_> = subject.parts.iter().filter(|part| part.what == What::Record).collect();
        let edits =
            records.iter().map(|part| (part.bytes.start, vec![random.below(256) as u8; 80])).collect();
        let hurt = Hurt { name: "all records".into(), edits, len: subject.data.len() };
        bench.hurt(&hurt);
        let rows = rows(open(bench.path()).expect("salvage"));
        bench.heal(&hurt);
        are_committed(&subject, &rows);
        assert!(!rows.is_empty());
    }
}

/// Its rows stay until nobody can read them any more.
#[test]
fn rows_of_a_dropped_table_are_no_loss() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let db = home.open();
    let def = |name: &str| TableDef::new(name).column("id", Type::U32).column("long", Type::Bytes(1 << 20));
    let [kept, dropped] = ["kept", "dropped"].map(|name| {
        let table = db.create_table(def(name).primary_key(["id"])).expect("create");
        let row = [1u32.into(), Value::Bytes(&[7; 100_000])];
        db.run(|txn| txn.insert(&table, &row)).expect("insert");
        table
    });
    let reader = db.begin_read().expect("begin");
    assert!(reader.get(&dropped, &[1u32.into()]).expect("get").is_some());
    db.drop_table("dropped").expect("drop");
    drop((kept, dropped));
    home.kill(db, vec![reader]);
    let found = open(&home.path()).expect("salvage");
    assert!(found.lost().is_empty(), "{:#?}", found.lost());
    assert_eq!(found.database().tables(), ["kept"]);
    drop(found);

    // One whose definition is lost, before its rows.
    let data = home.path().join("pantile.data");
    let mut bytes = std::fs::read(&data).expect("read");
    let name = bytes.windows(6).position(|window| window == b"\"kept\"").expect("the definition");
    bytes[name + 1] ^= 1;
    std::fs::write(&data, bytes).expect("write");
    let lost = open(&home.path()).expect("salvage").lost();
    let of_rows = lost.iter().filter(|lost| lost.what.contains("whose definition is lost"));
    // The second table has the pieces of the long value.
    assert_eq!(of_rows.count(), 2, "{lost:#?}");
}

#[test]
fn a_salvaged_database_takes_no_writes_and_keeps_its_files() {
    let place = ScratchDir::new();
    let path = place.path().join("db");
    let def = TableDef::new("t").column("id", Type::U32).primary_key(["id"]);
    let db = Database::open(&path).expect("open");
    let t = db.create_table(def.clone()).expect("create");
    db.run(|txn| txn.insert(&t, &[1u32.into()])).expect("insert");
    drop((db, t));
    let before = std::fs::read(path.join("pantile.data")).expect("read");
    {
        let found = open(&path).expect("salvage");
        let db = found.database();
        let t = db.table("t").expect("table");
        fails!(db.run(|txn| txn.insert(&t, &[2u32.into()])), Error::ReadOnly, "read-only");
        fails!(db.create_table(TableDef { name: "u".into(), ..def }), Error::ReadOnly, "read-only");
        fails!(db.drop_table("t"), Error::ReadOnly, "read-only");
        fails!(db.drop_index(&t, "none"), Error::UnknownIndex { .. }, "no index");
        fails!(Database::open(&path), Error::AlreadyOpen { .. }, "in this process");
        assert!(found.lost().is_empty(), "{:?}", found.lost());
    }
    assert!(std::fs::read(path.join("pantile.data")).expect("read") == before);
    drop(Database::open(&path).expect("free"));
    fails!(open(&place.path().join("none")), Error::NoDatabase(_), "no database");
}
