//! Secondary indexes: built over rows that exist, kept up to date by updates,
//! and unique if you ask for it.
//!
//! `cargo run -p pantile --example secondary_index`

use std::ops::Bound;

use pantile::{Database, Error, IndexDef, Range, Result, TableDef, Type, Value};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Database::open(dir.path())?;
    let books = db.create_table(
        TableDef::new("books")
            .column("id", Type::U32)
            .column("title", Type::String(80))
            .nullable("year", Type::I16)
            .column("shelf", Type::FixedString(4))
            .primary_key(["id"]),
    )?;
    let rows: [(u32, &str, Option<i16>, &str); 5] = [
        (1, "Transaction Processing", Some(1992), "A3"),
        (2, "The Art of Computer Programming", Some(1968), "A1"),
        (3, "Notes, undated", None, "B2"),
        (4, "A Relational Model of Data", Some(1970), "A2"),
        (5, "On the Resemblance of Things", Some(1970), "A4"),
    ];
    db.run(|txn| {
        rows.iter().try_for_each(|&(id, title, year, shelf)| {
            txn.insert(&books, &[id.into(), title.into(), year.into(), shelf.into()])
        })
    })?;

    let by_year = db.create_index(&books, IndexDef::new("by_year", ["year", "title"]))?;
    let by_shelf = db.create_index(&books, IndexDef::unique("by_shelf", ["shelf"]))?;

    let up_to_1970 = [1970i16.into()];
    // NULL sorts first. The range begins after it.
    let range = Range::all().from(Bound::Excluded(&[Value::Null])).to(Bound::Included(&up_to_1970));
    let txn = db.begin_read()?;
    let titles: Vec<&str> =
        txn.scan_index(&by_year, range)?.map(|row| row?.get("title")).collect::<Result<_>>()?;
    println!("up to 1970, by year and title: {titles:#?}");
    assert_eq!(titles, [rows[1].1, rows[3].1, rows[4].1]);
    drop(txn);

    db.run(|txn| txn.update(&books, &[3u32.into()], &[(2, 1969i16.into())]))?;
    let txn = db.begin_read()?;
    let first = txn.scan_index(&by_year, Range::prefix(&[1969i16.into()]))?.next().expect("a row")?;
    println!(
        "after an update the index has {:?} of {}",
        first.get::<&str>("title")?,
        first.get::<i16>("year")?
    );
    assert_eq!(first.get::<u32>("id")?, 3);
    drop(txn);

    let refused = db.run(|txn| txn.update(&books, &[5u32.into()], &[(3, "A1".into())]));
    assert!(matches!(refused, Err(Error::DuplicateKey { .. })));
    println!("refused: {}", refused.expect_err("the shelf is taken"));
    let txn = db.begin_read()?;
    let on_a1 = txn.get_by_index(&by_shelf, &["A1".into()])?.expect("a book");
    assert_eq!(on_a1.get::<u32>("id")?, 2);
    println!("on shelf A1: {on_a1:?}");
    Ok(())
}
