//! Tables whose columns change while rows of earlier definitions are there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use pantile::{
    ColumnDef, Cursor, Database, Decimal, Durability, Error, Index, IndexDef, Isolation, OwnedValue, Range,
    Row, Table, TableChange, TableDef, Transaction, TransactionOptions, Type, Value,
};
use pantile_testkit::{Bed, Home, Patience, Random, SaysDone, SeedNote, fails, seeds};

use crate::support::{LEVELS, in_memory};

const LONG: Type = Type::Bytes(1 << 20);

fn pets(db: &Database) -> Table {
    let def = TableDef::new("pets")
        .column("id", Type::U64)
        .column("name", Type::String(40))
        .nullable("age", Type::U8)
        .primary_key(["id"])
        .index(IndexDef::new("by_name", ["name"]));
    let pets = db.create_table(def).expect("a table");
    db.run(|txn| {
        txn.insert(&pets, &[1u64.into(), "Rex".into(), 3u8.into()])?;
        txn.insert(&pets, &[2u64.into(), "Tib".into(), Value::Null])
    })
    .expect("two pets");
    pets
}

fn all(db: &Database, table: &Table) -> Vec<Vec<OwnedValue>> {
    let txn = db.begin_read().expect("a transaction");
    let owned =
        |row: Row<'_>| row.values().expect("short values").into_iter().map(OwnedValue::from).collect();
    txn.scan(table, Range::all()).expect("a scan").map(|row| owned(row.expect("a row"))).collect()
}

fn alter(db: &Database, table: &Table, change: TableChange) -> Table {
    db.alter_table(table, &change).expect("a change that can be made")
}

fn row<const N: usize>(values: [Value<'_>; N]) -> Vec<OwnedValue> {
    values.into_iter().map(OwnedValue::from).collect()
}

#[test]
fn columns_come_and_go() {
    let db = in_memory();
    let first = pets(&db);
    let second = alter(
        &db,
        &first,
        TableChange::new()
            .add_column(ColumnDef::new("legs", Type::U8).default(4u8))
            .add_column_before("age", ColumnDef::new("owner", Type::String(9)).nullable())
            .widen_column("age", Type::U32)
            .rename_column("name", "called"),
    );
    let null = Value::Null;
    let rex = row([1u64.into(), "Rex".into(), null, 3u32.into(), 4u8.into()]);
    let tib = row([2u64.into(), "Tib".into(), null, null, 4u8.into()]);
    assert_eq!(all(&db, &second), [rex.clone(), tib.clone()]);
    // Through the old handle rows are what they were, and new ones get defaults.
    assert_eq!(all(&db, &first)[1], row([2u64.into(), "Tib".into(), null]));
    db.run(|txn| {
        txn.insert(&first, &[3u64.into(), "Kim".into(), 9u8.into()])?;
        txn.update(&second, &[2u64.into()], &[(3, 70_000u32.into())])
    })
    .expect("a pet");
    let kim = row([3u64.into(), "Kim".into(), null, 9u32.into(), 4u8.into()]);
    let tib = row([2u64.into(), "Tib".into(), null, 70_000u32.into(), 4u8.into()]);
    assert_eq!(all(&db, &second), [rex, tib, kim]);
    let before = db.begin_read().expect("a transaction");
    let third = alter(&db, &second, TableChange::new().drop_column("age").set_default("legs", 2u8));
    db.run(|txn| txn.insert(&first, &[4u64.into(), "Ann".into(), Value::Null])).expect_err("no such column");
    db.run(|txn| txn.insert(&third, &[5u64.into(), "Bo".into(), "Eve".into(), 2u8.into()])).expect("a pet");
    db.run(|txn| txn.upsert(&third, &[1u64.into(), "Rex".into(), "Eve".into(), 4u8.into()])).expect("Rex");
    // An older reader sees what was there.
    let rex = before.get(&second, &[1u64.into()]).expect("a read").expect("a pet");
    assert_eq!(rex.get::<u32>("age").expect("the age"), 3);
    let now = db.begin_read().expect("a transaction");
    let rex = now.get(&second, &[1u64.into()]).expect("a read").expect("a pet");
    assert!(matches!(rex.get::<u32>("age"), Err(Error::ColumnDropped { column, .. }) if column == "age"));
    assert_eq!(rex.get::<&str>("owner").expect("the owner"), "Eve");
    let of_table = third.definition();
    assert_eq!(of_table.indexes, [IndexDef::new("by_name", ["called"])]);
    assert_eq!(
        of_table.columns.iter().map(|c| &c.name[..]).collect::<Vec<_>>(),
        ["id", "called", "owner", "legs"]
    );
}

#[test]
fn tables_get_other_names() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let db = home.open();
    let table = pets(&db);
    db.create_table(TableDef::new("dogs").column("id", Type::U64).primary_key(["id"])).expect("a table");
    let to = |name: &str| TableChange::new().rename_table(name);
    assert!(matches!(db.alter_table(&table, &to("dogs")), Err(Error::TableExists(name)) if name == "dogs"));
    assert!(matches!(db.alter_table(&table, &to("")), Err(Error::InvalidDefinition(_))));
    let renamed = alter(&db, &table, to("animals"));
    assert_eq!((table.name(), renamed.name()), ("animals", "animals"));
    assert_eq!(db.tables(), ["animals", "dogs"]);
    assert!(matches!(db.table("pets"), Err(Error::UnknownTable(_))));
    home.kill(db, vec![]);
    let db = home.open();
    assert_eq!(db.tables(), ["animals", "dogs"]);
    let animals = db.table("animals").expect("the table");
    assert_eq!(all(&db, &animals).len(), 2);
    db.create_table(TableDef::new("pets").column("id", Type::U64).primary_key(["id"]))
        .expect("the name is free");
    db.drop_table("animals").expect("the table goes");
}

