//! Estimates of ranges, pages, and positions.

use super::*;

/// Estimates are exact for short ranges and near for long ones; the number of all rows is exact, after opening too.
#[test]
fn estimates() {
    let mut home = Home::new(Bed::File(Durability::None));
    let goods = Goods::new(home.open(), 20_000);
    let check = |db: &Database, expected: u64| {
        let (table, txn) = (db.table("goods").expect("the table"), db.begin_read().expect("a reader"));
        assert_eq!(txn.estimate(&table, Range::all()).expect("a count"), expected);
        let by_kind = table.index("by_kind").expect("an index");
        for (from, to) in [(0u64, 1u64), (500, 520), (0, 5_000), (3_000, 19_000), (19_990, 30_000), (7, 7)] {
            let (low, high) = ([from.into()], [to.into()]);
            let range = Range::all().from(Bound::Included(&low)).to(Bound::Excluded(&high));
            let real = txn.scan(&table, range).expect("a scan").count() as f64;
            let about = txn.estimate(&table, range).expect("an estimate") as f64;
            assert!((about - real).abs() <= 70.0 + real * 0.25, "{from}..{to}: {about} for {real}");
            assert_eq!(txn.estimate(&table, range.limit(3)).expect("an estimate"), (about as u64).min(3));
        }
        for kind in 0..6u32 {
            let kind = [kind.into()];
            let real = txn.scan_index(&by_kind, Range::prefix(&kind)).expect("a scan").count() as f64;
            let about = txn.estimate_index(&by_kind, Range::prefix(&kind)).expect("an estimate") as f64;
            assert!((about - real).abs() <= 70.0 + real * 0.25, "{kind:?}: {about} for {real}");
        }
    };
    check(&goods.db, 20_000);
    let Goods { db, table, by_kind } = goods;
    db.run(|txn| (0..400u64).try_for_each(|id| txn.delete(&table, &[(id * 3).into()]).map(drop)))
        .expect("deleted");
    let mut undone = db.begin().expect("a transaction");
    undone.insert(&table, &[90_000u64.into(), 1u32.into(), Value::Null]).expect("inserted");
    undone.rollback();
    check(&db, 19_600);
    drop((table, by_kind));
    home.close(db);
    let db = home.open();
    check(&db, 19_600);
    let table = db.table("goods").expect("the table");
    db.run(|txn| txn.insert(&table, &[90_000u64.into(), 1u32.into(), Value::Null])).expect("inserted");
    drop(table);
    home.kill(db, Vec::new());
    check(&home.open(), 19_601);
}

/// The ids on a page, and the position behind it.
fn page(
    db: &Database,
    index: Option<&Index>,
    table: &Table,
    range: Range<'_>,
) -> (Vec<u64>, Option<Position>) {
    let txn = db.begin_read().expect("begin");
    let cursor = match index {
        Some(index) => txn.index_cursor(index, range),
        None => txn.cursor(table, range),
    };
    let (mut cursor, mut ids) = (cursor.expect("a cursor"), Vec::new());
    while let Some(row) = cursor.next(&txn).expect("a row") {
        ids.push(row.get("id").expect("its id"));
    }
    (ids, cursor.position())
}

/// Pages of random sizes are the whole, in both directions and within bounds,
/// beside rows that come and go. A position goes through bytes.
#[test]
fn pages_over_any_index() {
    for seed in seeds(0, 20) {
        let _note = SeedNote(seed);
        let (mut random, goods) = (Random::new(seed, 0), Goods::new(in_memory(), 300));
        let Goods { db, table, by_kind } = &goods;
        let (low, high) = ([Value::from(random.below(3) as u32)], [Value::from(random.below(6) as u32)]);
        let bounds = [
            Range::all(),
            Range::prefix(&low),
            Range::all().from(Bound::Excluded(&low)),
            Range::all().from(Bound::Included(&low)).to(Bound::Excluded(&high)),
        ];
        for index in [None, Some(by_kind)] {
            let range = bounds[if index.is_some() { random.index(4) } else { 0 }];
            let range = if random.one_in(2) { range.reverse() } else { range };
            let (mut all, mut gone, mut end) = (Vec::new(), Vec::new(), None::<Position>);
            let expected = page(db, index, table, range).0;
            loop {
                let rows = 1 + random.index(40);
                let next = end.as_ref().map_or(range, |end| range.behind(end)).limit(rows);
                let (ids, position) = page(db, index, table, next);
                let Some(position) = position else { break };
                all.extend(ids);
                end = Position::from_bytes(&position.to_bytes());
                assert_eq!(end.as_ref(), Some(&position));
                // Also the row at the position.
                let last = *all.last().expect("a row");
                let other = random.below(300);
                for id in [last, other] {
                    if db.run(|txn| txn.delete(table, &[id.into()])).expect("delete") {
                        gone.push(id);
                    }
                }
            }
            let stayed =
                |ids: &[u64]| -> Vec<u64> { ids.iter().copied().filter(|id| !gone.contains(id)).collect() };
            assert_eq!(stayed(&all), stayed(&expected), "{range:?}");
            assert!(all.iter().all(|id| expected.contains(id)), "{range:?}");
        }
    }
}

