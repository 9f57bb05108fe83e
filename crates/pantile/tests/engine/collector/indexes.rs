//! Secondary indexes and out-of-line values with the collector at work.

use pantile::lab::medium_of;
use std::collections::BTreeMap;

use pantile::{Database, IndexDef, Range, Result, Row, Table, TableDef, Transaction, Type, Value};
use pantile_testkit::{Random, copy_of, mix};

use super::rows::{collect_until, let_epochs_pass, open, options, settle};

fn table(db: &Database) -> Table {
    let def = TableDef::new("things").column("id", Type::U64).column("name", Type::String(40));
    let def = def.column("size", Type::U64).column("data", Type::Bytes(400_000)).primary_key(["id"]);
    let def = def.index(IndexDef::unique("by_name", ["name"])).index(IndexDef::new("by_size", ["size"]));
    db.table("things").or_else(|_| db.create_table(def)).expect("a table")
}

/// By id: the size, and the length of the data.
type Things = BTreeMap<u64, (u64, usize)>;

fn put(txn: &mut Transaction, table: &Table, id: u64, size: u64, len: usize) -> Result<()> {
    let (name, data) = (format!("{id} of {size}"), vec![mix(id ^ size) as u8; len]);
    txn.upsert(table, &[id.into(), name.as_str().into(), size.into(), Value::Bytes(&data)]).map(|_| ())
}

fn thing(row: Row<'_>) -> Result<(u64, (u64, usize))> {
    let (id, size) = (row.get(0)?, row.get(2)?);
    assert_eq!(row.get::<&str>(1)?, format!("{id} of {size}"));
    let data = row.get::<Option<Vec<u8>>>(3)?.unwrap_or_default();
    assert!(data.iter().all(|&b| b == mix(id ^ size) as u8), "the data of {id} as of {size}");
    Ok((id, (size, data.len())))
}

/// Every index shows the same rows, each of them once.
fn check(txn: &Transaction, table: &Table, expected: &Things) {
    let all =
        |rows: pantile::Scan<'_>| rows.map(|row| thing(row?)).collect::<Result<Vec<_>>>().expect("rows");
    let by_id = all(txn.scan(table, Range::all()).expect("scan"));
    assert_eq!(by_id, expected.clone().into_iter().collect::<Vec<_>>());
    for name in ["by_name", "by_size"] {
        let index = table.index(name).expect("index");
        let mut rows = all(txn.scan_index(&index, Range::all()).expect("scan"));
        rows.sort_unstable();
        assert_eq!(rows, by_id, "{name}");
    }
    let index = table.index("by_name").expect("index");
    for (id, (size, _)) in expected {
        let name = format!("{id} of {size}");
        assert!(txn.get_by_index(&index, &[name.as_str().into()]).expect("get").is_some(), "{name}");
    }
}

#[test]
fn indexes_agree_with_rows_that_move_and_go() {
    let db = open(options());
    let table = table(&db);
    let mut random = Random::new(9, 0);
    let mut things = Things::new();
    let mut old: Option<(Transaction, Things)> = None;
    for round in 1..=120u64 {
        db.run(|txn| {
            let mut random = random.clone();
            for _ in 0..20 {
                let id = random.below(150);
                if random.below(4) == 0 {
                    txn.delete(&table, &[id.into()])?;
                    things.remove(&id);
                } else {
                    put(txn, &table, id, round, 20)?;
                    things.insert(id, (round, 20));
                }
            }
            Ok::<_, pantile::Error>(())
        })
        .expect("a commit");
        random = Random::new(random.word(), 0);
        let_epochs_pass(&db);
        if round % 20 == 0 {
            if let Some((txn, was)) = old.take() {
                check(&txn, &table, &was);
            }
            check(&db.begin_read().expect("begin"), &table, &things);
            old = Some((db.begin_read().expect("begin"), things.clone()));
        }
    }
    drop(old);
    let stats = settle(&db);
    assert!(stats.collector.blocks_reclaimed > 50 && stats.collector.survivors_relocated > 20, "{stats:#?}");
    let stats = collect_until(&db, "stale entries go", |s| s.stale_entries == 0);
    check(&db.begin_read().expect("begin"), &table, &things);
    assert!(stats.index_bytes < 1 << 20, "{} bytes of indexes", stats.index_bytes);
    let db = open(options().on_medium(copy_of(&*medium_of(&db))));
    check(&db.begin_read().expect("begin"), &self::table(&db), &things);
}

/// Long values lie in pieces in a table of their own, and are removed with
/// their rows.
#[test]
fn values_out_of_line_are_reclaimed() {
    let db = open(options());
    let table = table(&db);
    let mut things = Things::new();
    let write = |things: &mut Things, id: u64, size: u64, len: usize| {
        db.run(|txn| put(txn, &table, id, size, len)).expect("a commit");
        things.insert(id, (size, len));
    };
    for id in 0..10 {
        write(&mut things, id, 0, 150_000);
    }
    let reader = db.begin_read().expect("begin");
    let before = things.clone();
    for round in 1..=40 {
        for id in (0..10).filter(|id| id % 5 != 4) {
            write(&mut things, id, round, 100_000 + (round * 1000) as usize);
        }
    }
    check(&reader, &table, &before);
    drop(reader);
    settle(&db);
    check(&db.begin_read().expect("begin"), &table, &things);
    let bytes = |db: &Database| db.space_by_table().iter().map(|space| space.bytes).sum::<u64>();
    // 48 MB were written and 1.5 MB are left, in blocks of 16 pieces.
    collect_until(&db, "old values go", |_| bytes(&db) < 12 << 20);
    for id in 0..10u64 {
        assert!(db.run(|txn| txn.delete(&table, &[id.into()])).expect("delete"));
    }
    things.clear();
    collect_until(&db, "all values go", |_| bytes(&db) < 6 << 20);
    check(&db.begin_read().expect("begin"), &table, &things);
    let db = open(options().on_medium(copy_of(&*medium_of(&db))));
    check(&db.begin_read().expect("begin"), &self::table(&db), &things);
}