/// Renamed indexes are the same, with the rows that they had; also after a kill before and after an image was made.
#[test]
fn indexes_get_other_names() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let db = home.open();
    let table = pets(&db);
    db.create_index(&table, IndexDef::new("by_age", ["age"])).expect("an index");
    let to = |index: &str, name: &str| TableChange::new().rename_index(index, name);
    let names = |table: &Table| table.definition().indexes.into_iter().map(|i| i.name).collect::<Vec<_>>();
    let refused = |change| db.alter_table(&table, &change).expect_err("a change that cannot be made");
    assert!(
        matches!(refused(to("by_name", "by_age")), Error::IndexExists { index, .. } if index == "by_age")
    );
    assert!(matches!(refused(to("by_legs", "x")), Error::UnknownIndex { index, .. } if index == "by_legs"));
    assert!(matches!(refused(to("by_age", "primary")), Error::InvalidDefinition(_)));
    assert!(matches!(refused(to("by_age", "")), Error::InvalidDefinition(_)));
    let before = table.index("by_name").expect("the index");
    let older = db.begin().expect("a transaction");
    // Two names are swapped by way of a third one, in one change.
    let swap = to("by_name", "x").rename_index("by_age", "by_name").rename_index("x", "by_age");
    let changed = alter(&db, &table, swap.rename_column("name", "called"));
    assert_eq!(names(&changed), ["by_age", "by_name"]);
    fn rex(txn: &Transaction, index: &Index) -> Option<u64> {
        let found = txn.get_by_index(index, &["Rex".into()]).expect("a read");
        found.map(|row| row.get(0).expect("its id"))
    }
    let after = changed.index("by_age").expect("the index");
    assert_eq!((before.name(), after.name()), ("by_name", "by_age"));
    assert_eq!((rex(&older, &before), rex(&older, &after)), (Some(1), Some(1)));
    drop(older);
    db.drop_index(&changed, "by_name").expect("the other goes");
    assert_eq!(
        (names(&table), rex(&db.begin_read().expect("begin"), &before)),
        (vec!["by_age".into()], Some(1))
    );
    home.kill(db, vec![]);
    for closes in [true, false, true] {
        let db = home.open();
        let table = db.table("pets").expect("the table");
        assert_eq!(names(&table), ["by_age"]);
        let index = table.index("by_age").expect("the index");
        assert_eq!(rex(&db.begin_read().expect("begin"), &index), Some(1));
        let [there, then] = if closes { ["by_age", "x"] } else { ["x", "by_age"] };
        let _ = db.alter_table(&table, &to(there, then));
        let _ = db.alter_table(&table, &to("x", "by_age"));
        match closes {
            true => db.close().expect("close"),
            false => home.kill(db, vec![]),
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let db = in_memory();
    let table = pets(&db);
    let change = TableChange::new;
    let refused = [
        change().drop_column("id"),
        change().drop_column("name"),
        change().widen_column("id", Type::U64),
        change().widen_column("name", Type::String(50)),
        change().make_nullable("name"),
        change().widen_column("age", Type::I16),
        change().widen_column("age", Type::Bool),
        change().add_column(ColumnDef::new("n", Type::U8)),
        change().add_column(ColumnDef::new("age", Type::U8).nullable()),
        change().add_column(ColumnDef::new("n", Type::FixedBytes(0)).nullable()),
        change().rename_column("age", "name"),
        change().rename_column("age", ""),
        // Names that are there once in the end, but not in between: keys would lead to either column.
        change().rename_column("name", "age").rename_column("age", "name"),
        change()
            .add_column_before("id", ColumnDef::new("name", Type::U8).nullable())
            .rename_column("name", "old"),
    ];
    for change in refused {
        let outcome = db.alter_table(&table, &change);
        assert!(matches!(outcome, Err(Error::InvalidDefinition(_))), "{change:?}: {outcome:?}");
    }
    let unknown =
        [change().drop_column("n"), change().rename_column("n", "m"), change().set_default("n", 1u8)];
    for change in unknown {
        let outcome = db.alter_table(&table, &change);
        assert!(matches!(outcome, Err(Error::UnknownColumn { .. })), "{change:?}: {outcome:?}");
    }
    let too_large = change().add_column(ColumnDef::new("n", Type::U8).default(300u64));
    assert!(matches!(db.alter_table(&table, &too_large), Err(Error::OutOfRange { .. })));
    // The rows that are there would have the first default.
    let bad = ColumnDef::new("n", Type::U8).default(300u64);
    let long = ColumnDef::new("n", Type::FixedString(3)).default("long");
    for change in [
        change().add_column(bad).set_default("n", 1u8),
        change().add_column(long.clone()).set_default("n", "not"),
        change().add_column(long).drop_column("n"),
    ] {
        db.alter_table(&table, &change).expect_err("no row can have it");
        assert_eq!(all(&db, &table).len(), 2);
    }
    let not_a_number = change().set_default("age", "old");
    assert!(matches!(db.alter_table(&table, &not_a_number), Err(Error::WrongType { .. })));
    assert_eq!(all(&db, &table).len(), 2);
    // Of several steps none has been made.
    assert_eq!(table.definition().columns.len(), 3);
    let both = change().add_column(ColumnDef::new("n", Type::U8).nullable()).drop_column("m");
    db.alter_table(&table, &both).expect_err("one step cannot be made");
    assert_eq!(table.definition().columns.len(), 3);
}

#[test]
fn a_table_has_256_layouts() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let mut db = home.open();
    let mut table = pets(&db);
    for n in 0..255u64 {
        let change = match n % 2 {
            0 => TableChange::new().add_column(ColumnDef::new("n", Type::U64).default(n)),
            _ => TableChange::new().drop_column("n"),
        };
        table = alter(&db, &table, change);
        if n % 2 == 0 {
            let values = [(10 + n).into(), "one more".into(), Value::Null, (n + 1).into()];
            db.run(|txn| txn.insert(&table, &values)).expect("a row");
        }
        if n % 50 == 49 {
            home.kill(db, vec![]);
            db = home.open();
            table = db.table("pets").expect("the table");
        }
    }
    let one_more = TableChange::new().drop_column("n");
    assert!(matches!(db.alter_table(&table, &one_more), Err(Error::InvalidDefinition(_))));
    // What needs no layout can still be changed.
    table = alter(&db, &table, TableChange::new().rename_column("n", "m").rename_table("beasts"));
    let rows = all(&db, &table);
    assert_eq!(rows.len(), 2 + 128);
    assert!(rows[..129].iter().all(|row| row[3] == 254u64.into()));
    assert_eq!(rows[129][3], 255u64.into());
}

