//! Images that are made while the database is open, and what they are worth after
//! a kill.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pantile_testkit::await_that;

use super::*;
use crate::engine::images::Images;
use crate::{Table, Transaction};

/// What a kill leaves is opened with the image of the last closing, and only what
/// has changed since is read.
#[test]
fn an_image_of_the_last_closing_serves_after_a_kill() {
    for seed in seeds(13, 3) {
        let _note = SeedNote(seed);
        let (mut place, _) = small(seed);
        let db = options().open(place.path()).expect("it opens");
        // Where a dropped table is left, closing makes none.
        let has_image = db.recovery().from_image;
        let mut random = Random::new(seed, 1);
        for _ in 0..4 {
            let turns = *random.pick(&[0, 1, 2, 30, 300]);
            work(&db, &mut random, turns);
            if random.one_in(4) {
                db.compact().expect("it compacts");
            }
            let (with, without) = place.open_killed();
            assert_eq!(with.recovery().from_image, has_image);
            let expected = rows(&db);
            assert_eq!(rows(&without), expected);
            assert_same(&with, &without);
            assert_eq!(rows(&with), expected);
            // It goes on like any other, and its image can be copied or not.
            work(&with, &mut random, turns);
            let expected = rows(&with);
            let path = place.scratch.path().join(format!("copy{}", place.copies - 1));
            with.close().expect("it closes");
            let again = options().open(path).expect("it opens");
            assert!(again.recovery().was_closed);
            assert_eq!(rows(&again), expected);
        }
    }
}

/// What an image does not know is read, and the image is left out where that is most
/// of a database that is not small.
#[test]
fn an_image_of_which_little_is_left_is_left_out() {
    let mut place = Place::new();
    let db = options().index_image_every(u64::MAX).open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    let long = vec![7; 3_000];
    let row = |id: u64, n: i64| [id.into(), Value::Int(n), Value::Null, Value::Bytes(&long)];
    let put = |db: &Database, ids: std::ops::Range<u64>, n: i64| {
        let table = db.table("a").expect("the table");
        db.run(|txn| ids.clone().try_for_each(|id| txn.upsert(&table, &row(id, n)).map(drop)))
            .expect("upserted");
    };
    put(&db, 0..12_000, 1);
    drop(table);
    db.close().expect("it closes");

    let db = options().index_image_every(u64::MAX).open(place.path()).expect("it opens");
    assert!(db.recovery().from_image);
    for (changed, is_taken) in [(4_000, true), (11_000, false)] {
        put(&db, 0..changed, 2);
        let (with, without) = place.open_killed();
        assert_eq!(with.recovery().from_image, is_taken, "{changed} of 12,000 rows changed");
        assert_same(&with, &without);
    }
}

/// The blocks of a table that is dropped as an image begins would be in it, and nothing would say whose they were.
#[test]
fn no_image_is_made_of_a_table_that_is_just_being_dropped() {
    let place = Place::new();
    let db = options().open(place.path()).expect("a new database");
    for name in ["a", "b"] {
        let table = db.create_table(definition(name)).expect("a table");
        db.run(|txn| (0..50).try_for_each(|id| txn.insert(&table, &row(id)))).expect("free keys");
    }
    let making = db.core.images.try_begin(&db.core.store, 0).expect("none is being made");
    let reader = db.begin_read().expect("a transaction");
    db.drop_table("b").expect("it is there");
    db.core.make_image(making);
    assert!(!db.core.images.is_pending());
    drop(reader);
    await_that("an image is made of what is left", || {
        db.upkeep();
        image_now(&db)
    });
}

/// Rounds of a worker that find nothing to do write nothing.
#[test]
fn a_closed_database_that_is_only_read_stays_closed() {
    let mut place = Place::new();
    let db = options().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    db.run(|txn| (0..500).try_for_each(|id| txn.insert(&table, &row(id)))).expect("free keys");
    db.run(|txn| (0..400).try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop))).expect("rows");
    drop(table);
    // Otherwise a round finds blocks to empty.
    db.compact().expect("it compacts");
    db.close().expect("it closes");

    let db = options().open(place.path()).expect("it opens");
    let expected = rows(&db);
    for _ in 0..20 {
        db.upkeep();
    }
    let (with, without) = place.open_killed();
    assert!(with.recovery().was_closed && without.recovery().was_closed);
    assert_eq!((rows(&with), rows(&without)), (expected.clone(), expected));
}

