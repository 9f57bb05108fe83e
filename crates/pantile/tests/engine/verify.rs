//! Looking at checksums while a database is open.

use std::ops::ControlFlow::{Break, Continue};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::lab::{SimulatedTime, medium_of};
use pantile::{
    Database, Decimal, Error, GcOptions, IndexDef, Isolation, MediumKind, Options, Range, Table, TableDef,
    TransactionOptions, Type, Value,
};
use pantile_media::unshared::Unshared;
use pantile_testkit::{SaysDone, fails};

fn filled(options: Options) -> (Database, Table) {
    let db = options.medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("text", Type::String(40));
    let t = db.create_table(def.primary_key(["id"])).expect("create");
    db.run(|txn| (0..1000u64).try_for_each(|id| txn.insert(&t, &[id.into(), text(id).as_str().into()])))
        .expect("insert");
    (db, t)
}

fn text(id: u64) -> String {
    format!("the text of row {id:06}")
}

#[test]
fn a_bit_that_flips_while_the_database_is_open_is_found() {
    let (db, table) = filled(Options::new());
    let found = db.verify(None).expect("verify");
    assert!(found.damaged.is_empty() && found.rows == 1000, "{found:?}");
    let other = db.create_table(TableDef::new("other").column("id", Type::U64).primary_key(["id"]));
    let other = other.expect("create");
    fails!(db.verify_table(&table, || Break(())), Error::Cancelled, "cancelled");
    let medium = medium_of(&db);
    let mut bytes = vec![0; medium.len() as usize];
    medium.get(0, &mut bytes).expect("read");
    for (n, id) in (1..).zip([7u64, 500, 999]) {
        let wanted = text(id);
        let at = bytes.windows(wanted.len()).position(|w| w == wanted.as_bytes()).expect("the row");
        medium.put(at as u64, &[bytes[at] ^ 1]).expect("write");
        let found = db.verify(None).expect("verify");
        assert_eq!((found.damaged.len(), found.damaged[0].table.as_str()), (n, "t"), "{found:?}");
        assert_eq!(db.verify_table(&table, || Continue(())).expect("verify").damaged, found.damaged);
        assert!(
            found.damaged.iter().any(|row| row.tuple == id && row.what.contains("checksum")),
            "{found:?}"
        );
    }
    // Damage elsewhere is nothing to a table.
    let found = db.verify_table(&other, || Continue(())).expect("verify");
    assert!(found.damaged.is_empty() && found.rows == 0, "{found:?}");
}

#[test]
fn writers_and_the_collector_cause_no_false_finding() {
    let gc = GcOptions { theta: 0.5, queue_share: 0.0, ..GcOptions::default() };
    let (db, t) = filled(Options::new().block_slots(8).gc(gc));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let over = SaysDone(&done);
            for round in 0..40_000u64 {
                let id = round % 1000;
                if round % 7 == 0 {
                    db.run(|txn| txn.delete(&t, &[id.into()])).expect("delete");
                } else {
                    db.run(|txn| txn.upsert(&t, &[id.into(), text(round).as_str().into()])).expect("upsert");
                }
            }
            drop(over);
        });
        let mut rounds = 0;
        while !done.load(Ordering::Relaxed) || rounds == 0 {
            let found = db.verify(None).expect("verify");
            assert!(found.damaged.is_empty(), "{found:?}");
            rounds += 1;
        }
    });
}

/// At a rate that would take years it waits, and notices that the database is
/// closed. A rate of nothing would never end.
#[test]
fn a_slow_look_ends_when_the_database_is_closed() {
    let time = SimulatedTime::default();
    let (db, _table) = filled(Options::new().simulated_time(time.clone()));
    let (closing, began) = (db.clone(), time.now());
    time.on_pause({
        let time = time.clone();
        move || {
            if time.now() - began > Duration::from_secs(5) {
                // The calls that come from closing itself find it closed.
                let _ = closing.clone().close();
            }
        }
    });
    fails!(db.verify(Some(0)), Error::InvalidOption(_), "bytes_per_second is 0; it can be 1 or more");
    fails!(db.verify(Some(1)), Error::Closed, "open it again");
    assert!(time.now() - began < Duration::from_secs(20));
}