#[test]
fn long_values_come_with_a_column_and_go_with_it() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let db = home.open();
    let table = pets(&db);
    let film = vec![7; 200_000];
    let with = alter(&db, &table, TableChange::new().add_column(ColumnDef::new("film", LONG).nullable()));
    db.run(|txn| {
        txn.insert(&with, &[3u64.into(), "Kim".into(), Value::Null, film.as_slice().into()])?;
        txn.insert(&with, &[4u64.into(), "Ann".into(), Value::Null, film.as_slice().into()])?;
        txn.update(&with, &[1u64.into()], &[(3, film.as_slice().into())])
    })
    .expect("films");
    let txn = db.begin_read().expect("a transaction");
    let rex = txn.get(&with, &[1u64.into()]).expect("a read").expect("a pet");
    assert_eq!(rex.get::<Option<Vec<u8>>>("film").expect("a film").as_deref(), Some(&film[..]));
    drop(txn);
    let without = alter(&db, &with, TableChange::new().drop_column("film"));
    db.run(|txn| {
        txn.update(&without, &[1u64.into()], &[(2, 4u8.into())])?;
        txn.delete(&without, &[3u64.into()])
    })
    .expect("changes");
    home.close(db);
    // Only the film of the row that has not been written since is there.
    let report = pantile::check(home.path(), &Default::default()).expect("a database");
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!(report.values_out_of_line, 1);
    let db = home.open();
    assert_eq!(all(&db, &db.table("pets").expect("the table")).len(), 3);
}