/// A full disk costs one attempt, not one after the other.
#[test]
fn an_image_that_cannot_be_made_is_not_tried_again_at_once() {
    let place = Place::new();
    let db = options().index_image_every(1000).open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    let mut next = 0u64;
    let mut write = || {
        for id in next..next + 50 {
            let row = row(id);
            db.run(|txn| txn.insert(&table, &row)).expect("a free key");
        }
        next += 50;
    };
    let successor = place.path().join(IMAGE_FILE).with_extension("image.new");
    fs::create_dir(&successor).expect("a directory in the way");
    for turn in 0..3 {
        write();
        db.core.make_image(db.core.begin_image().expect("it is time for one"));
        assert!(!db.core.images.is_pending() && db.core.begin_image().is_none(), "turn {turn}");
    }
    fs::remove_dir(&successor).expect("it is empty");
    let expected = rows(&db);
    drop(table);
    db.close().expect("it closes");
    let db = options().open(place.path()).expect("it opens");
    assert_eq!(rows(&db), expected);
}

/// Each attempt may write as much as the image has: it is tried again after a part of what makes
/// an image worth while, and after twice as much the next time.
#[test]
fn an_image_that_cannot_be_made_is_tried_less_and_less() {
    const MB: u64 = 1 << 20;
    let place = Place::new();
    let db = options().durability(Durability::None).open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    let long = vec![7; 3_000];
    let store = &db.core.store;
    let mut next = 0u64;
    let mut append = |bytes: u64| {
        let end = store.appended_ever() + bytes;
        while store.appended_ever() < end {
            let row = [next.into(), Value::Int(1), Value::Null, Value::Bytes(&long)];
            db.run(|txn| txn.insert(&table, &row)).expect("a free key");
            next += 1;
        }
    };
    for every in [None, Some(4 * MB)] {
        let images = Arc::new(Images::default());
        images.begin(0, None);
        let is_due = || images.is_worth_it(store, every, 1, || 2 * MB);
        let fail = || drop(images.try_begin(store, 1).expect("none is being made"));
        append(41 * MB);
        assert!(is_due());
        // Of 40 MB it is a quarter, and twice that; of what the program says, all of it.
        let pause = every.unwrap_or(10 * MB);
        for pause in [pause, 2 * pause] {
            fail();
            append(pause - MB);
            assert!(!is_due(), "{every:?}");
            append(2 * MB);
            assert!(is_due(), "{every:?}");
        }
    }
}

/// The first image is made once a round finds that nothing has been appended since
/// the last one, also while transactions read.
#[test]
fn the_first_image_is_made_at_rest() {
    let place = Place::new();
    let db = options().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    let long = vec![7; 900];
    let row = |id: u64| [id.into(), Value::Int(1), Value::Null, Value::Bytes(&long)];
    db.run(|txn| txn.insert(&table, &row(20_000))).expect("a free key");
    let begins = || db.core.begin_image().is_some();
    assert!(!begins() && !begins(), "so little is soon read");
    db.run(|txn| (0..10_000).try_for_each(|id| txn.insert(&table, &row(id)))).expect("free keys");
    let reader = db.begin_read().expect("a transaction");
    assert!(!begins(), "it was not at rest");
    db.core.make_image(db.core.begin_image().expect("it is at rest"));
    assert!(db.core.store.has_image());
    drop(reader);
    db.run(|txn| txn.insert(&table, &row(10_000))).expect("a free key");
    assert!(!begins() && !begins(), "another one has its price");
}

