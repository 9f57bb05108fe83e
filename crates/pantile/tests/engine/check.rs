//! `check` and `inspect` report the true state of a database and do not change
//! it.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::format::fixture;
use crate::support::{PULSE, let_collect};
use pantile::tools::{BlockState, CheckReport, CheckStep, InspectedBlock, Severity};
use pantile::{
    BackupOptions, CheckOptions, Database, Error, IndexDef, MediumKind, Options, TableDef, Type, Value,
    check, inspect, restore, salvage,
};
use pantile_testkit::{Random, ScratchDir, SeedNote, eager, fails, seeds};

fn options() -> CheckOptions {
    CheckOptions::new().threads(2)
}

fn checked(path: &Path) -> CheckReport {
    check(path, &options()).expect("it can be checked")
}

fn sound(path: &Path) -> CheckReport {
    let report = checked(path);
    assert!(report.is_sound() && report.is_complete, "{report:#?}");
    report
}

/// A closed database that uses every part of the format.
fn made() -> (ScratchDir, PathBuf) {
    let dir = ScratchDir::new();
    let path = dir.path().join("db");
    fixture::make(&path).expect("make");
    (dir, path)
}

fn patch(path: &Path, at: u64, mask: u8) {
    use std::os::unix::fs::FileExt;
    let file = fs::OpenOptions::new().read(true).write(true).open(path.join("pantile.data")).expect("open");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("read");
    file.write_all_at(&[byte[0] ^ mask], at).expect("write");
}

/// The offset in the file of the first content in a block of a table.
fn content_of(path: &Path, table: &str) -> u64 {
    let seen = inspect(path, &options()).expect("inspect");
    let id = seen.tables.iter().find(|t| t.name.as_deref() == Some(table)).expect("the table").id;
    for chunk in &seen.chunks {
        // Blocks with a stride of 24 bytes are for tombstones.
        let holds_rows = |b: &InspectedBlock| b.table == id && b.fill > 0 && b.stride > 24;
        if let Some(n) = chunk.blocks.iter().position(holds_rows) {
            let head = if chunk.number == 0 { 64 << 10 } else { 0 };
            let blocks = u64::from(chunk.number) * (2 << 20) + head + 12_288;
            return blocks + n as u64 * u64::from(chunk.block_bytes) + 256;
        }
    }
    panic!("{table} has no contents");
}

#[test]
fn a_sound_database_is_sound_and_not_touched() {
    let (_dir, path) = made();
    let data = path.join("pantile.data");
    let state = || {
        let meta = data.metadata().expect("the file");
        let names: Vec<_> = fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name()).collect();
        (fs::read(&data).unwrap(), meta.modified().unwrap(), names)
    };
    let before = state();
    let report = sound(&path);
    assert!(report.was_closed && report.findings.is_empty(), "{report:#?}");
    // The definitions, and the pieces of the value, do not count.
    assert_eq!((report.tables, report.rows, report.values_out_of_line), (2, 7, 1));
    assert_eq!(report.index_entries, 7 + 2 * 4 + 3);
    let seen = inspect(&path, &options()).expect("inspect");
    assert_eq!((seen.damaged, seen.findings.len()), (0, 0));
    assert!(state() == before, "something was changed");
}

#[test]
fn an_open_database_is_refused() {
    let (_dir, path) = made();
    let db = Options::new().create(false).open(&path).expect("open");
    assert!(matches!(check(&path, &options()), Err(Error::AlreadyOpen { .. })));
    assert!(matches!(inspect(&path, &options()), Err(Error::AlreadyOpen { .. })));
    drop(db);
    sound(&path);
}

#[test]
fn a_database_that_is_being_checked_can_be_inspected_and_not_opened() {
    let (_dir, path) = made();
    let place = path.clone();
    let meanwhile = move |_, _, _| {
        assert!(inspect(&place, &options()).is_ok());
        assert!(matches!(Options::new().open(&place), Err(Error::AlreadyOpen { .. })));
        ControlFlow::Continue(())
    };
    assert!(check(&path, &options().progress(meanwhile)).expect("check").is_sound());
}

