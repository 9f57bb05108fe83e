//! Damage to what an opening from an image does not read.

use super::*;
use crate::engine::table::Table;

/// A closed database with an image in which one row is damaged.
fn with_a_damaged_row() -> Place {
    let place = with_a_row();
    flip_the_needle(&place);
    place
}

/// The same, whole.
fn with_a_row() -> Place {
    with_a_row_and(|_| ())
}

/// The same, closed after something is done to the table.
fn with_a_row_and(then: impl FnOnce(&Table)) -> Place {
    let place = Place::new();
    let db = options().open(place.path()).expect("a new database");
    let table = db.create_table(definition("a")).expect("a table");
    let row = |id: u64| [id.into(), Value::Int(1), Value::Str("a needle"), Value::Bytes(b"x")];
    db.run(|txn| txn.insert(&table, &row(50))).expect("a free key");
    let hay = |id: u64| [id.into(), Value::Int(1), Value::Null, Value::Bytes(b"x")];
    let ids = (0..100).filter(|id| *id != 50);
    db.run(|txn| ids.clone().try_for_each(|id| txn.insert(&table, &hay(id)))).expect("free keys");
    then(&table);
    drop(table);
    db.close().expect("it closes");
    place
}

fn flip_the_needle(place: &Place) {
    let path = place.path().join(DATA_FILE);
    let data = fs::read(&path).expect("the data file");
    let at = data.windows(8).position(|bytes| bytes == b"a needle").expect("the row");
    let file = fs::File::options().write(true).open(&path).expect("the data file");
    pantile_media::files::write_all_at(&file, &[data[at] ^ 1], at as u64).expect("written");
}

fn is_damage<T>(result: crate::Result<T>) -> bool {
    matches!(result, Err(crate::Error::Damaged { .. }))
}

/// Opening believes an image whose checksums fit, so a check compares it with the rows.
#[test]
fn an_image_that_is_wrong_is_found_by_a_check() {
    let exchanged = |tree: &Tree| {
        let tuples = [50, 51].map(|key| tree.get(&[key], None).expect("an entry"));
        assert!(tree.remove(&[50], tuples[0], || 0) && tree.remove(&[51], tuples[1], || 0));
        tree.insert(&[50], tuples[1], 0);
        tree.insert(&[51], tuples[0], 0);
    };
    let wrong: [fn(&Tree); 2] = [|_| (), exchanged];
    for (n, make_wrong) in wrong.into_iter().enumerate() {
        let mut place = with_a_row_and(|table| make_wrong(table.inner.tree()));
        assert!(options().open(place.copy()).expect("it opens").recovery().from_image);
        let report = crate::tools::check(place.path(), &crate::tools::CheckOptions::new()).expect("a check");
        assert_eq!(report.is_sound(), n == 0, "{n}: {report:?}");
        assert!(report.findings.iter().all(|found| found.what.contains("by the index image")), "{report:?}");
    }
}

/// What opening does not read any more shows later, and at the next opening.
#[test]
fn damage_that_opening_does_not_read_is_found() {
    let mut place = with_a_damaged_row();
    assert!(is_damage(options().index_image(false).open(place.copy())), "a scan finds it");
    let db = options().open(place.path()).expect("it opens");
    assert!(db.recovery().from_image && db.stats().unread_blocks > 0);
    // The collector must not give the damaged row a checksum that fits.
    let table = db.table("a").expect("the table");
    let even = (0..100u64).step_by(2).filter(|id| *id != 50);
    db.run(|txn| even.clone().try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop)))
        .expect("nobody else writes");
    let mut looks = 0;
    db.compact_with(|_| {
        looks += 1;
        if looks < 5 { std::ops::ControlFlow::Continue(()) } else { std::ops::ControlFlow::Break(()) }
    })
    .expect("it compacts");
    upkeep_until(&db, "everything has been read", || db.stats().unread_blocks == 0);
    assert!(db.stats().damaged_contents > 0);
    drop(table);
    db.close().expect("it closes");
    assert!(is_damage(options().open(place.path())), "the next opening reads everything");
}

