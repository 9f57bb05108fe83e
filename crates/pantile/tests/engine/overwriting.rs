//! Updates that name all columns beside the key, and so leave nothing of the old row.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use pantile::{
    ColumnDef, Error, IndexDef, Options, OwnedValue, Result, Table, TableChange, TableDef, Transaction, Type,
    Value,
};
use pantile_nvm::{NvmConfig, NvmMedium};
use pantile_testkit::{Random, await_that, fails};

use crate::support::{LEVELS, in_memory, wait_at};
use crate::waiting::sleeps;

/// Columns of fixed length, the key in the middle and the other way round.
fn def(name: &str) -> TableDef {
    TableDef::new(name)
        .column("flag", Type::Bool)
        .column("minor", Type::I32)
        .nullable("note", Type::FixedString(5))
        .column("major", Type::U16)
        .column("count", Type::I64)
        .nullable("price", Type::Decimal { precision: 9, scale: 2 })
        .primary_key(["major", "minor"])
}

const OTHERS: [usize; 4] = [0, 2, 4, 5];

fn value(column: usize, random: &mut Random) -> Value<'static> {
    match column {
        0 => Value::Bool(random.below(2) == 0),
        2 if random.below(3) == 0 => Value::Null,
        2 => Value::Str(["", "a", "five5"][random.below(3) as usize]),
        4 => Value::Int(random.word() as i64),
        5 if random.below(3) == 0 => Value::Null,
        _ => Value::Decimal(pantile::Decimal { units: i128::from(random.below(1_000_000)), scale: 2 }),
    }
}