/// Whatever the step, nothing is left, and the same options serve again.
#[test]
fn what_reads_a_whole_file_ends_when_it_is_told_to() {
    let (dir, path) = made();
    let [backup, into] = ["backup", "into"].map(|name| dir.path().join(name));
    let db = Database::open(&path).expect("open");
    db.backup_to(&backup, &BackupOptions::new()).expect("backup");
    db.close().expect("close");
    let data = || fs::read(path.join("pantile.data")).expect("read");
    let before = data();
    for step in
        [CheckStep::Read, CheckStep::Survey, CheckStep::Recover, CheckStep::Contents, CheckStep::Tables]
    {
        let stops = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&stops);
        let options =
            options().progress(move |now, _, _| match now == step && seen.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        fails!(check(&path, &options), Error::Cancelled, "cancelled");
        fails!(restore(&backup, &into, &options), Error::Cancelled, "cancelled");
        assert!(!into.exists());
        let is_early = matches!(step, CheckStep::Read | CheckStep::Survey);
        assert_eq!(matches!(inspect(&path, &options), Err(Error::Cancelled)), is_early, "{step:?}");
        let recovers = is_early || step == CheckStep::Recover;
        assert_eq!(matches!(salvage(&path, &options), Err(Error::Cancelled)), recovers, "{step:?}");
        stops.store(false, Ordering::Relaxed);
        assert!(check(&path, &options).expect("check").is_sound());
    }
    let new = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let found = salvage(&path, &options()).expect("salvage");
    fails!(found.copy_into(&new, &|_, _| ControlFlow::Break(())), Error::Cancelled, "cancelled");
    assert!(data() == before, "something was changed");
}

#[test]
fn what_is_no_database_is_told() {
    let dir = ScratchDir::new();
    assert!(matches!(check(dir.path(), &options()), Err(Error::NoDatabase(_))));
    assert!(matches!(check(dir.path().join("none"), &options()), Err(Error::NoDatabase(_))));
    let data = dir.path().join("pantile.data");
    fs::write(&data, b"a poem, and not a database. ".repeat(1000)).expect("write");
    assert!(matches!(check(dir.path(), &options()), Err(Error::NotADatabase { .. })));
    let seen = inspect(dir.path(), &options()).expect("inspect");
    assert!(seen.format_version.is_none() && seen.superblock_problem.is_some());
    fs::write(&data, b"").expect("write");
    assert!(matches!(check(dir.path(), &options()), Err(Error::NoDatabase(_))));
    assert!(inspect(dir.path(), &options()).expect("inspect").is_blank);
}

#[test]
fn another_version_and_a_damaged_number_are_told_apart() {
    let (_dir, path) = made();
    // A bit of the version. The checksum proves that it was version 3.
    patch(&path, 8, 4);
    let report = checked(&path);
    assert_eq!((report.damaged, report.findings[0].place.offset), (1, Some(0)), "{report:#?}");
    // A bit of the checksum as well, so the version may be any.
    patch(&path, 60, 4);
    assert!(matches!(check(&path, &options()), Err(Error::FormatVersion { found: 7, .. })));
    assert_eq!(inspect(&path, &options()).expect("inspect").format_version, Some(7));
}

