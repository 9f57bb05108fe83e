use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use pantile_base::TupleId;
use pantile_base::sync::atomic::Ordering;
use pantile_index::{Batch, Direction, Index as Tree, Scan};
use pantile_media::{DATA_FILE, IMAGE_FILE};
use pantile_store::BlockInfo;
use pantile_testkit::{Patience, Random, ScratchDir, SeedNote, seeds};

use crate::api::database::Database;
use crate::engine::anchor::Anchor;
use crate::engine::core::Core;
use crate::engine::table::TableInner;
use crate::types::options::Options;
use crate::types::schema::{IndexDef, TableDef, Type};
use crate::{Durability, GcOptions, Range, Value};

#[path = "image_damage_test.rs"]
mod damage;
#[path = "image_made_test.rs"]
mod made;

thread_local! {
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// This thread has written the entries of a table to an image, and nothing else of it.
pub(super) fn behind_trees(table: &TableInner) {
    if let Some(work) = MEANWHILE.with_borrow_mut(|work| work.take_if(|_| table.indexes().len() > 1)) {
        work();
    }
}

/// Does rounds of upkeep until something is so.
fn upkeep_until(db: &Database, what: &str, is_so: impl Fn() -> bool) {
    let patience = Patience::new();
    while !is_so() {
        patience.check(|| format!("never: {what}: {:#?}", db.stats()));
        db.upkeep();
    }
}

/// A database in which much has happened, and copies of it.
struct Place {
    scratch: ScratchDir,
    copies: u32,
}

impl Place {
    fn new() -> Self {
        Self { scratch: ScratchDir::new(), copies: 0 }
    }

    fn path(&self) -> PathBuf {
        self.scratch.path().join("db")
    }

    /// A copy of the closed database.
    fn copy(&mut self) -> PathBuf {
        self.copies += 1;
        let to = self.scratch.path().join(format!("copy{}", self.copies));
        fs::create_dir(&to).expect("a directory");
        for file in fs::read_dir(self.path()).expect("the directory") {
            let file = file.expect("an entry");
            fs::copy(file.path(), to.join(file.file_name())).expect("copied");
        }
        to
    }

    /// Opens what a kill would leave now, with its image and without.
    fn open_killed(&mut self) -> (Database, Database) {
        let (with, without) = (self.copy(), self.copy());
        let with = options().open(with).expect("what a kill leaves opens");
        (with, options().index_image(false).open(without).expect("it opens without the image"))
    }
}

fn options() -> Options {
    let gc = GcOptions { space_target: 1.25, ..GcOptions::default() };
    Options::new().durability(Durability::None).gc(gc).block_slots(8).streams(2).worker(false)
}

/// Opens a database with its image, and a copy of it without.
fn open_both(place: &mut Place) -> (Database, Database) {
    let without = place.copy();
    let with = options().open(place.path()).expect("the database opens");
    let without = options().index_image(false).open(without).expect("the copy opens");
    assert!(!without.recovery().from_image);
    (with, without)
}

fn entries(tree: &Tree) -> Vec<(Vec<u64>, u64)> {
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded, Direction::Forward);
    let (mut batch, mut entries) = (Batch::new(), Vec::new());
    while scan.next_batch(tree, None, &mut batch) {
        entries.extend(batch.iter().map(|(key, tuple)| (key.to_vec(), tuple)));
    }
    entries
}

fn assert_same_trees(a: &TableInner, b: &TableInner) {
    assert_eq!(entries(a.tree()), entries(b.tree()), "{a:?}");
    let (left, right) = (a.indexes(), b.indexes());
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(&*right) {
        assert_eq!((left.name(), left.unique), (right.name(), right.unique));
        assert_eq!(left.number, right.number);
        assert_eq!(entries(left.tree()), entries(right.tree()), "{left:?}");
    }
}

/// Whether two anchors lead to one version. A version that is being moved has two
/// durable copies, and a scan takes either (T12).
fn is_same_version(a: &Core, left: Anchor, b: &Core, right: Anchor) -> bool {
    let [x, y] = [(a, left), (b, right)].map(|(core, anchor)| core.store.content(anchor.newest()));
    x.timestamp() == y.timestamp() && x.tuple() == y.tuple() && x.row() == y.row()
}