/// A damaged row does not end the upkeep: what is not known of it stays.
#[test]
fn the_cleaner_leaves_a_damaged_row_alone() {
    let time = SimulatedTime::default();
    let db =
        Options::new().medium(MediumKind::Dram).simulated_time(time.clone()).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("text", Type::String(40));
    let def = def.primary_key(["id"]).index(IndexDef::new("by_text", ["text"]));
    let t = db.create_table(def).expect("create");
    db.run(|txn| txn.insert(&t, &[7u64.into(), text(7).as_str().into()])).expect("insert");
    let medium = medium_of(&db);
    let mut bytes = vec![0; medium.len() as usize];
    medium.get(0, &mut bytes).expect("read");
    let wanted = text(7);
    let at = bytes.windows(wanted.len()).position(|w| w == wanted.as_bytes()).expect("the row");
    // No UTF-8 any more.
    medium.put(at as u64, &[0xff]).expect("write");
    let mut txn = db.begin().expect("begin");
    assert!(txn.upsert(&t, &[7u64.into(), "another".into()]).expect("upsert"));
    txn.rollback();
    // Its entry is looked at, in the rounds that come with commits.
    for id in 100..200u64 {
        time.advance(Duration::from_millis(100));
        db.run(|txn| txn.insert(&t, &[id.into(), "new".into()])).expect("it goes on");
    }
    assert_eq!(db.verify(None).expect("verify").damaged.len(), 1);
    db.close().expect("it closes");
}

/// A row whose content header is damaged is neither absent nor another one, with
/// checksums or without.
#[test]
fn a_damaged_header_is_no_absent_row() {
    for damage in [[0x5a; 24], [0; 24]] {
        let (db, t) = filled(Options::new());
        let medium = medium_of(&db);
        let mut bytes = vec![0; medium.len() as usize];
        medium.get(0, &mut bytes).expect("read");
        let wanted = text(500);
        let text_at = bytes.windows(wanted.len()).position(|w| w == wanted.as_bytes()).expect("the row");
        // The tuple's id is the second word of the header, and of nothing else so near.
        let is_header = |at: &usize| bytes[*at..at + 5] == 500u64.to_le_bytes()[..5];
        let header =
            (text_at - 64..text_at).filter(|at| at % 8 == 0).find(is_header).expect("its header") - 8;
        medium.put(header as u64, &damage).expect("write");
        let key = [500u64.into()];
        let txn = db.begin_read().expect("begin");
        fails!(txn.get(&t, &key), Error::Damaged { .. }, "table");
        assert!(txn.scan(&t, Range::all()).expect("scan").any(|row| row.is_err()));
        drop(txn);
        let insert = db.run(|txn| txn.insert(&t, &[500u64.into(), "again".into()]));
        fails!(insert, Error::Damaged { .. }, "table");
        fails!(db.run(|txn| txn.delete(&t, &key)), Error::Damaged { .. }, "table");
        let txn = db.begin_read().expect("begin");
        let rows = txn.get_many(&t, &[[499u64.into()], [501u64.into()]]);
        assert!(rows.is_ok_and(|rows| rows.iter().all(Option::is_some)));
    }
}