#[test]
fn damage_is_listed_with_every_place() {
    let (_dir, path) = made();
    let counter = content_of(&path, "counters");
    for at in [counter + 30, counter + 90, counter + 2000] {
        patch(&path, at, 1);
    }
    let report = checked(&path);
    assert!(!report.is_complete && report.damaged >= 2, "{report:#?}");
    let first = &report.findings[0];
    assert_eq!(
        (first.severity, first.place.offset, first.place.slot),
        (Severity::Damage, Some(counter), Some(0))
    );
    assert_eq!(first.place.table.as_deref(), Some("counters"));
    assert!(first.to_string().contains("\"counters\"") && first.what.contains("checksum"), "{first}");
    let one = check(&path, &options().limit_findings(1)).expect("check");
    assert_eq!((one.findings.len(), one.damaged), (1, report.damaged));
    assert_eq!(&one.findings[0], first);
    let seen = inspect(&path, &options()).expect("inspect");
    assert_eq!(seen.damaged, report.damaged);
    let damaged = |b: &InspectedBlock| b.state == BlockState::Damaged;
    assert!(seen.chunks.iter().flat_map(|c| &c.blocks).any(damaged));
}

#[test]
fn a_truncated_file_is_told_and_read_as_far_as_it_goes() {
    let (_dir, path) = made();
    let data = fs::OpenOptions::new().write(true).open(path.join("pantile.data")).expect("open");
    let len = data.metadata().expect("the file").len();
    data.set_len(len - 5000).expect("truncate");
    let report = checked(&path);
    assert!(report.findings.iter().any(|f| f.what.contains("not a multiple")), "{report:#?}");
    data.set_len(64 << 10).expect("truncate");
    let report = checked(&path);
    assert!(report.findings.iter().any(|f| f.what.contains("chunks are left")), "{report:#?}");
    for len in [128 << 10, 70_005, 66_000, 4096, 64, 63, 1, 0] {
        data.set_len(len).expect("truncate");
        let checked = check(&path, &options());
        let is_told = match checked {
            Ok(report) => !report.is_sound(),
            Err(Error::NoDatabase(_)) => len == 0,
            Err(error) => matches!(error, Error::NotADatabase { .. }) && len < 8,
        };
        assert!(is_told, "{len}");
        inspect(&path, &options()).expect("inspect");
    }
}

#[test]
fn a_descriptor_that_is_gone_is_missed_after_closing() {
    let (_dir, path) = made();
    let seen = inspect(&path, &options()).expect("inspect");
    let chunk = seen.chunks.iter().find(|c| !c.blocks.is_empty()).expect("a chunk");
    let n = chunk.blocks.iter().position(|b| b.state == BlockState::Open).expect("an open block");
    let at = u64::from(chunk.number) * (2 << 20) + (64 << 10) + 64 * (n as u64 + 1);
    let data = path.join("pantile.data");
    let whole = fs::read(&data).expect("read");
    // First a word of the line, then all of it.
    for len in [8, 64] {
        let mut bytes = whole.clone();
        bytes[at as usize..][..len].fill(0);
        fs::write(&data, bytes).expect("write");
        let report = checked(&path);
        assert!(report.findings.iter().any(|f| f.place.offset == Some(at)), "{len}: {report:#?}");
        assert!(matches!(Options::new().create(false).open(&path), Err(Error::Damaged { .. })));
    }
}

/// A list of many blocks continues in blocks of its own. No table gets one whose descriptor is lost.
#[test]
fn a_block_of_a_state_record_that_is_gone_is_missed() {
    let dir = ScratchDir::new();
    let path = dir.path().join("db");
    let db = Options::new().open(&path).expect("open");
    for n in 0..200u64 {
        let def = TableDef::new(format!("t{n}")).column("id", Type::U64).primary_key(["id"]);
        let table = db.create_table(def).expect("create");
        db.run(|txn| txn.insert(&table, &[n.into()])).expect("insert");
    }
    db.close().expect("close");
    sound(&path);
    let data = path.join("pantile.data");
    let whole = fs::read(&data).expect("read");
    let seen = inspect(&path, &options()).expect("inspect");
    let mut missed = 0;
    for chunk in &seen.chunks {
        let of_records = chunk.blocks.iter().enumerate().filter(|(_, b)| b.state == BlockState::Record);
        for (n, _) in of_records {
            let head = if chunk.number == 0 { 64 << 10 } else { 0 };
            let at = chunk.number as usize * (2 << 20) + head + 64 * (n + 1);
            let mut bytes = whole.clone();
            assert!(bytes[at..][..64].iter().any(|byte| *byte != 0), "its descriptor");
            bytes[at..][..64].fill(0);
            fs::write(&data, bytes).expect("write");
            let report = checked(&path);
            let opened = Options::new().create(false).open(&path);
            if let Err(error) = opened {
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
                assert!(error.to_string().contains("the state record continues"), "{error}");
                assert!(
                    report.findings.iter().any(|f| f.what.contains("the state record continues")),
                    "{report:#?}"
                );
                missed += 1;
            }
        }
    }
    assert!(missed > 0, "the record in force continues in none of the blocks");
}

