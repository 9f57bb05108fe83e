//! Rows as structs, in a small shop with an error type of its own.
//!
//! Other code reads the same table without the struct.
//!
//! `cargo run -p pantile --example typed_rows --features derive`

use std::fmt;

use pantile::{Database, Decimal, Range, Record, Transaction, TransactionError, TypedTable};

#[derive(Record, Clone, Debug)]
#[record(table = "items")]
struct Item {
    #[record(primary_key, max = 12)]
    code: String,
    #[record(decimal(10, 2))]
    price: Decimal,
    left: u32,
}

#[derive(Record, Clone, Debug)]
#[record(table = "orders", primary_key(customer, number), index(by_item(item, pieces)))]
struct Order {
    customer: u32,
    number: u64,
    #[record(max = 12)]
    item: String,
    pieces: u32,
    #[record(max = 200)]
    note: Option<String>,
}

#[derive(Debug)]
enum ShopError {
    SoldOut { left: u32 },
    NoSuchItem,
    Database(pantile::Error),
}

impl fmt::Display for ShopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShopError::SoldOut { left } => write!(f, "there are only {left} left"),
            ShopError::NoSuchItem => f.write_str("there is no such item"),
            ShopError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ShopError {}

impl From<pantile::Error> for ShopError {
    fn from(error: pantile::Error) -> Self {
        ShopError::Database(error)
    }
}

/// So that `Database::run` sees conflicts, and runs the transaction again.
impl TransactionError for ShopError {
    fn of_database(&self) -> Option<&pantile::Error> {
        match self {
            ShopError::Database(error) => Some(error),
            _ => None,
        }
    }
}

struct Shop {
    db: Database,
    items: TypedTable<Item>,
    orders: TypedTable<Order>,
}

impl Shop {
    fn open(db: Database) -> pantile::Result<Self> {
        Ok(Self { items: db.open_typed()?, orders: db.open_typed()?, db })
    }

    fn order(&self, order: &Order) -> Result<(), ShopError> {
        self.db.run(|txn| {
            self.take(txn, &order.item, order.pieces)?;
            Ok(self.orders.insert(txn, order)?)
        })
    }

    fn take(&self, txn: &mut Transaction, code: &str, pieces: u32) -> Result<(), ShopError> {
        let mut item = self.items.get_for_update(txn, code)?.ok_or(ShopError::NoSuchItem)?;
        let left = item.left;
        item.left = left.checked_sub(pieces).ok_or(ShopError::SoldOut { left })?;
        self.items.update(txn, &item)?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let shop = Shop::open(Database::open(dir.path())?)?;
    let tea = Item { code: "tea".into(), price: "4.50".parse()?, left: 5 };
    shop.db.run(|txn| shop.items.insert(txn, &tea))?;

    let order = Order { customer: 7, number: 1, item: "tea".into(), pieces: 3, note: None };
    shop.order(&order)?;
    let refused = shop.order(&Order { number: 2, ..order.clone() });
    println!("the second order: {}", refused.expect_err("3 of 5 are gone"));

    let txn = shop.db.begin_read()?;
    let item = shop.items.get(&txn, "tea")?.ok_or("no tea")?;
    println!("{} pieces of {} at {} are left", item.left, item.code, item.price);
    for order in shop.orders.scan(&txn, Range::prefix(&[7u32.into()]))? {
        println!("{:?}", order?);
    }

    // The same table without the struct.
    let by_item = shop.orders.table().index("by_item")?;
    for row in txn.scan_index(&by_item, Range::prefix(&["tea".into()]))? {
        let row = row?;
        println!("customer {} has {} pieces", row.get::<u64>("customer")?, row.get::<u64>("pieces")?);
    }
    Ok(())
}