/// Every way to make a version from a row that is there looks at the row's checksum first: the new version gets
/// one of its own, behind which nobody would find the damage again.
#[test]
fn no_version_is_made_from_a_damaged_row() {
    let def = TableDef::new("t").column("id", Type::U64).column("text", Type::String(40));
    let def = def.column("n", Type::U64).primary_key(["id"]);
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let t = db.create_table(def).expect("create");
    let row = |id: u64| db.run(|txn| txn.insert(&t, &[id.into(), text(id).as_str().into(), 0u64.into()]));
    (0..100).try_for_each(row).expect("insert");
    let medium = medium_of(&db);
    let mut bytes = vec![0; medium.len() as usize];
    medium.get(0, &mut bytes).expect("read");
    let wanted = text(50);
    let at = bytes.windows(wanted.len()).position(|w| w == wanted.as_bytes()).expect("the row");
    medium.put(at as u64, &[bytes[at] ^ 1]).expect("write");

    let (key, change) = ([50u64.into()], [("n", 1u64.into())]);
    let is_found = |outcome: pantile::Result<()>| fails!(outcome, Error::Damaged { .. }, "table");
    is_found(db.run(|txn| txn.update(&t, &key, &change).map(drop)));
    is_found(db.run(|txn| txn.modify(&t, &key, |row| row.set("n", 1u64.into()).map(|()| true)).map(drop)));
    is_found(db.run(|txn| txn.update_many(&t, &[(key, change)]).map(drop)));
    is_found(db.run(|txn| txn.get_for_update(&t, &key).map(drop)));
    is_found(db.run(|txn| {
        let mut cursor = txn.cursor(&t, Range::all())?;
        while cursor.next_for_update(txn, false)?.is_some() {}
        Ok(())
    }));
    assert_eq!(db.verify(None).expect("verify").damaged.len(), 1);
    // A deletion by a key needs nothing of the row. One by a place needs the key, and so does what is prepared.
    let mut txn = db.begin().expect("begin");
    assert!(txn.delete(&t, &key).expect("delete"));
    let prepared = db.prepare(txn, b"deletion");
    fails!(prepared.map(drop), Error::Damaged { .. }, "table");
    is_found(db.run(|txn| {
        let mut cursor = txn.cursor(&t, Range::prefix(&[50u64.into()]))?;
        cursor.next(txn).map(drop)?;
        let place = cursor.row_id().expect("a row");
        txn.delete_row(&t, place).map(drop)
    }));
    // The other rows, and writes that need nothing of the old row.
    db.run(|txn| txn.update(&t, &[51u64.into()], &change)).expect("another row");
    db.run(|txn| txn.upsert(&t, &[50u64.into(), "whole again".into(), 1u64.into()])).expect("a new row");
    db.run(|txn| txn.update(&t, &key, &change)).expect("update");
    assert!(db.verify_table(&t, || Continue(())).is_ok_and(|found| found.damaged.is_empty()));
}

/// Changes one byte of the first place at which these bytes are on the medium.
fn rot(db: &Database, wanted: &[u8], at: usize, to: u8) {
    let medium = medium_of(db);
    let mut bytes = vec![0; medium.len() as usize];
    medium.get(0, &mut bytes).expect("read");
    let found = bytes.windows(wanted.len()).position(|w| w == wanted).expect("the bytes");
    medium.put((found + at) as u64, &[to]).expect("write");
}

/// A damaged row does not say which entries it has. A row that replaces it is found by all of its own.
#[test]
fn a_row_that_replaces_a_damaged_one_is_in_every_index() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("c", Type::U64).primary_key(["id"]);
    let t = db.create_table(def.index(IndexDef::new("by_c", ["c"]))).expect("create");
    let c = |id: u64| 0x6c65_7070_6120_6e00 + id;
    for id in 0..2 {
        db.run(|txn| txn.insert(&t, &[id.into(), c(id).into()])).expect("insert");
        rot(&db, &c(id).to_le_bytes(), 0, id as u8 + 10);
    }
    fails!(db.run(|txn| txn.delete(&t, &[0u64.into()])), Error::Damaged { .. }, "table");
    // A row that was written over it and taken back says nothing of it.
    let read = db.run(|txn| {
        let before = txn.savepoint();
        txn.update(&t, &[0u64.into()], &[("c", 1u64.into())])?;
        txn.modify(&t, &[0u64.into()], |row| row.set("c", 2u64.into()).map(|()| true))?;
        txn.rollback_to(before)?;
        txn.get_for_update(&t, &[0u64.into()]).map(drop)
    });
    fails!(read, Error::Damaged { .. }, "table");
    // The very keys that the damage looks like.
    db.run(|txn| txn.upsert(&t, &[0u64.into(), c(10).into()])).expect("upsert");
    db.run(|txn| txn.update(&t, &[1u64.into()], &[("c", c(11).into())])).expect("all columns");
    let by_c = t.index("by_c").expect("index");
    let txn = db.begin_read().expect("begin");
    for id in 0..2 {
        let found = txn.scan_index(&by_c, Range::prefix(&[c(id + 10).into()])).expect("scan");
        let ids: Vec<u64> = found.map(|row| row.expect("a row").get("id").expect("an id")).collect();
        assert_eq!(ids, [id]);
    }
    drop(txn);
    db.run(|txn| txn.delete(&t, &[0u64.into()])).expect("it is whole again");
}

