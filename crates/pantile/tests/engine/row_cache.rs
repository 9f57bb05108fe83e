//! The cache of rows (`Options::row_cache`): what it serves is what is there.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pantile::{
    BackupOptions, Collector, Database, Error, MediumKind, Options, SimulatedTime, Table, TableDef,
    Transaction, TransactionOptions, Type,
};
use pantile_media::{DramMedium, MapOptions, Reads};
use pantile_testkit::{Bed, Heard, HeardMedium, Home, Random, ScratchDir, SeedNote, fails, seeds};

const MB: u64 = 1 << 20;

fn options() -> Options {
    Options::new().medium(MediumKind::Dram).row_cache(MB).worker(false)
}

fn table(db: &Database) -> Table {
    let def =
        TableDef::new("t").column("id", Type::U64).column("n", Type::U64).column("text", Type::String(200));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn text(id: u64, n: u64) -> String {
    format!("{id}:{n}:{}", "x".repeat((id * 31 + n * 7) as usize % 150))
}

fn put(txn: &mut Transaction, table: &Table, id: u64, n: u64) -> pantile::Result<()> {
    txn.upsert(table, &[id.into(), n.into(), (&*text(id, n)).into()]).map(drop)
}

/// Reads a row and checks its text. Returns its number.
fn get(txn: &Transaction, table: &Table, id: u64) -> Option<u64> {
    let row = txn.get(table, &[id.into()]).expect("read")?;
    let n = row.get::<u64>("n").expect("n");
    assert_eq!(row.get::<&str>("text").expect("text"), text(id, n));
    Some(n)
}

#[test]
fn the_second_read_finds_a_copy() {
    let db = options().open("unused").expect("open");
    let table = table(&db);
    db.run(|txn| (0..100).try_for_each(|id| put(txn, &table, id, 0))).expect("load");
    let read_all = || {
        let txn = db.begin_read().expect("begin");
        (0..100).for_each(|id| assert_eq!(get(&txn, &table, id), Some(0)));
    };
    read_all();
    let first = db.stats();
    assert!(first.row_cache_misses >= 100 && first.row_cache_bytes > 100 * 100, "{first:?}");
    assert!(first.dram_bytes > first.row_cache_bytes, "{first:?}");
    read_all();
    let second = db.stats();
    assert_eq!(second.row_cache_misses, first.row_cache_misses);
    assert!(second.row_cache_hits >= first.row_cache_hits + 100, "{second:?}");
}

#[test]
fn a_row_that_is_changed_keeps_its_copy() {
    let db = options().open("unused").expect("open");
    let table = table(&db);
    db.run(|txn| put(txn, &table, 1, 0)).expect("insert");
    assert_eq!(get(&db.begin_read().expect("begin"), &table, 1), Some(0));
    let old = db.begin_read().expect("begin");
    db.run(|txn| put(txn, &table, 1, 1)).expect("update");
    let before = db.stats();
    assert_eq!(get(&db.begin_read().expect("begin"), &table, 1), Some(1));
    let after = db.stats();
    assert_eq!(after.row_cache_misses, before.row_cache_misses, "the new version was copied");
    assert_eq!(get(&old, &table, 1), Some(0), "a snapshot sees what was there");
    db.run(|txn| txn.delete(&table, &[1u64.into()])).expect("delete");
    assert_eq!(get(&db.begin_read().expect("begin"), &table, 1), None);
    assert_eq!(get(&old, &table, 1), Some(0));
}

/// Rows that a transaction has borrowed stay as they are, whatever the cache gives up meanwhile, and a
/// transaction that reads on and on does not keep all of it.
#[test]
fn borrowed_rows_stay() {
    let db = options().open("unused").expect("open");
    let table = table(&db);
    let rows = 30_000;
    for first in (0..rows).step_by(1000) {
        db.run(|txn| (first..first + 1000).try_for_each(|id| put(txn, &table, id, 0))).expect("load");
    }
    let txn = db.begin_read().expect("begin");
    let borrowed: Vec<_> =
        (0..50u64).map(|id| txn.get(&table, &[id.into()]).expect("read").expect("a row")).collect();
    let seen: Vec<_> = borrowed.iter().map(|row| row.get::<&str>("text").expect("text")).collect();
    let other = db.begin_read().expect("begin");
    assert_eq!(other.scan(&table, pantile::Range::all()).expect("scan").count(), rows as usize);
    (0..rows).for_each(|id| assert_eq!(get(&db.begin_read().expect("begin"), &table, id), Some(0)));
    assert!(db.stats().row_cache_bytes <= MB, "{:?}", db.stats());
    (0u64..).zip(&seen).for_each(|(id, text_seen)| assert_eq!(*text_seen, text(id, 0)));
}

/// A block is freed and opened again, with other rows at the same addresses.
#[test]
fn addresses_are_used_again() {
    for seed in seeds(1, 4) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        // Epochs pass by what is done, on each machine alike.
        let time = SimulatedTime::default();
        let options = Home::new(Bed::Dram).eager(seed).row_cache(MB).options();
        let db = options.simulated_time(time.clone()).open("unused").expect("open");
        let table = table(&db);
        let mut model = BTreeMap::new();
        for n in 0..4_000 {
            time.advance(Duration::from_micros(100));
            let id = random.below(60);
            match random.one_in(8) {
                true => {
                    db.run(|txn| txn.delete(&table, &[id.into()])).expect("delete");
                    model.remove(&id);
                }
                false => {
                    db.run(|txn| put(txn, &table, id, n)).expect("put");
                    model.insert(id, n);
                }
            }
            let txn = db.begin_read().expect("begin");
            let id = random.below(60);
            assert_eq!(get(&txn, &table, id), model.get(&id).copied());
        }
        let stats = db.stats();
        assert!(stats.collector.blocks_reclaimed > 100 && stats.row_cache_hits > 1_000, "{stats:?}");
    }
}

