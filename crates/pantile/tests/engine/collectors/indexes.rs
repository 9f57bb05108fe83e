//! Unique and other indexes agree with scans of the table.

use pantile::lab::medium_of;
use std::collections::BTreeMap;

use pantile::{Database, IndexDef, Range, Result, Row, Table, TableDef, Transaction, Type};
use pantile_testkit::{Random, copy_of};

use super::beside::{collectors, options, settle};
use crate::collector::rows::{collect_until, open};

const ROWS: u64 = 60;

/// By id: the unique name and the size.
type Things = BTreeMap<u64, (u64, u64)>;

fn table(db: &Database) -> Table {
    let def = TableDef::new("things").column("id", Type::U64).column("name", Type::U64);
    let def = def.column("size", Type::U64).primary_key(["id"]).index(IndexDef::unique("by_name", ["name"]));
    let def = def.index(IndexDef::new("by_size", ["size"]));
    db.table("things").or_else(|_| db.create_table(def)).expect("a table")
}

fn thing(row: Result<Row<'_>>) -> Result<(u64, (u64, u64))> {
    let row = row?;
    Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))
}

fn check(txn: &Transaction, table: &Table, expected: &Things) {
    let rows: Vec<_> = expected.iter().map(|(id, thing)| (*id, *thing)).collect();
    let by_id: Result<Vec<_>> = txn.scan(table, Range::all()).expect("scan").map(thing).collect();
    assert_eq!(by_id.expect("rows"), rows);
    for name in ["by_name", "by_size"] {
        let index = table.index(name).expect("index");
        let found: Result<Vec<_>> = txn.scan_index(&index, Range::all()).expect("scan").map(thing).collect();
        let mut found = found.expect("rows");
        found.sort_unstable();
        assert_eq!(found, rows, "{name}");
    }
    let index = table.index("by_name").expect("index");
    for (id, (name, _)) in expected {
        let found = txn.get_by_index(&index, &[(*name).into()]).expect("get").expect("a row");
        assert_eq!(found.get::<u64>(0).expect("id"), *id);
    }
}

#[test]
fn indexes_agree_with_rows() {
    for (seed, collector) in (1..).zip(collectors()) {
        let db = open(options(collector));
        let table = table(&db);
        let mut random = Random::new(seed, 0);
        let mut things = Things::new();
        let mut old: Option<(Transaction, Things)> = None;
        let mut refused = 0;
        for round in 0..200u64 {
            let (id, name, size) = (random.below(ROWS), random.below(2 * ROWS), random.below(5));
            if round % 4 == 3 {
                db.run(|txn| txn.delete(&table, &[id.into()])).expect("a commit");
                things.remove(&id);
            } else {
                // Names move from row to row.
                let is_taken = things.iter().any(|(other, (taken, _))| *other != id && *taken == name);
                let put =
                    db.run(|txn| txn.upsert(&table, &[id.into(), name.into(), size.into()]).map(|_| ()));
                assert_eq!(put.is_err(), is_taken, "{put:?}");
                refused += u64::from(is_taken);
                if !is_taken {
                    things.insert(id, (name, size));
                }
            }
            if round % 40 == 0 {
                if let Some((txn, was)) = old.replace((db.begin_read().expect("begin"), things.clone())) {
                    check(&txn, &table, &was);
                }
                collect_until(&db, "a moment", |_| true);
            }
        }
        assert!(refused > 0);
        let (txn, was) = old.take().expect("a reader");
        check(&txn, &table, &was);
        drop(txn);
        settle(&db);
        check(&db.begin_read().expect("begin"), &table, &things);
        let again = open(options(collector).on_medium(copy_of(&*medium_of(&db))));
        check(&again.begin_read().expect("begin"), &again.table("things").expect("table"), &things);
    }
}