/// A row that fills its 64 KB has no room for a column more. Its long values move
/// out of line when it is next written.
#[test]
fn full_rows_take_new_columns() {
    let db = in_memory();
    let def = TableDef::new("t").column("id", Type::U64).column("long", LONG).nullable("n", Type::U8);
    let table = db.create_table(def.primary_key(["id"])).expect("a table");
    let long = vec![1; 65_535 - 1 - 8 - 1 - 1 - 2];
    db.run(|txn| txn.insert(&table, &[1u64.into(), long.as_slice().into(), Value::Null])).expect("a row");
    let change =
        TableChange::new().add_column(ColumnDef::new("d", Type::FixedBytes(100)).default(&[5u8][..]));
    let table = alter(&db, &table, change);
    db.run(|txn| txn.update(&table, &[1u64.into()], &[(2, 9u8.into())])).expect("it fits");
    let txn = db.begin_read().expect("a transaction");
    let row = txn.get(&table, &[1u64.into()]).expect("a read").expect("a row");
    assert_eq!(row.get::<Option<Vec<u8>>>("long").expect("long").as_deref(), Some(&long[..]));
    assert_eq!((row.get::<u8>("n").expect("n"), row.get::<&[u8]>("d").expect("d")[0]), (9, 5));
}

/// The row could be read, but neither changed nor copied.
#[test]
fn a_column_that_makes_a_row_too_large_is_refused() {
    let db = in_memory();
    let mut def = TableDef::new("wide").column("id", Type::U64);
    for n in 0..43 {
        def = def.column(format!("c{n}"), Type::Bytes(1536));
    }
    let table = db.create_table(def.primary_key(["id"])).expect("a table");
    let long = [7; 1536];
    // The first takes 65,411 bytes, with id and offsets.
    for (id, len) in [(1u64, 1519), (2, 1000)] {
        let rest = (0..43).map(|_| Value::Bytes(&long[..len]));
        let row: Vec<Value<'_>> = std::iter::once(id.into()).chain(rest).collect();
        db.run(|txn| txn.insert(&table, &row)).expect("it fits");
    }
    let change = |len: u16| {
        let column = ColumnDef::new("more", Type::FixedBytes(len)).default(&[1u8][..]);
        TableChange::new().add_column(column)
    };
    let refused = db.alter_table(&table, &change(200));
    fails!(refused, Error::RowTooLarge { .. }, "too large for table \"wide\"", "nothing was changed");
    assert_eq!(db.table("wide").expect("a table").definition().columns.len(), 44);
    // What the row has room for can be added, and so can more when it has gone.
    let table = alter(&db, &table, change(50));
    db.run(|txn| txn.update(&table, &[1u64.into()], &[("more", Value::Bytes(&[2]))])).expect("it fits");
    let table = alter(&db, &table, TableChange::new().drop_column("more"));
    assert!(db.run(|txn| txn.delete(&table, &[1u64.into()])).expect("a row"));
    alter(&db, &table, change(200));
}

/// What a random table holds, by the name of the column.
type Model = BTreeMap<u64, BTreeMap<String, OwnedValue>>;

fn random_column(random: &mut Random, name: String) -> ColumnDef {
    let types =
        [Type::U8, Type::I16, Type::F32, Type::String(30), Type::Bytes(20), Type::FixedString(7), LONG];
    let decimal = Type::Decimal { precision: 9, scale: 2 };
    let ty = *random.pick(&[&types[..], &[decimal, Type::Bool]].concat());
    let column = ColumnDef::new(name, ty);
    let default = match random_value(random, ty) {
        // A definition has no room for it.
        OwnedValue::Bytes(long) if long.len() > 1000 => OwnedValue::Bytes(long[..1000].to_vec()),
        default => default,
    };
    match random.below(3) {
        0 => column.nullable(),
        1 => ColumnDef { default, ..column },
        _ => ColumnDef { default, ..column.nullable() },
    }
}

fn random_value(random: &mut Random, ty: Type) -> OwnedValue {
    let n = random.below(100);
    match ty {
        Type::Bool => n.is_multiple_of(2).into(),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => n.into(),
        Type::I8 | Type::I16 | Type::I32 | Type::I64 => (n as i64 - 50).into(),
        Type::F32 | Type::F64 => (n as f64 / 4.0).into(),
        Type::Decimal { scale, .. } => Decimal::new(i128::from(n), scale).into(),
        Type::String(_) | Type::FixedString(_) => format!("s{n}").as_str().into(),
        Type::Bytes(len) if len > 1000 && n < 10 => vec![n as u8; 70_000].as_slice().into(),
        Type::Bytes(_) => vec![n as u8; n as usize % 20].as_slice().into(),
        _ => unreachable!("{ty:?}"),
    }
}