#[test]
fn a_dropped_table_leaves_no_pieces() {
    let (_dir, path) = made();
    let db = Options::new().create(false).open(&path).expect("open");
    db.drop_table("everything").expect("drop");
    db.close().expect("close");
    let report = sound(&path);
    assert_eq!((report.notices, report.values_out_of_line), (0, 0), "{report:#?}");
}

fn tables(db: &Database) -> [pantile::Table; 2] {
    let wide = TableDef::new("wide")
        .column("id", Type::U64)
        .column("group", Type::U32)
        .nullable("name", Type::String(50))
        .nullable("blob", Type::Bytes(200_000));
    let wide = wide.primary_key(["id"]).index(IndexDef::new("by_group", ["group"]));
    let pulse = TableDef::new(PULSE).column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    [wide.index(IndexDef::unique("by_name", ["name"])), pulse]
        .map(|def| db.create_table(def).expect("a table"))
}

fn write(db: &Database, table: &pantile::Table, rng: &mut Random) {
    let id = rng.below(60);
    let name = format!("{id}-{}", rng.below(1 << 40));
    let blob = vec![id as u8; if rng.percent(10) { 70_000 + rng.index(60_000) } else { rng.index(300) }];
    let blob = if rng.percent(20) { Value::Null } else { Value::Bytes(&blob) };
    db.run(|txn| {
        if id.is_multiple_of(4) {
            txn.delete(table, &[id.into()]).map(drop)
        } else {
            txn.upsert(table, &[id.into(), (id % 7).into(), name.as_str().into(), blob]).map(drop)
        }
    })
    .expect("no conflict");
}

/// Whatever a collector is doing, and however it ends, the database that it
/// leaves is sound.
#[test]
fn databases_are_sound_at_any_time() {
    let mut freed = 0;
    for seed in seeds(1, 6) {
        let _note = SeedNote(seed);
        let mut rng = Random::new(seed, 0);
        let dir = ScratchDir::new();
        let path = dir.path().join("db");
        let open =
            || eager(Options::new(), seed).durability(pantile::Durability::None).open(&path).expect("open");
        let mut db = open();
        let [mut wide, mut pulse] = tables(&db);
        for round in 0..8 {
            for _ in 0..rng.below(120) {
                write(&db, &wide, &mut rng);
            }
            let_collect(&db, &pulse, Duration::from_millis(rng.below(30)));
            let long = (round % 3 == 0).then(|| db.begin_read().expect("begin"));
            if rng.percent(50) {
                let copy = dir.path().join(format!("killed {round}"));
                fs::create_dir(&copy).expect("directory");
                fs::copy(path.join("pantile.data"), copy.join("pantile.data")).expect("copy");
                assert!(!sound(&copy).was_closed);
            }
            drop(long);
            freed += db.stats().collector.blocks_reclaimed;
            drop((wide, pulse));
            db.close().expect("close");
            assert!(sound(&path).was_closed);
            db = open();
            (wide, pulse) = (db.table("wide").expect("table"), db.table(PULSE).expect("table"));
        }
    }
    assert!(freed > 0, "nothing was collected");
}