/// Inserts rows in one transaction that take some space in an image.
fn fill(db: &Database, table: &Table, ids: std::ops::Range<u64>) {
    let text = |id: u64| format!("{:x}", id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let insert = |txn: &mut Transaction, id: u64| {
        let text = text(id);
        txn.insert(table, &[id.into(), Value::Int(1), Value::Str(&text), Value::Bytes(&[7; 200])])
    };
    db.run(|txn| ids.clone().try_for_each(|id| insert(txn, id))).expect("free keys");
}

fn delete(db: &Database, table: &Table, ids: std::ops::Range<u64>) {
    db.run(|txn| ids.clone().try_for_each(|id| txn.delete(table, &[id.into()]).map(drop))).expect("rows");
}

/// Waits for an image of such a size, and returns that.
fn wait_for_image(db: &Database, what: &str, is_so: impl Fn(u64) -> bool) -> u64 {
    let patience = Patience::new();
    while !is_so(db.stats().image_bytes) || db.core.images.is_pending() {
        patience.check(|| format!("{what}: {:#?}", db.stats()));
        db.upkeep();
    }
    db.stats().image_bytes
}

/// An image does not stay larger than what is left of the database.
#[test]
fn a_smaller_image_is_made_at_rest_when_rows_have_gone() {
    let place = Place::new();
    let db = options().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    fill(&db, &table, 0..60_000);
    wait_for_image(&db, "the first image", |bytes| bytes > 128 << 10);
    drop(table);
    db.close().expect("it closes");
    let db = options().open(place.path()).expect("it opens");
    assert!(db.recovery().from_image);
    let full = db.stats().image_bytes;
    delete(&db, &db.table("a").expect("a table"), 0..55_000);
    let image = wait_for_image(&db, "a smaller one", |bytes| bytes < full / 2);
    let file = fs::metadata(place.path().join(IMAGE_FILE)).expect("an image").len();
    assert_eq!(file, image);
    // Nor does the one that it was opened with go on taking space.
    #[cfg(target_os = "linux")]
    upkeep_until(&db, "the image of before is closed", || {
        let descriptors = fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
        let mut leads_to = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        !leads_to.any(|to| to.starts_with(place.path()) && to.to_string_lossy().ends_with(" (deleted)"))
    });
}

/// Nor if the process ends before it has noticed.
#[test]
fn a_smaller_image_is_made_after_a_kill() {
    let mut place = Place::new();
    // Blocks of the usual size: whatever the collector moves between an image and a kill is soon read, as counted by the
    // ends of blocks.
    let db = options().block_slots(1920).open(place.path()).expect("a new database");
    let [few, many] = ["few", "many"].map(|name| db.create_table(definition(name)).expect("a table"));
    fill(&db, &few, 0..40_000);
    delete(&db, &few, 0..32_000);
    // A kill may leave the blocks of the dropped table. An image that does not know them serves
    // only because they are soon read.
    fill(&db, &many, 0..24_000);
    let full = wait_for_image(&db, "the first image", |bytes| bytes > 128 << 10);
    // Rows of a dropped table are in the image all the same.
    drop(many);
    db.drop_table("many").expect("the table");
    let (killed, _) = place.open_killed();
    assert_eq!((killed.recovery().from_image, killed.stats().image_bytes), (true, full));
    delete(&killed, &killed.table("few").expect("a table"), 39_999..40_000);
    wait_for_image(&killed, "a smaller one after a kill", |bytes| bytes < full / 2);

    // Rows that it does not have are not counted: this one is as small as it can be. What the collector moves after an
    // image, that does not know.
    db.compact().expect("it compacts");
    let least = wait_for_image(&db, "a smaller one", |bytes| bytes < full / 2);
    assert!(least > 64 << 10, "it would be worth it to make a smaller one than {least} bytes");
    let (killed, _) = place.open_killed();
    assert_eq!((killed.recovery().from_image, killed.stats().image_bytes), (true, least));
    delete(&killed, &killed.table("few").expect("a table"), 39_999..40_000);
    (0..9).for_each(|_| _ = killed.upkeep());
    assert!(killed.core.begin_image().is_none());
}

/// A row that comes and goes in one transaction has no content. While the commit is
/// in flight, its id leads to the tombstone of an earlier row.
#[test]
fn a_row_that_has_come_and_gone_is_none_in_an_image() {
    let mut place = Place::new();
    let db = options().durability(Durability::Sync).streams(1).open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    db.run(|txn| (0..9).try_for_each(|id| txn.insert(&table, &row(id)))).expect("free keys");
    db.run(|txn| (0..5).try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop))).expect("rows");
    bury(&db, 5);
    record(&db);
    let mut txn = db.begin().expect("a transaction");
    (20..24).for_each(|id| txn.insert(&table, &row(id)).expect("a free key"));
    (20..24).for_each(|id| assert!(txn.delete(&table, &[id.into()]).expect("the row")));
    txn.insert(&table, &row(30)).expect("a free key");
    let in_flight = txn.publish().expect("it is visible");
    let is_none = |tuple: &u64| table.inner.live_row(&db.core.store, TupleId(*tuple)).is_none();
    let anchor = |tuple: u64| Anchor::load(table.inner.anchor(TupleId(tuple)));
    let gone = (0..table.inner.tuples_end()).filter(is_none).filter(|&tuple| anchor(tuple).is_row()).count();
    assert!(gone > 0, "no id was used again");
    db.core.make_image(db.core.images.try_begin(&db.core.store, 0).expect("none is being made"));
    assert!(db.core.images.is_pending());
    in_flight.wait().expect("it is durable");
    upkeep_until(&db, "the image has its name", || !db.core.images.is_pending());
    let (with, without) = place.open_killed();
    assert!(with.recovery().from_image);
    assert_eq!((with.stats().tuples, rows(&with)), (without.stats().tuples, rows(&db)));
    assert_same(&with, &without);
}