fn wider(ty: Type) -> Type {
    match ty {
        Type::U8 => Type::U16,
        Type::U16 => Type::U64,
        Type::I16 => Type::I32,
        Type::I32 => Type::I64,
        Type::F32 => Type::F64,
        Type::Decimal { scale, .. } => Type::Decimal { precision: 30, scale },
        Type::String(30) => Type::String(5_000),
        Type::Bytes(20) => Type::Bytes(50),
        Type::FixedString(7) => Type::FixedString(12),
        Type::FixedString(12) => Type::String(12),
        same => same,
    }
}

/// Ids of rows that only the transaction beside the others writes.
const BESIDE: std::ops::Range<u64> = 60..75;

struct Altered {
    random: Random,
    model: Model,
    /// Handles from before, with the names of their columns.
    older: Vec<(Table, TableDef)>,
    names: u64,
    beside: Option<Writer>,
    reader: Option<Reader>,
}

/// A transaction that stays open while definitions change.
struct Writer {
    txn: Transaction,
    level: Isolation,
    /// From when it began.
    table: Table,
    /// Its rows as it sees them.
    rows: Model,
}

/// A reader that has begun with a table and an index as they were.
struct Reader {
    txn: Transaction,
    table: Table,
    cursor: Option<Cursor>,
    model: Model,
}

impl Altered {
    fn column(&mut self, def: &TableDef, indexed: bool) -> Option<ColumnDef> {
        let is_indexed = |name: &String| def.indexes.iter().any(|index| index.columns.contains(name));
        let may: Vec<_> =
            def.columns.iter().filter(|c| c.name != "id" && is_indexed(&c.name) == indexed).collect();
        (!may.is_empty()).then(|| (*self.random.pick(&may)).clone())
    }

    /// All rows, with those that are not committed.
    fn rows(&mut self) -> impl Iterator<Item = &mut BTreeMap<String, OwnedValue>> {
        let beside = self.beside.iter_mut().flat_map(|writer| writer.rows.values_mut());
        self.model.values_mut().chain(beside)
    }

    fn begin_beside(&mut self, db: &Database, table: &Table) {
        if self.beside.is_none() {
            let level = *self.random.pick(&LEVELS);
            let txn = db.begin_with(TransactionOptions::new().isolation(level)).expect("a transaction");
            let rows = self.model.range(BESIDE).map(|(id, row)| (*id, row.clone())).collect();
            self.beside = Some(Writer { txn, level, table: table.clone(), rows });
        }
        if self.reader.is_none() {
            let txn =
                db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("a reader");
            let index =
                table.definition().indexes.first().map(|def| table.index(&def.name).expect("it is there"));
            // An older writer that commits from here on comes after it.
            assert_eq!(rows_of(&txn, table).count(), self.model.len());
            let cursor = index.map(|index| txn.index_cursor(&index, Range::all()).expect("a cursor"));
            self.reader = Some(Reader { txn, table: table.clone(), cursor, model: self.model.clone() });
        }
    }