/// A row whose key in an index is damaged is not left out by what goes along the index, and its key is not free.
#[test]
fn a_row_with_a_damaged_key_is_not_left_out() {
    let def = TableDef::new("t").column("id", Type::U64).column("c", Type::U64).primary_key(["id"]);
    for index in [IndexDef::new("by_c", ["c"]), IndexDef::unique("by_c", ["c"])] {
        let is_unique = index.unique;
        let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
        let t = db.create_table(def.clone().index(index)).expect("create");
        let c = |id: u64| 0x6c65_7070_6120_6e00 + id;
        (0..9).for_each(|id| db.run(|txn| txn.insert(&t, &[id.into(), c(id).into()])).expect("insert"));
        // Stale entries are no damage.
        db.run(|txn| txn.update(&t, &[7u64.into()], &[("c", c(20).into())])).expect("update");
        let before = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
        db.run(|txn| txn.update(&t, &[8u64.into()], &[("c", c(30).into())])).expect("update");
        let by_c = t.index("by_c").expect("index");
        for isolation in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
            for read_only in [false, true] {
                let options = TransactionOptions::new().isolation(isolation).read_only(read_only);
                let txn = db.begin_with(options).expect("begin");
                assert_eq!(
                    txn.scan_index(&by_c, Range::all()).expect("scan").filter(|r| r.is_ok()).count(),
                    9
                );
            }
        }
        rot(&db, &c(4).to_le_bytes(), 1, 99);
        for isolation in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
            for read_only in [false, true] {
                let options = TransactionOptions::new().isolation(isolation).read_only(read_only);
                let mut txn = db.begin_with(options).expect("begin");
                fails!(txn.get_by_index(&by_c, &[c(4).into()]).map(drop), Error::Damaged { .. }, "table");
                let found: Vec<_> = txn.scan_index(&by_c, Range::all()).expect("scan").collect();
                assert_eq!(found.iter().filter(|row| row.is_err()).count(), 1, "{isolation:?}");
                assert_eq!(found.len(), 9, "{isolation:?}");
                drop(found);
                let mut cursor = txn.index_cursor(&by_c, Range::prefix(&[c(4).into()])).expect("a cursor");
                fails!(cursor.next(&txn).map(drop), Error::Damaged { .. }, "table");
                if !read_only {
                    let locked = cursor.next_for_update(&mut txn, false).map(drop);
                    fails!(locked, Error::Damaged { .. }, "table");
                    if is_unique {
                        let insert = txn.insert(&t, &[50u64.into(), c(4).into()]);
                        fails!(insert, Error::Damaged { .. }, "table");
                    }
                }
            }
        }
        fails!(before.get_by_index(&by_c, &[c(4).into()]).map(drop), Error::Damaged { .. }, "table");
        assert!(before.get_by_index(&by_c, &[c(8).into()]).expect("a row").is_some());
    }
}

