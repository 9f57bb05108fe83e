//! What each table takes, by the state of its blocks, and its indexes.

use pantile::stats::TableParts;
use pantile::{IndexDef, Options};

use super::{open, rewrite};

fn of<'p>(parts: &'p [TableParts], table: &str) -> &'p TableParts {
    parts.iter().find(|parts| parts.table == table).expect("the table is listed")
}

#[test]
fn the_parts_of_a_table_add_up_to_its_space() {
    let (db, table) = open(Options::new());
    let index = IndexDef { name: "by_data".into(), columns: vec!["data".into()], unique: false };
    db.create_index(&table, index).expect("create");
    rewrite(&db, &table, 100, 1);
    let holder = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 3);

    let parts = db.parts_by_table();
    let of_table = of(&parts, "t");
    assert_eq!(of_table.rows, 100);
    assert!(of_table.live_bytes() >= 100 * 200 && of_table.live_bytes() < of_table.bytes(), "{of_table:?}");
    let spaces = db.space_by_table();
    let space = spaces.iter().find(|space| space.table == "t").expect("the table is listed");
    let sum = |of: fn(&pantile::stats::BlocksInState) -> u64| of_table.blocks.iter().map(of).sum::<u64>();
    assert_eq!(
        (sum(|b| b.blocks), sum(|b| b.bytes), sum(|b| b.obsolete_bytes)),
        (space.blocks, space.bytes, space.obsolete_bytes)
    );
    assert!(of_table.blocks.iter().any(|blocks| blocks.state == "open"), "{of_table:?}");
    let indexes: Vec<_> =
        of_table.indexes.iter().map(|i| (i.name.as_str(), i.columns.join(","), i.unique)).collect();
    assert_eq!(indexes, [("primary", "id".to_owned(), true), ("by_data", "data".to_owned(), false)]);
    assert!(of_table.indexes.iter().all(|index| index.bytes.is_some_and(|bytes| bytes > 0)), "{of_table:?}");
    drop(holder);

    db.compact().expect("compact");
    let free =
        db.parts_by_table().iter().filter(|parts| parts.table.is_empty()).map(TableParts::bytes).sum::<u64>();
    assert!(free <= db.stats().medium_bytes);
}