/// A database on a medium that the system keeps in this many bytes of memory, and the pieces that it
/// has been told to fetch since the last look.
fn cached_in(memory: u64, cache: u64) -> (Database, impl Fn() -> usize) {
    let heard = Arc::new(Mutex::new(0));
    let medium = HeardMedium::over(DramMedium::new(MapOptions::default()).expect("memory"), {
        let heard = Arc::clone(&heard);
        move |call| {
            if let Heard::Advice(Reads::Soon { .. }) = call {
                *heard.lock().expect("no panic") += 1;
            }
        }
    });
    let options = Options::new().on_medium(Arc::new(medium.cached_in(memory))).row_cache(cache).worker(false);
    (options.open("unused").expect("open"), move || std::mem::take(&mut *heard.lock().expect("no panic")))
}

fn read_many(txn: &Transaction, table: &Table, ids: Range<u64>) {
    let keys: Vec<_> = ids.map(|id| [id.into()]).collect();
    assert!(txn.get_many(table, &keys).expect("read").iter().all(Option::is_some));
}

/// In front of a file that fits into memory there are no copies; in front of one that does not there are, and
/// what has a copy is not fetched.
#[test]
fn a_file_that_fits_has_none() {
    for (memory, is_used) in [(1 << 40, false), (1, true)] {
        let (db, fetched) = cached_in(memory, MB);
        let table = table(&db);
        db.run(|txn| (0..200).try_for_each(|id| put(txn, &table, id, 0))).expect("load");
        let read = || {
            read_many(&db.begin_read().expect("begin"), &table, 0..200);
            fetched()
        };
        let (first, second) = (read(), read());
        assert_eq!(first > 0, is_used, "{first} pieces were fetched");
        assert_eq!(second, 0, "what has a copy is not fetched");
        assert_eq!(db.stats().row_cache_bytes > 0, is_used);
    }
}

/// A transaction that has read more than it may hold reads where rows lie, and so they are fetched ahead.
#[test]
fn who_reads_much_reads_ahead() {
    let (db, fetched) = cached_in(1, 16 * MB);
    let table = table(&db);
    let rows = 20_000;
    for first in (0..rows).step_by(1000) {
        db.run(|txn| (first..first + 1000).try_for_each(|id| put(txn, &table, id, 0))).expect("load");
        read_many(&db.begin_read().expect("begin"), &table, first..first + 1000);
    }
    fetched();
    let txn = db.begin_read().expect("begin");
    let pieces = |first| {
        read_many(&txn, &table, first..first + 1000);
        fetched()
    };
    let first = pieces(0);
    let last = (1000..rows).step_by(1000).map(pieces).last();
    assert_eq!(first, 0, "all of them have copies");
    assert!(last > Some(0), "it holds all it may");
}

#[test]
fn backups_leave_the_cache_alone() {
    let (db, _) = cached_in(1, MB);
    let table = table(&db);
    db.run(|txn| (0..200).try_for_each(|id| put(txn, &table, id, 0))).expect("load");
    read_many(&db.begin_read().expect("begin"), &table, 0..50);
    let looks = || (db.stats().row_cache_hits, db.stats().row_cache_misses, db.stats().row_cache_bytes);
    let before = looks();
    let place = ScratchDir::new();
    db.backup_to(place.path().join("copy"), &BackupOptions::new()).expect("a backup");
    assert_eq!(looks(), before);
}

#[test]
fn slots_that_are_rewritten_have_no_copies() {
    let n2db = pantile_rivals::by_name("n2db").expect("built in");
    fails!(options().collector(n2db).open("unused"), Error::InvalidOption(_), "n2db", "frees whole blocks");
    fails!(options().row_cache(MB - 1).open("unused"), Error::InvalidOption(_), "row_cache is 1048575");
    let limit = 32 * MB;
    let too_large = options().memory_limit(limit).row_cache(limit / 2 + 1);
    fails!(
        too_large.open("unused"),
        Error::InvalidOption(_),
        "row_cache is 16777217",
        "half of the memory_limit"
    );
    options().memory_limit(limit).row_cache(limit / 2).open("unused").expect("half is allowed");
    options().collector(Collector::NONE).open("unused").expect("it frees nothing");
}

/// Writers that move read their rows again, through the cache.
#[test]
fn writers_move_behind_readers() {
    let db = options().open("unused").expect("open");
    let table = table(&db);
    db.run(|txn| (0..3).try_for_each(|id| put(txn, &table, id, 0))).expect("load");
    let mut writer = db.begin().expect("begin");
    assert_eq!(get(&writer, &table, 0), Some(0));
    put(&mut writer, &table, 1, 1).expect("put");
    let later = db.begin_with(TransactionOptions::new().read_only(true)).expect("begin");
    assert_eq!(get(&later, &table, 2), Some(0));
    assert_eq!(get(&later, &table, 1), Some(0), "it goes past the writer");
    writer.commit().expect("it moves");
    assert_eq!(get(&later, &table, 1), Some(0));
    assert_eq!(get(&db.begin_read().expect("begin"), &table, 1), Some(1));
}