/// Tombstones that a sweep has dropped come back with a scan, and do no harm.
fn assert_same_tuples((with, a): (&Core, &TableInner), (without, b): (&Core, &TableInner)) {
    // After a kill, no trace may be left of the last ones.
    assert!(!with.recovery.was_closed || a.tuples_end() <= b.tuples_end(), "{a:?}");
    let (mut free, mut also_free) = (BTreeSet::new(), BTreeSet::new());
    for tuple in 0..a.tuples_end() {
        let [left, right] = [a, b].map(|table| Anchor::load(table.anchor(TupleId(tuple))));
        assert_eq!(left.is_row(), right.is_row(), "tuple {tuple} of {a:?}");
        let is_same = left == right
            || !left.is_row() && left.newest().is_none()
            || !right.newest().is_none() && is_same_version(with, left, without, right);
        assert!(is_same, "tuple {tuple} of {a:?}: {left:?}, {right:?}");
        assert!(
            left.is_row() || left.newest().is_none() || {
                with.store.content_header(left.newest()).flags().is_tombstone()
            }
        );
        free.extend((!left.is_row()).then_some(TupleId(tuple)));
    }
    also_free.extend(a.free_ids());
    assert_eq!(free, also_free, "{a:?}");
}

fn assert_same_blocks(a: &Core, b: &Core, is_closed: bool) {
    let dropped = b.counters.waiting_tombstones() - a.counters.waiting_tombstones();
    let blocks = |core: &Core| {
        let chunks = 0..core.store.chunks_end();
        let blocks = chunks.flat_map(|n| (0..core.store.blocks_in(n)).map(move |index| (n, index)));
        let found = blocks.filter_map(|(chunk, index)| core.store.block_at(chunk, index));
        found.map(|block| (block, core.store.block_info(block).expect("it is in use"))).collect::<Vec<_>>()
    };
    let (left, right) = (blocks(a), blocks(b));
    assert_eq!(left.len(), right.len());
    let mut obsolete = 0;
    for ((name, left), (other, right)) in left.into_iter().zip(right) {
        assert_eq!(name, other);
        let fields = |info: &BlockInfo| {
            (
                info.state,
                info.table,
                info.bytes,
                info.stride,
                info.slots,
                info.fill,
                info.min_ts,
                info.last_begin,
            )
        };
        assert_eq!(fields(&left), fields(&right), "{left:?}, {right:?}");
        // What is known is at least as late as what contents show. Of two copies of
        // a version the scan may have taken the one that the image has not. After a
        // kill, opening writes a record later than any of that.
        let took_other = right.obsolete > left.obsolete || !is_closed;
        assert!(
            left.last_append >= right.last_append && (took_other || left.seen_until >= right.seen_until),
            "{left:?}, {right:?}"
        );
        obsolete += i64::from(left.obsolete) - i64::from(right.obsolete);
    }
    assert_eq!(obsolete, dropped as i64);
}