/// The first read after a kill looks into the image, where the entry still is of a row
/// that was never committed. Its id was the highest.
#[test]
fn a_row_that_was_rolled_back_hides_no_other_in_an_image() {
    let (mut place, db, table) = five_rows();
    let mut txn = db.begin().expect("a transaction");
    txn.insert(&table, &row(100)).expect("a free key");
    assert!(image_now(&db));
    txn.rollback();
    // The key comes again, with the id of a row that is deleted.
    db.run(|txn| (0..2).try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop))).expect("rows");
    clean(&db);
    db.run(|txn| txn.insert(&table, &row(100))).expect("a free key");
    let (with, without) = place.open_killed();
    assert!(with.recovery().from_image);
    let txn = with.begin_read().expect("a transaction");
    let there = with.table("a").expect("the table");
    assert!(
        txn.get(&there, &[100u64.into()]).expect("it can be read").is_some(),
        "the first read misses a row"
    );
    assert_eq!(rows(&without), rows(&db));
    drop(txn);
    assert_same(&with, &without);
}

/// A transaction that does not commit is using ids of deleted rows when the image is made, so that no anchor names
/// their tombstones. Nothing is appended after that: the image says all that there is.
#[test]
fn tombstones_of_ids_in_use_are_found_although_an_image_says_all() {
    let (mut place, db, table) = five_rows();
    db.run(|txn| (0..3).try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop))).expect("rows");
    bury(&db, 3);
    record(&db);
    let mut txn = db.begin().expect("a transaction");
    (20..23).for_each(|id| txn.insert(&table, &row(id)).expect("a free key"));
    assert_eq!(db.stats().collector.waiting_tombstones, 0, "ids are used again");
    assert!(image_now(&db));
    txn.rollback();
    let successor = place.path().join(IMAGE_FILE).with_extension("image.new");
    fs::create_dir(&successor).expect("a directory in the way");
    drop(table);
    db.close().expect("it closes, without another image");
    fs::remove_dir(&successor).expect("it is empty");
    let (with, without) = open_both(&mut place);
    assert!(with.recovery().from_image && with.recovery().was_closed);
    let found = |db: &Database| (db.stats().tuples, db.stats().collector.waiting_tombstones, rows(db));
    assert_eq!(found(&with), found(&without));
}