#[test]
fn positions_are_of_one_index() {
    let Goods { db, table, by_kind } = Goods::new(in_memory(), 30);
    let of_table = page(&db, None, &table, Range::all().limit(3)).1.expect("a position");
    let of_index = page(&db, Some(&by_kind), &table, Range::all().limit(3)).1.expect("a position");
    let txn = db.begin_read().expect("begin");
    fails!(
        txn.scan(&table, Range::all().behind(&of_index)),
        Error::UnknownPosition { .. },
        "\"goods\"",
        "begin"
    );
    fails!(
        txn.count_index(&by_kind, Range::all().behind(&of_table)),
        Error::UnknownPosition { .. },
        "nothing was read"
    );
    assert_eq!(txn.count(&table, Range::all().behind(&of_table)).expect("count"), 27);
    assert_eq!(txn.count(&table, Range::all().behind(&of_table).reverse()).expect("count"), 2);
    let about = txn.estimate(&table, Range::all().behind(&of_table)).expect("estimate");
    assert!((1..=30).contains(&about));
    let behind = txn.count_index(&by_kind, Range::all().behind(&of_index)).expect("count");
    drop(txn);
    // The same key in another index, the same name with another key, and another table.
    db.drop_index(&table, "by_kind").expect("drop");
    let same = db.create_index(&table, IndexDef::new("same", ["kind"])).expect("create");
    let by_kind = db.create_index(&table, IndexDef::new("by_kind", ["kind", "id"])).expect("create");
    let txn = db.begin_read().expect("begin");
    assert_eq!(txn.count_index(&same, Range::all().behind(&of_index)).expect("count"), behind);
    let stale = txn.index_cursor(&by_kind, Range::all().behind(&of_index)).map(|_| ());
    fails!(stale, Error::UnknownPosition { .. }, "nothing was read");
    drop(txn);
    let emptied = db.truncate_table(&table).expect("truncate");
    let txn = db.begin_read().expect("begin");
    let stale = txn.cursor(&emptied, Range::all().behind(&of_table)).map(|_| ());
    fails!(stale, Error::UnknownPosition { .. }, "nothing was read");
    // A page of an empty range has no position.
    assert_eq!(page(&db, None, &emptied, Range::all()), (Vec::new(), None));
}

/// After opening again, indexes and tables have other numbers.
#[test]
fn positions_of_before_are_of_the_same_index() {
    let mut home = Home::new(Bed::File(Durability::None));
    let def = |name: &str, column: &str| {
        let def =
            TableDef::new(name).column("id", Type::U64).column("a", Type::U64).column(column, Type::U64);
        def.primary_key(["id"]).index(IndexDef::new("by_a", ["a"])).index(IndexDef::new("by_last", [column]))
    };
    let db = home.open();
    let table = db.create_table(def("t", "b")).expect("create");
    db.run(|txn| txn.insert_many(&table, (0..20u64).map(|n| [n.into(), n.into(), (50 - n).into()])))
        .expect("insert");
    let position = |db: &Database, table: &Table, name: &str| {
        page(db, Some(&table.index(name).expect("index")), table, Range::all().limit(5))
            .1
            .expect("a position")
    };
    let [of_a, of_b] = ["by_a", "by_last"].map(|name| position(&db, &table, name));
    db.drop_index(&table, "by_a").expect("drop");
    drop(table);
    db.close().expect("close");

    let db = home.open();
    let table = db.table("t").expect("table");
    let by_last = table.index("by_last").expect("index");
    let left: Vec<u64> = (0..15).rev().collect();
    assert_eq!(page(&db, Some(&by_last), &table, Range::all().behind(&of_b)).0, left);
    let txn = db.begin_read().expect("begin");
    fails!(
        txn.count_index(&by_last, Range::all().behind(&of_a)),
        Error::UnknownPosition { .. },
        "nothing was read"
    );
    drop((txn, by_last, table));
    db.drop_table("t").expect("drop");
    db.close().expect("close");
    // What was left of the table is gone after the first opening.
    home.open().close().expect("close");

    let db = home.open();
    let other = db.create_table(def("u", "c")).expect("create");
    let txn = db.begin_read().expect("begin");
    for (name, stale) in [("by_a", &of_a), ("by_last", &of_b)] {
        let index = other.index(name).expect("index");
        let counted = txn.count_index(&index, Range::all().behind(stale));
        fails!(counted, Error::UnknownPosition { .. }, "nothing was read");
    }
}

/// A bound without columns is before all keys.
#[test]
fn estimates_of_ranges_with_empty_bounds() {
    let Goods { db, table, by_kind } = Goods::new(in_memory(), 30);
    let txn = db.begin_read().expect("begin");
    for bound in [Bound::Included(&[][..]), Bound::Excluded(&[][..])] {
        for range in [Range::all().from(bound), Range::all().to(bound)] {
            let counted =
                [txn.count(&table, range), txn.count_index(&by_kind, range)].map(|n| n.expect("count"));
            let about = [txn.estimate(&table, range), txn.estimate_index(&by_kind, range)];
            let about = about.map(|n| n.expect("estimate"));
            assert_eq!(about.map(|n| n > 0), counted.map(|n| n > 0), "{range:?}");
        }
    }
}

/// What somebody sends back as a position is a position or none, and leads nowhere
/// else than into its index.
#[test]
fn positions_from_anybody() {
    let Goods { db, table, by_kind } = Goods::new(in_memory(), 30);
    let good = page(&db, Some(&by_kind), &table, Range::all().limit(3)).1.expect("a position").to_bytes();
    let mut random = Random::new(7, 0);
    for _ in 0..2_000 {
        let mut bytes = good.clone();
        match random.below(3) {
            0 => bytes.truncate(random.index(bytes.len())),
            1 => bytes.extend(vec![random.word() as u8; 8 * random.index(700)]),
            _ => bytes[8 + random.index(good.len() - 8)] = random.word() as u8,
        }
        let Some(position) = Position::from_bytes(&bytes) else { continue };
        for range in [Range::all().behind(&position), Range::all().behind(&position).reverse()] {
            let ids = page(&db, Some(&by_kind), &table, range).0;
            assert!(ids.len() <= 30 && ids.iter().all(|id| *id < 30));
        }
    }
    assert_eq!(Position::from_bytes(&[]), None);
    assert_eq!(Position::from_bytes(&good[..8]), None);
}