/// What an image has made is what a scan makes.
fn assert_same(with: &Database, without: &Database) {
    let (a, b) = (&*with.core, &*without.core);
    assert_same_blocks(a, b, with.recovery().was_closed);
    let (left, right) = (a.tables.all(), b.tables.all());
    assert_eq!(a.tables.next_id(), b.tables.next_id());
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(&right) {
        assert_eq!((left.id, left.definition()), (right.id, right.definition()));
        assert_same_tuples((a, left), (b, right));
        let _visitor = a.visitor("a test").expect("a slot");
        a.ready(left).expect("the trees can be had");
        assert_same_trees(left, right);
    }
    assert_eq!(a.counters.tuples(), b.counters.tuples());
    // What has not been read counts with its slot, an eighth more than its bytes at most.
    let live = [a, b].map(|core| core.counters.live_bytes());
    let is_exact = with.recovery().was_closed;
    let most = live[1] + live[1] / 8 + b.counters.tuples() * 8;
    assert!(live[0] == live[1] || !is_exact && (live[1]..=most).contains(&live[0]), "{live:?}");
    assert!(a.counters.waiting_tombstones() <= b.counters.waiting_tombstones());
    let taken = |core: &Core| (core.store.used_bytes(), core.store.taken_bytes(), core.store.available());
    assert_eq!(taken(a), taken(b));
    assert!(with.recovery().tuples == without.recovery().tuples);
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn definition(name: &str) -> TableDef {
    TableDef::new(name)
        .column("id", Type::U64)
        .column("n", Type::I64)
        .nullable("text", Type::String(40))
        .column("long", Type::Bytes(200_000))
        .primary_key(["id"])
        .index(IndexDef::new("by_n", ["n"]))
        .index(IndexDef::new("by_text", ["text", "n"]))
}

/// A row of such a table.
fn row(id: u64) -> [Value<'static>; 4] {
    [id.into(), Value::Int(1), Value::Null, Value::Bytes(b"x")]
}

/// Some transactions and changes of definitions.
fn work(db: &Database, random: &mut Random, turns: u64) {
    for _ in 0..turns {
        let name = *random.pick(&NAMES);
        let Ok(table) = db.table(name) else {
            db.create_table(definition(name)).expect("a free name");
            continue;
        };
        if random.one_in(400) {
            db.drop_table(name).expect("a table");
            continue;
        }
        if random.one_in(200) {
            let _ = db.drop_index(&table, "by_n");
            continue;
        }
        if random.one_in(100) {
            let _ = db.create_index(&table, IndexDef::new("by_n", ["n"]));
            continue;
        }
        let mut txn = db.begin().expect("a transaction");
        for _ in 0..=random.below(4) {
            let id = random.below(60);
            let text = format!("{:x}", random.below(1 << 40));
            let text = if random.one_in(3) { Value::Null } else { Value::Str(&text) };
            let most = if random.one_in(50) { 150_000 } else { 40 };
            let long = vec![7; random.below(most) as usize];
            match random.below(4) {
                0 => drop(txn.delete(&table, &[id.into()]).expect("nobody else writes")),
                1 => {
                    let changes = [(1, Value::Int(random.below(9) as i64))];
                    txn.update(&table, &[id.into()], &changes).map(drop).expect("nobody else writes");
                }
                _ => {
                    let row = [id.into(), Value::Int(random.below(9) as i64), text, Value::Bytes(&long)];
                    txn.upsert(&table, &row).map(drop).expect("nobody else writes");
                }
            }
        }
        if !random.one_in(8) {
            txn.commit().expect("nobody else writes");
        }
        if random.one_in(20) {
            db.upkeep();
        }
    }
}

/// All rows of all tables, by every index.
fn rows(db: &Database) -> Vec<String> {
    let txn = db.begin_read().expect("a transaction");
    let mut rows = Vec::new();
    for name in db.tables() {
        let table = db.table(&name).expect("a table");
        let all = txn.scan(&table, Range::all()).expect("a scan");
        rows.extend(all.map(|row| {
            let row = row.expect("a row");
            let long = row.get::<Option<Vec<u8>>>("long").expect("a value").map(|long| long.len());
            let (id, n, text) = (row.get::<u64>(0), row.get::<i64>(1), row.get::<Value<'_>>(2));
            format!("{name} {id:?} {n:?} {text:?} {long:?}")
        }));
        for def in table.definition().indexes {
            let index = table.index(&def.name).expect("an index");
            let all = txn.scan_index(&index, Range::all()).expect("a scan");
            rows.extend(
                all.map(|row| format!("{name} {} {:?}", def.name, row.expect("a row").get::<u64>(0))),
            );
        }
    }
    rows
}

#[test]
fn an_image_makes_what_a_scan_makes() {
    for seed in seeds(1, 6) {
        let _note = SeedNote(seed);
        let (mut random, mut place) = (Random::new(seed, 0), Place::new());
        let db = options().open(place.path()).expect("a new database");
        work(&db, &mut random, 300);
        db.close().expect("it closes");
        for _ in 0..6 {
            let (with, without) = open_both(&mut place);
            assert!(with.recovery().from_image, "the image of the last closing is used");
            assert_same(&with, &without);
            assert_eq!(rows(&with), rows(&without));
            let later = |db: &Database| db.begin().expect("a transaction").timestamp();
            assert!(later(&with).tick() >= without.core.store.durable_watermark().tick());
            drop(without);
            let turns = *random.pick(&[0, 1, 10, 300]);
            work(&with, &mut random, turns);
            let last = later(&with);
            let expected = rows(&with);
            if random.one_in(4) {
                with.compact().expect("it compacts");
            }
            with.close().expect("it closes");
            let again = options().open(place.path()).expect("it opens");
            assert!(later(&again) > last, "timestamps continue");
            assert_eq!(rows(&again), expected);
            again.close().expect("it closes");
        }
        let checked = crate::tools::check(place.path(), &crate::tools::CheckOptions::new()).expect("a check");
        assert!(checked.damaged == 0, "{checked:?}");
    }
}

/// A small closed database with an image.
fn small(seed: u64) -> (Place, Vec<String>) {
    let place = Place::new();
    let db = options().open(place.path()).expect("a new database");
    work(&db, &mut Random::new(seed, 0), 200);
    let expected = rows(&db);
    db.close().expect("it closes");
    (place, expected)
}

/// Opens a database whose image is not what it was.
fn assert_unharmed(path: &Path, expected: &[String], how: &str) {
    let db = options().open(path).unwrap_or_else(|error| panic!("{how}: {error}"));
    assert_eq!(rows(&db), expected, "{how}");
    db.close().expect("it closes");
    let again = options().open(path).expect("it opens");
    assert!(again.recovery().from_image, "{how}: the image has been replaced");
    assert_eq!(rows(&again), expected, "{how}");
}

#[test]
fn a_damaged_image_is_never_believed() {
    let (mut place, expected) = small(7);
    let image = fs::read(place.path().join(IMAGE_FILE)).expect("the image");
    let mut random = Random::new(7, 1);
    let sectors = image.len().div_ceil(512);
    let copy = place.copy();
    let data = fs::read(copy.join(DATA_FILE)).expect("the data file");
    let put = |image: &[u8]| {
        fs::write(copy.join(DATA_FILE), &data).expect("written");
        fs::write(copy.join(IMAGE_FILE), image).expect("written");
    };
    for sector in 0..sectors {
        let (from, to) = (sector * 512, image.len().min(sector * 512 + 512));
        let mut hurt = image.clone();
        hurt[from + random.index(to - from)] ^= 1 << random.below(8);
        put(&hurt);
        assert_unharmed(&copy, &expected, &format!("a bit of sector {sector}"));
        let mut torn = image.clone();
        torn[from..to].fill(0);
        put(&torn);
        assert_unharmed(&copy, &expected, &format!("sector {sector} is zero"));
    }
    for len in (0..image.len()).step_by(997) {
        put(&image[..len]);
        assert_unharmed(&copy, &expected, &format!("{len} bytes"));
    }
    put(&[image.clone(), vec![0; 100]].concat());
    assert_unharmed(&copy, &expected, "longer");
}

#[test]
fn an_image_of_another_time_or_database_is_never_believed() {
    let (place, _) = small(11);
    let older = fs::read(place.path().join(IMAGE_FILE)).expect("the image");
    let db = options().open(place.path()).expect("it opens");
    work(&db, &mut Random::new(11, 1), 3);
    let expected = rows(&db);
    db.close().expect("it closes");
    let newer = fs::read(place.path().join(IMAGE_FILE)).expect("the image");
    assert!(older != newer);
    fs::write(place.path().join(IMAGE_FILE), &older).expect("written");
    assert_unharmed(&place.path(), &expected, "an older image");
    let (other, _) = small(12);
    fs::copy(other.path().join(IMAGE_FILE), place.path().join(IMAGE_FILE)).expect("copied");
    assert_unharmed(&place.path(), &expected, "another database's image");
}

/// An image that knows one row more than the data does, as after a power cut that has
/// spared the image and not the data.
#[test]
fn an_image_ahead_of_the_data_is_never_believed() {
    let mut place = Place::new();
    let options = || Options::new().streams(1).worker(false);
    let db = options().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    db.run(|txn| (0..10).try_for_each(|id| txn.insert(&table, &row(id)))).expect("free keys");
    drop(table);
    let expected = rows(&db);
    db.close().expect("it closes");
    let behind = place.copy();
    let db = options().open(place.path()).expect("it opens");
    let table = db.table("a").expect("the table");
    db.run(|txn| txn.insert(&table, &row(10))).expect("a free key");
    drop(table);
    db.close().expect("it closes");
    fs::copy(place.path().join(IMAGE_FILE), behind.join(IMAGE_FILE)).expect("copied");
    assert_unharmed(&behind, &expected, "an image of what came later");
}

#[test]
fn closing_writes_no_image_where_it_should_not_or_cannot() {
    let (place, expected) = small(17);
    let image = place.path().join(IMAGE_FILE);
    let db = options().index_image(false).open(place.path()).expect("it opens");
    assert!(!db.recovery().from_image);
    work(&db, &mut Random::new(17, 1), 0);
    db.close().expect("it closes");
    let db = options().open(place.path()).expect("it opens");
    assert!(!db.recovery().from_image, "no record names the image that is left");
    db.close().expect("it closes");
    // A directory stands in the way of the file, as a full disk would.
    fs::remove_file(&image).expect("the image");
    fs::create_dir_all(image.with_extension("image.new")).expect("a directory");
    let db = options().open(place.path()).expect("it opens");
    assert!(!db.recovery().from_image);
    work(&db, &mut Random::new(17, 2), 0);
    db.close().expect("closing does not fail without an image");
    assert!(!image.exists());
    let db = options().open(place.path()).expect("it opens");
    assert_eq!(rows(&db), expected);
}

/// An image that nothing has made obsolete is named again.
#[test]
fn an_unchanged_database_keeps_its_image() {
    let place = Place::new();
    let image = || fs::read(place.path().join(IMAGE_FILE)).expect("the image");
    let db = Options::new().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    db.run(|txn| (0..100).try_for_each(|id| txn.insert(&table, &row(id)))).expect("free keys");
    drop(table);
    db.close().expect("it closes");
    let before = image();
    for looks in 0..3 {
        let db = Options::new().open(place.path()).expect("it opens");
        assert!(db.recovery().from_image);
        if looks > 0 {
            assert_eq!(rows(&db).len(), 300);
        }
        db.close().expect("it closes");
        assert!(image() == before);
    }
    let db = Options::new().open(place.path()).expect("it opens");
    let table = db.table("a").expect("the table");
    db.run(|txn| txn.delete(&table, &[7u64.into()])).expect("nobody else writes");
    drop(table);
    db.close().expect("it closes");
    assert!(image() != before);
}

/// A program that opens a database for a few rows does not wait for the worker, which loads all indexes meanwhile.
#[test]
fn closing_ends_the_loading_that_nobody_waits_for() {
    let place = Place::new();
    let db = options().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    db.run(|txn| (0..100).try_for_each(|id| txn.insert(&table, &row(id)))).expect("free keys");
    drop(table);
    db.close().expect("it closes");
    let db = options().open(place.path()).expect("it opens");
    let table = db.table("a").expect("the table");
    let txn = db.begin_read().expect("a transaction");
    assert!(txn.get(&table, &[7u64.into()]).expect("it reads").is_some());
    drop(txn);
    let is_loaded = || table.inner.primary().is_some();
    db.core.wanted.store(true, Ordering::Relaxed);
    db.core.alarm.end();
    db.upkeep();
    assert!(
        !is_loaded() && db.core.wanted.load(Ordering::Relaxed),
        "if closing fails, they are still wanted"
    );
    assert_eq!(rows(&db).len(), 300);
    assert!(is_loaded(), "a scan that needs them loads them");
}

/// A data file that was cut short is not believed to hold what an image says.
#[test]
fn a_shorter_data_file_is_missed() {
    let (place, _) = small(23);
    let path = place.path().join(DATA_FILE);
    let len = fs::metadata(&path).expect("the file").len();
    let mut refused = 0;
    for cut in 1..len >> 16 {
        let copy = place.scratch.path().join("short");
        fs::create_dir_all(&copy).expect("a directory");
        let data = fs::read(&path).expect("the file");
        fs::write(copy.join(DATA_FILE), &data[..(len - (cut << 16)) as usize]).expect("written");
        fs::copy(place.path().join(IMAGE_FILE), copy.join(IMAGE_FILE)).expect("copied");
        match options().create(false).open(&copy) {
            Ok(db) => assert!(refused == 0 && !rows(&db).is_empty()),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0);
}