/// An open transaction has given a row another value when the image is made, and takes
/// that back. The image has the entry, and the tuple has not changed.
#[test]
fn an_entry_that_was_rolled_back_is_none_in_an_image() {
    let (mut place, db, table) = five_rows();
    record(&db);
    let mut txn = db.begin().expect("a transaction");
    assert!(txn.update(&table, &[3u64.into()], &[(1, Value::Int(7))]).expect("the row"));
    assert!(image_now(&db));
    txn.rollback();
    clean(&db);
    let (with, without) = place.open_killed();
    assert!(with.recovery().from_image);
    assert_same(&with, &without);
    assert_eq!(rows(&with), rows(&db));
}

/// An older transaction keeps it in the list of indexes, but the definition does not have it any more. The entries of the
/// other index are then not those that come second.
#[test]
fn an_index_that_is_dropped_while_an_image_is_made_lends_no_entries() {
    for has_reader in [true, false] {
        let mut place = Place::new();
        let db = options().streams(1).open(place.path()).expect("a new database");
        let def = TableDef::new("two").column("id", Type::U64).column("n", Type::U64).column("m", Type::U64);
        let def =
            def.primary_key(["id"]).index(IndexDef::new("by_n", ["n"])).index(IndexDef::new("by_m", ["m"]));
        let table = db.create_table(def).expect("a table");
        let row = |id: u64| [id.into(), (id % 7).into(), (1_000 - id).into()];
        db.run(|txn| txn.insert_many(&table, (0..300).map(row)).map(drop)).expect("free keys");
        record(&db);
        let reader = has_reader.then(|| db.begin_read().expect("a transaction"));
        let (dropping, of) = (db.clone(), table.clone());
        let work = move || dropping.drop_index(&of, "by_n").expect("it is there");
        MEANWHILE.set(Some(Box::new(work)));
        image_now(&db);
        assert!(MEANWHILE.take().is_none(), "the index has been dropped");
        // No image is begun that would have to be given up.
        assert!(!has_reader || db.core.begin_image().is_none());
        let (with, without) = place.open_killed();
        assert_same(&with, &without);
        drop(reader);
    }
}

/// The worker makes images while transactions go on, and closing ends that.
#[test]
fn the_worker_makes_images() {
    let mut place = Place::new();
    let options = || Options::new().durability(Durability::None).index_image_every(1 << 16);
    let db = options().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    let mut random = Random::new(41, 0);
    let mut named = None;
    let patience = Patience::new();
    let mut images = 0;
    while images < 3 {
        patience.check(|| format!("{images} images"));
        let id = random.below(1000);
        let row = row(id);
        db.run(|txn| txn.upsert(&table, &row).map(drop)).expect("nobody else writes");
        let now = db.core.store.image_in_force();
        images += u32::from(now != named);
        named = now;
    }
    let expected = rows(&db);
    // A kill leaves the files of one moment, and copying takes longer.
    db.core.images.stop();
    let successor = place.path().join(IMAGE_FILE).with_extension("image.new");
    await_that("the last image gets its name", || !db.core.images.is_pending() && !successor.exists());
    let killed = place.copy();
    let left = options().open(&killed).expect("it opens");
    assert!(left.recovery().from_image && !left.recovery().was_closed);
    assert_eq!(rows(&left), expected);
    drop(table);
    db.close().expect("it closes");
    assert!(!successor.exists());
}

/// A database with a table of five rows.
fn five_rows() -> (Place, Database, Table) {
    let place = Place::new();
    let db = options().streams(1).open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    db.run(|txn| (0..5).try_for_each(|id| txn.insert(&table, &row(id)))).expect("free keys");
    (place, db, table)
}

/// Removes the entries that wait for it.
fn clean(db: &Database) {
    upkeep_until(db, "no entries wait", || db.core.stale.len() == 0);
}

/// Lets the ids of deleted rows be used again, and their tombstones wait.
fn bury(db: &Database, tombstones: u64) {
    upkeep_until(db, "tombstones wait, and no entries", || {
        db.stats().collector.waiting_tombstones >= tombstones && db.core.stale.len() == 0
    });
}

