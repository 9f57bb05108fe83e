//! Tables of structs, and the same tables without them.

use pantile::{
    ColumnDef, Database, Error, IndexDef, MediumKind, Options, Range, Record, TableChange, Type, TypedTable,
};
use pantile_testkit::fails;

#[derive(Record, Clone, PartialEq, Debug)]
#[record(primary_key(shop, number))]
struct Order {
    #[record(index)]
    customer: u32,
    shop: u16,
    number: u64,
    #[record(max = 10)]
    note: Option<String>,
}

fn order(shop: u16, number: u64) -> Order {
    Order { customer: (number % 3) as u32, shop, number, note: None }
}

fn database() -> (Database, TypedTable<Order>) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let orders = db.open_typed::<Order>().expect("the table");
    let rows: Vec<_> = (0..10).map(|number| order(1, number)).collect();
    assert_eq!(db.run(|txn| orders.insert_many(txn, &rows)).expect("rows"), 10);
    (db, orders)
}

fn all(db: &Database, orders: &TypedTable<Order>) -> Vec<Order> {
    let txn = db.begin_read().expect("begin");
    let rows = orders.scan(&txn, Range::all()).expect("scan");
    rows.collect::<Result<_, _>>().expect("rows")
}

#[test]
fn each_call_does_what_its_namesake_does() {
    let (db, orders) = database();
    let noted = Order { note: Some("gift".into()), ..order(1, 3) };
    let mut txn = db.begin().expect("begin");
    fails!(orders.insert(&mut txn, &noted), Error::DuplicateKey { .. }, "primary");
    assert!(orders.update(&mut txn, &noted).expect("update"));
    assert!(!orders.update(&mut txn, &order(2, 3)).expect("no such row"));
    assert_eq!(orders.get_for_update(&mut txn, (1, 3)).expect("get"), Some(noted.clone()));
    assert_eq!(orders.replace(&mut txn, &order(1, 3)).expect("replace"), Some(noted.clone()));
    assert_eq!(orders.replace(&mut txn, &order(2, 3)).expect("replace"), None);
    assert!(orders.upsert(&mut txn, &noted).expect("upsert"));
    assert!(!orders.upsert(&mut txn, &order(2, 4)).expect("upsert"));
    assert!(orders.delete(&mut txn, (1, 0)).expect("delete"));
    assert!(!orders.delete(&mut txn, (1, 0)).expect("it is gone"));
    let long = Order { note: Some("eleven byte".into()), ..order(3, 1) };
    fails!(orders.insert_many(&mut txn, [&order(3, 0), &long]), Error::TooLong { .. }, "\"note\"");
    txn.commit().expect("commit");
    let mut expected: Vec<_> = (1..10).map(|number| order(1, number)).collect();
    expected[2] = noted;
    expected.extend([order(2, 3), order(2, 4)]);
    assert_eq!(all(&db, &orders), expected);
    let many = (0..3_000).map(|number| order(4, number));
    assert_eq!(orders.bulk_insert(&db, many.clone()).expect("a load"), 3_000);
    expected.extend(many);
    assert_eq!(all(&db, &orders), expected);
}

#[test]
fn rows_come_in_the_order_of_an_index() {
    let (db, orders) = database();
    let by_customer = orders.table().index("by_customer").expect("the index");
    let txn = db.begin_read().expect("begin");
    let rows = orders.scan_index(&txn, &by_customer, Range::prefix(&[1u32.into()]).reverse()).expect("scan");
    let numbers: Vec<u64> = rows.map(|row| row.expect("a row").number).collect();
    assert_eq!(numbers, [7, 4, 1]);
}

#[test]
fn a_table_that_differs_is_not_taken() {
    let (db, orders) = database();
    assert_eq!(db.open_typed::<Order>().expect("again").table().name(), "order");
    db.create_index(orders.table(), IndexDef::new("by_note", ["note"])).expect("an index");
    fails!(db.open_typed::<Order>(), Error::DefinitionDiffers { .. }, "index \"by_note\" is one too many");
    TypedTable::<Order>::of(db.table("order").expect("it")).expect("other indexes do not matter");
    let other = db.alter_table(orders.table(), &TableChange::new().rename_table("other")).expect("alter");
    TypedTable::<Order>::of(other.clone()).expect("another name does not matter");
    let change = TableChange::new().add_column_before("shop", ColumnDef::new("vat", Type::U8).default(19u8));
    let wider = db.alter_table(&other, &change).expect("alter");
    fails!(TypedTable::<Order>::of(wider), Error::DefinitionDiffers { .. }, "\"vat\" is one too many");
}

/// A handle keeps the columns that it was made with.
#[test]
fn a_handle_outlives_changes_of_its_table() {
    let (db, orders) = database();
    let change = TableChange::new().add_column_before("shop", ColumnDef::new("vat", Type::U8).default(19u8));
    let wider = db.alter_table(orders.table(), &change).expect("alter");
    db.run(|txn| orders.insert(txn, &order(5, 5))).expect("insert");
    assert_eq!(all(&db, &orders).len(), 11);
    let txn = db.begin_read().expect("begin");
    let row = txn.get(&wider, &[5.into(), 5.into()]).expect("get").expect("a row");
    assert_eq!((row.get::<u8>("vat").expect("the default"), row.to().ok()), (19, Some(order(5, 5))));
    // An index of the newer handle: its rows are read by names.
    let index = wider.index("by_customer").expect("the index");
    let rows = orders.scan_index(&txn, &index, Range::prefix(&[0u32.into()])).expect("scan");
    assert_eq!(rows.collect::<Result<Vec<_>, _>>().expect("rows").len(), 4);
}