/// A damaged content keeps its own block from being freed, and no other one.
#[test]
fn space_is_given_back_beside_damage() {
    let place = with_a_damaged_row();
    let db = options().open(place.path()).expect("it opens");
    upkeep_until(&db, "everything has been read", || db.stats().unread_blocks == 0);
    assert_eq!(db.stats().damaged_contents, 1);
    let (damaged, other) =
        (db.table("a").expect("the table"), db.create_table(definition("b")).expect("a table"));
    let even = (0..100u64).step_by(2).filter(|id| *id != 50);
    db.run(|txn| even.clone().try_for_each(|id| txn.delete(&damaged, &[id.into()]).map(drop)))
        .expect("nobody else writes");
    let (mut rounds, patience) = (0, Patience::new());
    while db.stats().collector.blocks_reclaimed < 50 {
        let row = |id: u64| [id.into(), Value::Int(rounds), Value::Null, Value::Bytes(b"x")];
        db.run(|txn| (0..1000).try_for_each(|id| txn.upsert(&other, &row(id)).map(drop)))
            .expect("nobody else writes");
        db.upkeep();
        rounds += 1;
        patience.check(|| format!("{rounds} rounds: {:?}", db.stats().collector));
    }
    assert_eq!(db.stats().damaged_contents, 1, "however often it is met");
}

/// A content that opening has found whole can rot later. A collector that copied it would hide that.
#[test]
fn what_rots_later_is_not_copied() {
    let place = with_a_row();
    let db = options().index_image(false).open(place.path()).expect("it opens");
    let table = db.table("a").expect("the table");
    // They share a block with it, which is to be emptied when they have gone.
    let others = 200..214u64;
    let like = |id: u64| [id.into(), Value::Int(1), Value::Str("a noodle"), Value::Bytes(b"x")];
    db.run(|txn| others.clone().try_for_each(|id| txn.insert(&table, &like(id)))).expect("free keys");
    db.run(|txn| others.clone().try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop))).expect("rows");
    flip_the_needle(&place);
    // What is damaged cannot be moved, so this goes on until it has been met.
    let mut looks = 0;
    db.compact_with(|_| {
        looks += 1;
        match db.stats().damaged_contents == 0 && looks < 10_000 {
            true => std::ops::ControlFlow::Continue(()),
            false => std::ops::ControlFlow::Break(()),
        }
    })
    .expect("it compacts");
    assert_eq!(db.stats().damaged_contents, 1);
    let found = db.verify(None).expect("it looks at all");
    assert_eq!(found.damaged.len(), 1, "{found:?}");
}

/// Also if nobody has written anything, and if the process is killed.
#[test]
fn damage_that_is_found_takes_the_image_its_name() {
    let mut place = with_a_damaged_row();
    let db = options().open(place.path()).expect("it opens");
    assert!(db.recovery().from_image);
    let killed_before = place.copy();
    upkeep_until(&db, "everything has been read, and no record names the image", || {
        db.stats().unread_blocks == 0 && db.core.store.image_in_force().is_none()
    });
    assert!(options().open(killed_before).expect("nobody had found it").recovery().from_image);
    assert!(is_damage(options().open(place.copy())), "after a kill");
    db.close().expect("it closes");
    assert!(is_damage(options().open(place.path())), "after closing");
}

/// A block is looked at as a whole, and the next ones wait until it has been paid
/// for.
#[test]
fn damage_is_looked_for_at_a_bounded_rate() {
    let (place, _) = small(51);
    let db = options().open(place.path()).expect("it opens");
    let (unread, store) = (&db.core.unread, &db.core.store);
    let _visitor = db.core.visitor("a test").expect("a slot");
    let left = unread.left();
    assert!(left > 10, "{left} blocks");
    unread.look(store, 1);
    assert_eq!(unread.left(), left - 1);
    for _ in 0..20 {
        unread.look(store, 1);
    }
    assert_eq!(unread.left(), left - 1, "a block has more than 20 bytes");
    unread.look(store, 1 << 30);
    assert!(!unread.is_left());
}

#[test]
fn reads_look_at_checksums_if_asked_to() {
    let place = with_a_damaged_row();
    let db = options().verify_reads(true).open(place.path()).expect("it opens");
    let table = db.table("a").expect("the table");
    let read =
        |id: u64| db.begin_read().and_then(|txn| txn.get(&table, &[id.into()]).map(|row| row.is_some()));
    assert!(is_damage(read(50)));
    assert!(read(49).expect("this row is whole"));
    let update = db.run(|txn| txn.update(&table, &[50u64.into()], &[(1, Value::Int(2))]));
    assert!(is_damage(update));
    let txn = db.begin_read().expect("a transaction");
    let all: Vec<_> = txn.scan(&table, Range::all()).expect("a scan").collect();
    assert_eq!(all.iter().filter(|row| row.is_err()).count(), 1);
}
