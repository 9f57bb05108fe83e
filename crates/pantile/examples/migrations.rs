//! Three versions of one program, and databases that each of them has made.
//!
//! Every version of the program has all migrations so far. When it starts, it brings a database of
//! any earlier version up to date, and refuses a database of a later version.
//!
//! `cargo run -p pantile --example migrations`

use pantile::{
    ColumnDef, Database, Error, IndexDef, Migration, Migrations, Range, Result, TableChange, TableDef,
    Transaction, Type, Value,
};

/// Fills the column of version 2 from the names of version 1.
fn split_names(db: &Database, txn: &mut Transaction) -> Result<()> {
    let people = db.table("people")?;
    let (name, family) = (people.column("name")?, people.column("family")?);
    let mut cursor = txn.cursor(&people, Range::all())?;
    while let Some(row) = cursor.next_for_update(txn, false)? {
        let last = row.get::<&str>(name)?.rsplit(' ').next().unwrap_or_default().to_owned();
        let place = cursor.row_id().expect("the cursor has come to a row");
        txn.update_row(&people, place, &[(family, last.as_str().into())])?;
    }
    Ok(())
}

/// The migrations that a version of the program has. A real program has one list,
/// which grows.
fn migrations(version: u32) -> Migrations {
    let people = TableDef::new("people")
        .column("id", Type::U32)
        .column("name", Type::String(80))
        .column("visits", Type::U8);
    let mut all =
        Migrations::new().then(Migration::new(1, "people").create_table(people.primary_key(["id"])));
    if version >= 2 {
        let family = TableChange::new().add_column(ColumnDef::new("family", Type::String(80)).nullable());
        // Fill the column first; then make the index that needs it.
        all = all.then(
            Migration::new(2, "family names")
                .alter_table("people", family)
                .run(split_names)
                .create_index("people", IndexDef::new("by_family", ["family"])),
        );
    }
    if version >= 3 {
        let wider = TableChange::new()
            .widen_column("visits", Type::U32)
            .rename_column("name", "full_name")
            .add_column(ColumnDef::new("active", Type::Bool).default(true));
        all = all.then(Migration::new(3, "many visits, active people").alter_table("people", wider));
    }
    all
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Database::open(dir.path())?;
    assert_eq!(migrations(1).apply(&db)?, [1]);
    let people = db.table("people")?;
    db.run(|txn| {
        txn.insert(&people, &[1u32.into(), "Ada Lovelace".into(), 255u8.into()])?;
        txn.insert(&people, &[2u32.into(), "Edgar F. Codd".into(), 0u8.into()])
    })?;
    println!("version 1 has made the table and two rows");
    drop(people);
    db.close()?;

    let db = Database::open(dir.path())?;
    println!("version 2 has made the migrations {:?}", migrations(2).apply(&db)?);
    let by_family = db.table("people")?.index("by_family")?;
    let txn = db.begin_read()?;
    let codd = txn.get_by_index(&by_family, &["Codd".into()])?.expect("a row");
    assert_eq!(codd.get::<u32>("id")?, 2);
    drop(txn);

    println!("version 3 has made the migrations {:?}", migrations(3).apply(&db)?);
    assert!(migrations(3).apply(&db)?.is_empty(), "each is made once");
    let people = db.table("people")?;
    db.run(|txn| {
        let new: [Value; 5] =
            [3u32.into(), "Barbara Liskov".into(), 1_000u32.into(), "Liskov".into(), true.into()];
        txn.insert(&people, &new)?;
        txn.update(&people, &[1u32.into()], &[(people.column("visits")?, 256u32.into())])
    })?;
    let txn = db.begin_read()?;
    for row in txn.scan(&people, Range::all())? {
        println!("  {:?}", row?);
    }
    let ada = txn.get(&people, &[1u32.into()])?.expect("a row");
    assert!(ada.get::<&str>("full_name")? == "Ada Lovelace" && ada.get::<bool>("active")?);
    assert_eq!(ada.get::<u32>("visits")?, 256);

    let refused = migrations(2).apply(&db).expect_err("version 2 does not know migration 3");
    assert!(matches!(refused, Error::InvalidMigrations(_)));
    println!("version 2 refuses the database now: {refused}");
    Ok(())
}