/// Writes a state record. The last one is the base of an image.
fn record(db: &Database) {
    let (permit, _) = db.core.enter(pantile_cc::Begin::LateWriter).expect("a slot");
    db.core.catch_up_state(&permit);
    db.core.leave(permit);
}

/// Makes an image as the worker would, and has it named.
fn image_now(db: &Database) -> bool {
    let core = &db.core;
    let before = core.store.image_in_force();
    if core.images.is_pending() {
        return false;
    }
    let Some(making) = core.images.try_begin(&core.store, 0) else { return false };
    core.make_image(making);
    if !core.images.is_pending() {
        return false;
    }
    // A record waits for the commits that are under way.
    let patience = Patience::new();
    while core.store.image_in_force() == before {
        patience.check(|| format!("no record names the image: {:#?}", db.stats()));
        db.upkeep();
        record(db);
        std::thread::yield_now();
    }
    core.adopt_image();
    true
}

/// Rows that opening counted with their slots are subtracted as such: what is left of them does not stay behind.
#[test]
fn what_is_counted_after_a_kill_goes_with_its_rows() {
    let mut place = Place::new();
    let db = options().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    let long = [7; 600];
    let row = |id: u64, len: usize| [id.into(), Value::Int(1), Value::Null, Value::Bytes(&long[..len])];
    let write = |db: &Database, ids: std::ops::Range<u64>, len: usize| {
        let table = db.table("a").expect("the table");
        db.run(|txn| ids.clone().try_for_each(|id| txn.upsert(&table, &row(id, len)).map(drop)))
            .expect("rows");
    };
    write(&db, 0..1000, 261);
    drop(table);
    db.close().expect("it closes");
    let db = options().open(place.path()).expect("it opens");
    write(&db, 1000..1010, 333);
    // What a kill leaves is opened twice, with a clean closing in between.
    let (killed, without) = place.open_killed();
    assert!(killed.recovery().from_image && !killed.recovery().was_closed);
    let live = |db: &Database| db.table("a").expect("the table").inner.rows.bytes();
    assert!(live(&killed) > live(&without), "they are counted with their slots");
    write(&killed, 0..300, 97);
    let path = place.scratch.path().join(format!("copy{}", place.copies - 1));
    killed.close().expect("it closes");
    let again = options().open(path).expect("it opens");
    assert!(again.recovery().from_image && again.recovery().was_closed);
    write(&without, 0..300, 97);
    [&again, &without].into_iter().for_each(|db| write(db, 0..1010, 41));
    assert_eq!(live(&again), live(&without));
    drop((again, without, db));
}

/// A sample that waits for a long append names no image that is made meanwhile: that holds rows of transactions
/// above the sample, which a power failure takes from a database whose commits do not wait for the device.
#[test]
fn an_image_made_during_a_sample_is_named_by_the_next() {
    let (_place, db, table) = five_rows();
    record(&db);
    let core = &db.core;
    let made = || {
        db.run(|txn| txn.update(&table, &[1u64.into()], &[(1, Value::Int(7))])).expect("a row");
        let at = core.registry.now();
        core.make_image(core.images.try_begin(&core.store, 0).expect("none is being made"));
        assert!(core.images.is_pending(), "an image has been made");
        at
    };
    let (before, sample) = (core.store.image_in_force(), core.store.sample(made));
    core.store.record_state(sample, &[]).expect("a record");
    assert_eq!(core.store.image_in_force(), before);
    let sample = core.store.sample(|| core.registry.now());
    core.store.record_state(sample, &[]).expect("a record");
    assert!(core.store.is_image_in_force() && core.store.image_in_force() != before);
    core.adopt_image();
    db.close().expect("it closes");
}