    /// Writes a row of its own, through a handle of when it began or of now. Conflicts
    /// are with the cleaner, and with the change that a handle is from.
    fn write_beside(&mut self, newest: &Table) {
        let now = newest.definition();
        let Some(Writer { txn, level, table, rows }) = &mut self.beside else { return };
        let is_serializable = *level == Isolation::Serializable;
        let handle = if self.random.below(3) > 0 { &*table } else { newest };
        let def = handle.definition();
        let id = BESIDE.start + self.random.below(BESIDE.end - BESIDE.start);
        let key = [Value::from(id)];
        match self.random.below(4) {
            0 | 1 => {
                let value = |c: &ColumnDef| (c.name.clone(), random_value(&mut self.random, c.ty));
                let mut values: BTreeMap<_, _> = def.columns.iter().map(value).collect();
                values.insert("id".into(), id.into());
                let given: Vec<_> = def.columns.iter().map(|c| values[&c.name].as_value()).collect();
                match txn.upsert(handle, &given) {
                    Ok(_) => {}
                    Err(Error::ColumnDropped { .. }) if !is_serializable => return,
                    Err(Error::Conflict { .. }) => return,
                    Err(error) => panic!("{error}"),
                }
                values.retain(|name, _| now.columns.iter().any(|column| column.name == *name));
                for column in now.columns {
                    values.entry(column.name).or_insert(column.default);
                }
                rows.insert(id, values);
            }
            2 => {
                let column = self.random.pick(&def.columns).clone();
                let value = random_value(&mut self.random, column.ty);
                let n = handle.column(&column.name).expect("the handle knows it");
                if column.name == "id" {
                    return;
                }
                match txn.update(handle, &key, &[(n, value.as_value())]) {
                    Ok(is_there) => assert_eq!(is_there, rows.contains_key(&id)),
                    Err(Error::ColumnDropped { .. }) if !is_serializable => return,
                    Err(Error::Conflict { .. }) => return,
                    Err(error) => panic!("{error}"),
                }
                if let Some(old) = rows.get_mut(&id).and_then(|row| row.get_mut(&column.name)) {
                    *old = value;
                }
            }
            _ => match txn.delete(handle, &key) {
                Ok(is_there) => assert_eq!(is_there, rows.remove(&id).is_some()),
                Err(Error::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }

    fn end_beside(&mut self) {
        if let Some(Writer { txn, level, rows, .. }) = self.beside.take() {
            let outcome = (self.random.below(4) > 0).then(|| txn.commit());
            match outcome {
                Some(Ok(_)) => {
                    self.model.retain(|id, _| !BESIDE.contains(id));
                    self.model.extend(rows);
                }
                Some(Err(Error::Conflict { .. })) if level == Isolation::Serializable => {}
                Some(Err(error)) => panic!("{error}"),
                None => {}
            }
        }
        if let Some(Reader { txn, table, cursor, model }) = self.reader.take() {
            let seen: Vec<_> = rows_of(&txn, &table).collect();
            assert_eq!(seen.len(), model.len());
            for (row, expected) in seen.iter().zip(model.values()) {
                assert_eq!(row, expected, "{:?}", table.definition());
            }
            if let Some(mut cursor) = cursor {
                let mut ids = Vec::new();
                while let Some(row) = cursor.next(&txn).expect("a read") {
                    ids.push(row.get::<u64>("id").expect("its id"));
                }
                ids.sort_unstable();
                assert!(ids.iter().eq(model.keys()), "an index that was dropped has its entries");
            }
        }
    }

    fn change(&mut self, db: &Database, table: &Table) -> Table {
        let def = table.definition();
        self.names += 1;
        let name = format!("c{}", self.names);
        self.older.push((table.clone(), def.clone()));
        match self.random.below(10) {
            0..=2 => {
                let column = random_column(&mut self.random, name);
                self.rows().for_each(|row| drop(row.insert(column.name.clone(), column.default.clone())));
                let change = match self.random.below(2) {
                    0 => TableChange::new().add_column(column),
                    _ => TableChange::new().add_column_before(&self.random.pick(&def.columns).name, column),
                };
                return alter(db, table, change);
            }
            3 => {
                let Some(column) = self.column(&def, false) else { return table.clone() };
                return self.drop_column(db, table, column);
            }
            4 => {
                let Some(column) = self.column(&def, false) else { return table.clone() };
                return alter(db, table, TableChange::new().widen_column(column.name, wider(column.ty)));
            }
            8 => {
                let Some(column) = self.column(&def, false) else { return table.clone() };
                return alter(db, table, TableChange::new().make_nullable(column.name));
            }
            9 => {
                // Older transactions still maintain the index.
                let Some(index) = def.indexes.first() else { return table.clone() };
                db.drop_index(table, &index.name).expect("the index goes");
                let is_it = |column: &&ColumnDef| column.name == index.columns[0];
                let column = def.columns.iter().find(is_it).expect("its column").clone();
                let is_free = def.indexes.iter().filter(|other| other.columns == index.columns).count() == 1;
                let change = TableChange::new();
                return match self.random.below(4) {
                    _ if !is_free => table.clone(),
                    0 => self.drop_column(db, table, column),
                    1 => alter(db, table, change.widen_column(column.name, wider(column.ty))),
                    2 => alter(db, table, change.make_nullable(column.name)),
                    _ => {
                        let wider = wider(column.ty);
                        alter(db, table, change.make_nullable(&column.name).widen_column(column.name, wider))
                    }
                };
            }
            5 => {
                let indexed = self.random.below(2) == 0;
                let Some(column) = self.column(&def, indexed) else { return table.clone() };
                for row in self.rows() {
                    let value = row.remove(&column.name).expect("every row has every column");
                    row.insert(name.clone(), value);
                }
                // The model goes by names; old handles know another.
                self.older.clear();
                let newest = alter(db, table, TableChange::new().rename_column(column.name, name));
                // So does the one of the transaction beside, which may need it.
                self.end_beside();
                return newest;
            }
            7 if !def.indexes.is_empty() && self.random.below(2) == 0 => {
                let index = self.random.pick(&def.indexes).name.clone();
                return alter(db, table, TableChange::new().rename_index(index, name));
            }
            6 => {
                let short = |column: &ColumnDef| column.ty != LONG && column.ty != Type::String(5_000);
                let Some(column) = self.column(&def, false).filter(short) else { return table.clone() };
                db.create_index(table, IndexDef::new(name, [column.name])).expect("an index");
            }
            _ => {
                if let Some(index) = def.indexes.first() {
                    db.drop_index(table, &index.name).expect("the index goes");
                }
            }
        }
        table.clone()
    }

    fn drop_column(&mut self, db: &Database, table: &Table, column: ColumnDef) -> Table {
        self.rows().for_each(|row| drop(row.remove(&column.name)));
        // Handles that know the column can no longer write whole rows.
        alter(db, table, TableChange::new().drop_column(column.name))
    }

    fn write(&mut self, db: &Database, newest: &Table) {
        let now = newest.definition();
        let is_old = !self.older.is_empty() && self.random.below(3) == 0;
        let (table, def) =
            if is_old { self.random.pick(&self.older).clone() } else { (newest.clone(), now.clone()) };
        let id = self.random.below(60);
        let column = |random: &mut Random| {
            let column = random.pick(&def.columns);
            // The type may have become wider, and what it was still fits.
            let value = random_value(random, column.ty);
            (
                column.name.clone(),
                if column.nullable && random.below(4) == 0 { OwnedValue::Null } else { value },
            )
        };
        let knows_dropped = def.columns.iter().any(|c| now.columns.iter().all(|n| n.name != c.name));
        match self.random.below(4) {
            0 | 1 => {
                let mut values: BTreeMap<_, _> = def
                    .columns
                    .iter()
                    .map(|c| (c.name.clone(), random_value(&mut self.random, c.ty)))
                    .collect();
                values.insert("id".into(), id.into());
                let given: Vec<_> = def.columns.iter().map(|c| values[&c.name].as_value()).collect();
                let outcome = db.run(|txn| txn.upsert(&table, &given));
                if knows_dropped {
                    assert!(matches!(outcome, Err(Error::ColumnDropped { .. })), "{outcome:?}");
                    return;
                }
                outcome.expect("a row that fits");
                for column in now.columns {
                    values.entry(column.name).or_insert(column.default);
                }
                self.model.insert(id, values);
            }
            2 => {
                let (name, value) = column(&mut self.random);
                if name == "id" {
                    return;
                }
                let n = table.column(&name).expect("the handle knows it");
                let outcome = db.run(|txn| txn.update(&table, &[id.into()], &[(n, value.as_value())]));
                let Some(row) = self.model.get_mut(&id) else {
                    assert!(!outcome.expect("no row"));
                    return;
                };
                if !row.contains_key(&name) {
                    assert!(matches!(outcome, Err(Error::ColumnDropped { .. })), "{outcome:?}");
                    return;
                }
                assert!(outcome.expect("a value that fits"));
                row.insert(name, value);
            }
            _ => {
                let gone = db.run(|txn| txn.delete(&table, &[id.into()])).expect("no conflict");
                assert_eq!(gone, self.model.remove(&id).is_some());
            }
        }
    }

    fn compare(&self, db: &Database, table: &Table) {
        let txn = db.begin_read().expect("a transaction");
        let def = table.definition();
        assert!(rows_of(&txn, table).eq(self.model.values().cloned()));
        for index in &def.indexes {
            let index = table.index(&index.name).expect("the index");
            let rows = txn.scan_index(&index, Range::all()).expect("a scan");
            let mut ids: Vec<u64> = rows.map(|row| row.expect("a row").get("id").expect("its id")).collect();
            ids.sort_unstable();
            assert!(ids.iter().eq(self.model.keys()));
        }
    }
}

/// The rows, with the names that the handle has for their columns.
fn rows_of<'t>(
    txn: &'t Transaction,
    table: &'t Table,
) -> impl Iterator<Item = BTreeMap<String, OwnedValue>> + 't {
    let value = |row: &Row<'_>, column: &ColumnDef| row.get(&column.name).expect("a value");
    txn.scan(table, Range::all()).expect("a scan").map(move |row| {
        let row = row.expect("a row");
        table.columns().iter().map(|column| (column.name.clone(), value(&row, column))).collect()
    })
}

/// Random changes of the definition and of rows, through the newest handle and
/// older ones, beside a model, with closings and kills, and with transactions of all
/// levels open beside.
#[test]
fn any_changes() {
    for seed in seeds(1, 12) {
        let _note = SeedNote(seed);
        let mut home = Home::new(Bed::File(Durability::Sync)).eager(seed);
        let mut db = home.open();
        let def = TableDef::new("t").column("id", Type::U64).nullable("c0", Type::U8).primary_key(["id"]);
        let mut table = db.create_table(def).expect("a table");
        let mut test = Altered {
            random: Random::new(seed, 0),
            model: Model::new(),
            older: Vec::new(),
            names: 0,
            beside: None,
            reader: None,
        };
        for step in 0..600 {
            match test.random.below(30) {
                0 | 1 => table = test.change(&db, &table),
                2 if step % 3 == 0 => {
                    test.end_beside();
                    test.older.clear();
                    match test.random.below(2) {
                        0 => home.close(db),
                        _ => home.kill(db, vec![]),
                    }
                    db = home.open();
                    table = db.table("t").expect("the table");
                    test.compare(&db, &table);
                }
                3 => test.compare(&db, &table),
                4 | 5 => test.begin_beside(&db, &table),
                6 if step % 3 == 0 => test.end_beside(),
                7..=12 => test.write_beside(&table),
                _ => test.write(&db, &table),
            }
        }
        test.end_beside();
        test.compare(&db, &table);
        home.close(db);
        let report = pantile::check(home.path(), &Default::default()).expect("a database");
        assert!(report.findings.is_empty(), "{report:?}");
    }
}

/// Writers and readers of all levels go on while columns come and go: no row is
/// lost, no sum is wrong.
#[test]
fn beside_writers_and_readers() {
    for level in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        let db = in_memory();
        let def = TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]);
        let table = db.create_table(def.index(IndexDef::new("by_n", ["n"]))).expect("a table");
        db.run(|txn| (0..50u64).try_for_each(|id| txn.insert(&table, &[id.into(), 10i64.into()])))
            .expect("rows");
        let (done, moved) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let over = SaysDone(&done);
            for seed in 0..2 {
                let (db, table, done, moved) = (&db, &table, &done, &moved);
                scope.spawn(move || {
                    let mut random = Random::new(seed, 0);
                    while !done.load(Ordering::Relaxed) {
                        let (from, to) = (random.below(50), random.below(50));
                        let options = TransactionOptions::new().isolation(level);
                        let transfer = db.run_with(options, |txn| {
                            for (id, by) in [(from, -1), (to, 1)] {
                                txn.modify(table, &[id.into()], |row| {
                                    let n: i64 = row.get(1)?;
                                    row.set(1, (n + by).into()).map(|()| true)
                                })?;
                            }
                            Ok::<_, Error>(())
                        });
                        transfer.expect("a transfer");
                        moved.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let mut newest = table.clone();
            for n in 0..60 {
                let change = match n % 3 {
                    0 => TableChange::new()
                        .add_column_before("n", ColumnDef::new("m", Type::I64).default(10i64)),
                    1 => TableChange::new().rename_column("m", "k"),
                    _ => TableChange::new().drop_column("k"),
                };
                newest = alter(&db, &newest, change);
                let seen = moved.load(Ordering::Relaxed);
                let txn = db.begin_read().expect("a transaction");
                let sum = |table: &Table, column: &str| -> i64 {
                    let rows = txn.scan(table, Range::all()).expect("a scan");
                    rows.map(|row| row.expect("a row").get::<i64>(column).expect("a number")).sum()
                };
                assert_eq!((sum(&newest, "n"), sum(&table, "n")), (500, 500));
                if n % 3 == 0 {
                    assert_eq!(sum(&newest, "m"), 500);
                }
                drop(txn);
                let patience = Patience::new();
                while moved.load(Ordering::Relaxed) < seen + 20 {
                    patience.check(|| format!("{level:?}: the writers have stopped"));
                    thread::yield_now();
                }
            }
            drop(over);
        });
    }
}