/// Without `verify_reads`, a damaged row may be read as another. If it is none at all, that is an error.
#[test]
fn whatever_a_row_has_become_reading_it_does_not_panic() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t")
        .column("id", Type::U64)
        .column("code", Type::FixedString(6))
        .nullable("price", Type::Decimal { precision: 9, scale: 2 })
        .column("name", Type::String(100))
        .nullable("doc", Type::Bytes(1 << 20))
        .nullable("note", Type::String(1 << 20))
        .primary_key(["id", "name"]);
    let def = def.column("name2", Type::String(40)).index(IndexDef::new("by_name", ["name2", "code"]));
    let t = db.create_table(def).expect("create");
    let (long, name) = ("l".repeat(70_000), "a name that is found");
    let key = [1u64.into(), name.into()];
    let price = Value::Decimal(Decimal { units: 995, scale: 2 });
    let row = [
        key[0],
        "abcdef".into(),
        price,
        key[1],
        Value::Bytes(b"short"),
        long.as_str().into(),
        "other".into(),
    ];
    db.run(|txn| txn.insert(&t, &row)).expect("insert");
    let medium = medium_of(&db);
    let mut bytes = vec![0; medium.len() as usize];
    medium.get(0, &mut bytes).expect("read");
    let found = bytes.windows(name.len()).position(|w| w == name.as_bytes()).expect("the row");
    let by_name = t.index("by_name").expect("index");
    let read = || {
        let txn = db.begin_read()?;
        let all = txn.scan_index(&by_name, Range::all())?.map(|row| row.map(|row| format!("{row:?}")));
        all.collect::<Result<Vec<_>, Error>>()?;
        let row = txn.get(&t, &key)?.expect("a row is not absent");
        let said = format!("{row:?}");
        row.pieces("doc")?.into_iter().flatten().try_for_each(|piece| piece.map(drop))?;
        let values = row.to_values()?;
        let _: (&str, &str) = (row.get("code")?, row.get("name2")?);
        Ok::<_, Error>((said, values))
    };
    let whole = read().expect("it is whole");
    let (mut damaged, mut others) = (0, 0);
    for at in found - 80..found + name.len() + 40 {
        for byte in [0, 1, 0x7f, 0xff, bytes[at] ^ 1] {
            medium.put(at as u64, &[byte]).expect("write");
            match read() {
                Ok(read) => others += u32::from(read != whole),
                Err(Error::Damaged { .. }) => damaged += 1,
                Err(other) => panic!("byte {at}: {other}"),
            }
            let mut txn = db.begin().expect("begin");
            match txn.insert(&t, &row) {
                Err(Error::DuplicateKey { .. } | Error::Damaged { .. }) => txn.rollback(),
                other => panic!("byte {at}: the key is taken, and {other:?}"),
            }
        }
        medium.put(at as u64, &bytes[at..=at]).expect("write");
    }
    assert_eq!(read().expect("it is whole again"), whole);
    assert!(damaged > 0 && others > 0, "{damaged} damaged, {others} read as others");
    rot(&db, name.as_bytes(), 3, 0xff);
    let txn = db.begin_read().expect("begin");
    let row = txn.get(&t, &key).expect("get").expect("a row");
    let place = "column \"name\" of table \"t\"";
    fails!(row.get::<&str>("name").map(drop), Error::Damaged { .. }, place);
    fails!(row.to_values().map(drop), Error::Damaged { .. }, place);
    assert_eq!(row.get::<u64>("id").expect("the others"), 1);
    assert!(format!("{row:?}").contains("<damaged>"));
}

/// A value out of line is verified with the row that is read to be changed.
#[test]
fn no_long_value_is_made_from_a_damaged_one() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("doc", Type::String(1 << 20));
    let t = db.create_table(def.primary_key(["id"])).expect("create");
    let doc = "a long tale ".repeat(20_000);
    db.run(|txn| txn.insert(&t, &[1u64.into(), doc.as_str().into()])).expect("insert");
    rot(&db, b"a long tale ", 0, b'A');
    let add = |row: &mut pantile::RowEdit<'_>| {
        let longer = row.get::<String>("doc")? + "!";
        row.set("doc", longer.as_str().into()).map(|()| true)
    };
    fails!(db.run(|txn| txn.modify(&t, &[1u64.into()], add)), Error::Damaged { .. }, "table");
    let read = db.run(|txn| txn.get_for_update(&t, &[1u64.into()])?.expect("a row").get::<String>("doc"));
    fails!(read, Error::Damaged { .. }, "table");
    // What replaces it needs nothing of it, nor does its deletion.
    let mut txn = db.begin().expect("begin");
    assert!(txn.delete(&t, &[1u64.into()]).expect("delete"));
    txn.rollback();
    db.run(|txn| txn.update(&t, &[1u64.into()], &[("doc", "short".into())])).expect("update");
    assert!(db.verify_table(&t, || Continue(())).is_ok_and(|found| found.damaged.is_empty()));
}