/// A transaction that stays open while others come and go. It has keys of its
/// own.
fn write_some(txn: &mut Transaction, db: &Database, random: &mut Random, writer: u64, writers: u64) -> bool {
    let name = *random.pick(&NAMES);
    let Ok(table) = db.table(name) else { return true };
    let id = random.below(30) * writers + writer;
    let text = format!("{:x}", random.below(1 << 40));
    let row = [id.into(), Value::Int(random.below(9) as i64), Value::Str(&text), Value::Bytes(b"x")];
    match random.below(5) {
        0 => txn.delete(&table, &[id.into()]).is_ok(),
        1 => txn.update(&table, &[id.into()], &[(1, Value::Int(random.below(9) as i64))]).is_ok(),
        2 => {
            let savepoint = txn.savepoint();
            let done = txn.upsert(&table, &row).is_ok();
            done && txn.rollback_to(savepoint).is_ok()
        }
        _ => txn.upsert(&table, &row).is_ok(),
    }
}

/// Transactions, one after the other, until it is over.
fn write_until(is_over: &AtomicBool, db: &Database, mut random: Random, writer: u64, writers: u64) {
    for _ in 0..20_000 {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut txn) = db.begin() else { return };
        let statements = 1 + random.below(4);
        let is_done = (0..statements).all(|_| write_some(&mut txn, db, &mut random, writer, writers));
        if is_done && !random.one_in(5) {
            let _ = txn.commit();
        }
    }
}

/// Images that are made beside open transactions, and a kill.
#[test]
fn an_image_made_beside_transactions_serves_after_a_kill() {
    const WRITERS: u64 = 4;
    let mut images = 0;
    for seed in seeds(29, 6) {
        let _note = SeedNote(seed);
        let (mut random, mut place) = (Random::new(seed, 0), Place::new());
        let db = options().index_image_every(u64::MAX).open(place.path()).expect("a new database");
        work(&db, &mut random, 100);
        let mut open: Vec<Option<Transaction>> = (0..WRITERS).map(|_| None).collect();
        for _ in 0..600 {
            let n = random.below(WRITERS) as usize;
            match &mut open[n] {
                None => open[n] = Some(db.begin().expect("a transaction")),
                Some(_) if random.one_in(6) => {
                    let txn = open[n].take().expect("it is open");
                    if random.one_in(3) {
                        drop(txn)
                    } else {
                        let _ = txn.commit();
                    }
                }
                Some(txn) => {
                    if !write_some(txn, &db, &mut random, n as u64, WRITERS) {
                        open[n] = None;
                    }
                }
            }
            if random.one_in(10) {
                db.upkeep();
            }
            if random.one_in(40) {
                images += u64::from(image_now(&db));
            }
            if random.one_in(200) {
                let (with, without) = place.open_killed();
                assert_same(&with, &without);
                assert_eq!(rows(&with), rows(&without));
            }
        }
    }
    assert!(images > 30, "{images} images were made");
}

/// The same beside threads that write all the time.
#[test]
fn an_image_made_beside_threads_serves_after_a_kill() {
    const WRITERS: u64 = 3;
    const TURNS: u64 = 4;
    for seed in seeds(31, 4) {
        let _note = SeedNote(seed);
        let mut place = Place::new();
        let db = options().index_image_every(u64::MAX).open(place.path()).expect("a new database");
        NAMES.iter().for_each(|name| drop(db.create_table(definition(name)).expect("a free name")));
        for turn in 0..TURNS {
            let is_over = AtomicBool::new(false);
            let images = std::thread::scope(|scope| {
                for writer in 0..WRITERS {
                    let (db, is_over) = (&db, &is_over);
                    let random = Random::new(seed, 1 + turn * WRITERS + writer);
                    scope.spawn(move || write_until(is_over, db, random, writer, WRITERS));
                }
                let images = (0..3).filter(|_| image_now(&db)).count();
                is_over.store(true, Ordering::Relaxed);
                images
            });
            assert!(images > 0);
            let (with, without) = place.open_killed();
            // The threads may have written so much since that the image is left out.
            let len = fs::metadata(place.path().join(DATA_FILE)).expect("the data file").len();
            assert!(with.recovery().from_image || len > 16 << 20);
            assert_same(&with, &without);
            assert_eq!(rows(&with), rows(&db));
        }
    }
}
