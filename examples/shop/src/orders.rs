//! The tables as structs, and taking an order.

use std::fmt;

use pantile::{
    Database, Decimal, Error, Record, Transaction, TransactionError, TransactionOptions, TypedTable,
};

/// Different things that are sold.
pub const ITEMS: u32 = 50;

#[derive(Record, Clone, Debug)]
#[record(table = "items")]
pub struct Item {
    #[record(primary_key)]
    pub id: u32,
    #[record(max = 40)]
    pub name: String,
    #[record(decimal(10, 2))]
    pub price: Decimal,
    pub sold: u64,
}

#[derive(Record, Clone, Debug)]
#[record(table = "orders", index(by_item(item)))]
pub struct Order {
    #[record(primary_key)]
    pub id: u64,
    pub item: u32,
    pub pieces: u32,
    // Added by a migration: orders from before have none.
    #[record(max = 100)]
    pub note: Option<String>,
    #[record(decimal(12, 2))]
    pub total: Option<Decimal>,
}

/// Why something was not done.
#[derive(Debug)]
pub enum ShopError {
    Usage,
    NoSuchItem(u32),
    Database(Error),
    Transfer(String),
}

impl fmt::Display for ShopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => {
                f.write_str("old DIR ORDERS | migrate DIR | work DIR BACKUP | report DIR | dump DIR")
            }
            Self::NoSuchItem(id) => write!(f, "there is no item {id}"),
            Self::Database(error) => error.fmt(f),
            Self::Transfer(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for ShopError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for ShopError {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

/// So that conflicts are tried again.
impl TransactionError for ShopError {
    fn of_database(&self) -> Option<&Error> {
        Error::in_chain(self)
    }
}

/// The handles that the program works with.
#[derive(Clone)]
pub struct Shop {
    pub db: Database,
    pub items: TypedTable<Item>,
    pub orders: TypedTable<Order>,
}

impl Shop {
    /// Fails if the tables are not what this program knows, and says how they differ.
    pub fn open(db: &Database) -> Result<Self, ShopError> {
        Ok(Self { items: db.open_typed()?, orders: db.open_typed()?, db: db.clone() })
    }

    /// Takes an order: the item counts what is sold, the order its total. Both or
    /// neither.
    pub fn order(&self, id: u64, item: u32, pieces: u32) -> Result<(), ShopError> {
        let named = TransactionOptions::new().name("order");
        self.db.run_with(named, |txn| {
            let total = self.sell(txn, item, pieces)?;
            let note = (pieces > 8).then(|| "by truck".to_owned());
            Ok(self.orders.insert(txn, &Order { id, item, pieces, note, total: Some(total) })?)
        })
    }

    fn sell(&self, txn: &mut Transaction, item: u32, pieces: u32) -> Result<Decimal, ShopError> {
        let mut item = self.items.get_for_update(txn, item)?.ok_or(ShopError::NoSuchItem(item))?;
        item.sold += u64::from(pieces);
        self.items.update(txn, &item)?;
        Ok(total(item.price, pieces))
    }
}

/// The price of some pieces.
pub fn total(price: Decimal, pieces: u32) -> Decimal {
    Decimal { units: price.units * i128::from(pieces), ..price }
}