/// Rows are shown through a handle that has columns which they have no more.
#[test]
fn a_row_without_a_column_of_its_handle_is_shown() {
    let db = in_memory();
    let old = pets(&db);
    let new = alter(&db, &old, TableChange::new().drop_column("age"));
    db.run(|txn| txn.insert(&new, &[3u64.into(), "Leo".into()])).expect("a row");
    let txn = db.begin_read().expect("a transaction");
    let shown = |id: u64| format!("{:?}", txn.get(&old, &[id.into()]).expect("a read").expect("a row"));
    assert_eq!(shown(1), r#"{"id": UInt(1), "name": Str("Rex"), "age": UInt(3)}"#);
    assert_eq!(shown(3), r#"{"id": UInt(3), "name": Str("Leo"), "age": <dropped>}"#);
}

#[test]
fn a_new_column_has_a_type_that_there_is() {
    let db = in_memory();
    let table = pets(&db);
    for (precision, scale) in [(60, 2), (2, 3), (0, 0)] {
        let column = ColumnDef::new("d", Type::Decimal { precision, scale }).default(5u8);
        let error = db.alter_table(&table, &TableChange::new().add_column(column)).expect_err("no such type");
        assert!(matches!(error, Error::InvalidDefinition(_)), "{error}");
    }
}