fn owned(values: &[Value<'_>]) -> Vec<OwnedValue> {
    values.iter().map(|value| OwnedValue::from(*value)).collect()
}

fn check(txn: &Transaction, table: &Table, model: &BTreeMap<(u16, i32), Vec<OwnedValue>>) {
    let rows = txn.scan(table, pantile::Range::all()).expect("scan");
    let rows: Vec<_> = rows.map(|row| row.expect("a row").to_values().expect("values")).collect();
    assert!(rows.iter().eq(model.values()), "{rows:?}\n{model:?}");
}

/// Some changes name all other columns, some one twice, some one column less or a column of the key.
#[test]
fn they_do_what_others_do() {
    let db = in_memory();
    for (name, indexed) in [("plain", false), ("indexed", true)] {
        let def = def(name);
        let def = if indexed { def.index(IndexDef::new("by_note", ["note", "count"])) } else { def };
        let table = db.create_table(def).expect("create");
        let (mut model, mut random) = (BTreeMap::new(), Random::new(7, u64::from(indexed)));
        for _ in 0..60 {
            let mut txn = db.begin().expect("begin");
            let mut inside = model.clone();
            for _ in 0..random.below(30) {
                let (major, minor) = (random.below(4) as u16, random.below(10) as i32 - 5);
                let key = [Value::from(major), Value::from(minor)];
                if random.below(3) == 0 {
                    let mut row = vec![Value::Null; 6];
                    OTHERS.iter().for_each(|&column| row[column] = value(column, &mut random));
                    (row[3], row[1]) = (key[0], key[1]);
                    txn.upsert(&table, &row).expect("upsert");
                    inside.insert((major, minor), owned(&row));
                    continue;
                }
                let mut columns = OTHERS.to_vec();
                match random.below(6) {
                    0 => _ = columns.pop(),
                    1 => columns[0] = columns[3],
                    2 => columns[1] = 1,
                    3 => columns.push(0),
                    4 => columns.reverse(),
                    _ => {}
                }
                let of = |column: usize, random: &mut Random| {
                    if column == 1 { key[1] } else { value(column, random) }
                };
                let changes: Vec<_> =
                    columns.into_iter().map(|column| (column, of(column, &mut random))).collect();
                let found = match random.below(2) {
                    0 => txn.update(&table, &key, &changes).expect("update"),
                    _ => txn.update_many(&table, &[(key, &changes[..])]).expect("update") == 1,
                };
                let row = inside.get_mut(&(major, minor));
                assert_eq!(found, row.is_some());
                if let Some(row) = row {
                    changes.iter().for_each(|(column, value)| row[*column] = OwnedValue::from(*value));
                }
            }
            check(&txn, &table, &inside);
            if random.below(4) == 0 {
                txn.rollback();
            } else {
                txn.commit().expect("commit");
                model = inside;
            }
            check(&db.begin_read().expect("begin"), &table, &model);
        }
        assert!(model.len() > 10);
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let db = in_memory();
    let table = db.create_table(def("t")).expect("create");
    let row = [false.into(), 7i32.into(), "note".into(), 1u16.into(), 5i64.into(), Value::Null];
    db.run(|txn| txn.insert(&table, &row)).expect("insert");
    let changes = |note: Value<'static>| {
        [("flag", true.into()), ("note", note), ("count", 6i64.into()), ("price", Value::Null)]
    };
    let mut txn = db.begin().expect("begin");
    let (key, other) = ([1u16.into(), 7i32.into()], [1u16.into(), 8i32.into()]);
    fails!(txn.update(&table, &key, &changes("too long".into())), Error::TooLong { .. }, "note");
    fails!(txn.update(&table, &key, &changes(5i64.into())), Error::WrongType { .. }, "note");
    fails!(txn.update(&table, &key[..1], &changes("ok".into())), Error::WrongArity { .. }, "");
    // As with fewer columns, what is given for a row that is not there is not looked at.
    assert!(!txn.update(&table, &other, &changes(5i64.into())).expect("no row"));
    assert_eq!(txn.get(&table, &key).expect("get").expect("a row").to_values().expect("values"), owned(&row));
    let both = [(key, changes("ok".into())), (other, changes("ok".into()))];
    assert_eq!(txn.update_many(&table, &both).expect("update"), 1);
    let bad = [(key, changes("good".into())), (key, changes("too long".into()))];
    fails!(txn.update_many(&table, &bad), Error::TooLong { .. }, "note");
    txn.commit().expect("commit");
    let txn = db.begin_read().expect("begin");
    assert_eq!(txn.get(&table, &key).expect("get").expect("a row").get::<&str>("note").expect("note"), "ok");
}

/// Columns come while the update waits for the row: it does not take them for its own.
#[test]
fn columns_that_come_while_it_waits_stay() {
    for level in LEVELS {
        let db = in_memory();
        let def = TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]);
        let table = db.create_table(def).expect("create");
        db.run(|txn| txn.insert(&table, &[1u64.into(), 5i64.into()])).expect("insert");
        let mut first = db.begin().expect("begin");
        first.update(&table, &[1u64.into()], &[("n", 6i64.into())]).expect("update");
        let changed = thread::scope(|scope| {
            let name = format!("waits {level:?}").chars().take(15).collect::<String>();
            let second = thread::Builder::new().name(name.clone()).spawn_scoped(scope, || {
                let mut second = db.begin_with(wait_at(level, Duration::from_secs(3600))).expect("begin");
                assert!(second.update(&table, &[1u64.into()], &[("n", 7i64.into())]).expect("update"));
                second.commit().expect("commit")
            });
            let second = second.expect("a thread");
            await_that("the second transaction waits", || sleeps(&name));
            let text = ColumnDef::new("text", Type::String(100)).default("none");
            let change =
                TableChange::new().add_column(ColumnDef::new("m", Type::I64).default(9i64)).add_column(text);
            let changed = db.alter_table(&table, &change).expect("alter");
            first.rollback();
            second.join().expect("no panic");
            changed
        });
        let txn = db.begin_read().expect("begin");
        let row =
            txn.get(&changed, &[1u64.into()]).expect("get").expect("a row").to_values().expect("values");
        assert_eq!(row, owned(&[1u64.into(), 7i64.into(), 9i64.into(), "none".into()]), "{level:?}");
    }
}

/// Of a row that is overwritten the header is read, and nothing else.
#[test]
fn the_old_row_is_not_read() {
    let medium = NvmMedium::anonymous(NvmConfig::E).expect("memory");
    let db = Options::new().on_medium(medium).worker(false).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("a", Type::FixedBytes(2_000));
    let table = db.create_table(def.column("b", Type::U64).primary_key(["id"])).expect("create");
    let long = Value::Bytes(&[7; 2_000]);
    db.run(|txn| (0..100u64).try_for_each(|id| txn.insert(&table, &[id.into(), long, id.into()])))
        .expect("rows");
    let read = |change: &dyn Fn(&mut Transaction, u64) -> Result<bool>| {
        let before = db.stats().medium.bytes_read;
        db.run(|txn| (0..100).try_for_each(|id| change(txn, id).map(drop))).expect("update");
        (db.stats().medium.bytes_read - before) / 100
    };
    let part = read(&|txn, id| txn.update(&table, &[id.into()], &[("b", 9u64.into())]));
    let all = read(&|txn, id| txn.update(&table, &[id.into()], &[("b", 9u64.into()), ("a", long)]));
    assert!(part >= 2_000 && all < 300, "{part} and {all} bytes of a row");
}
