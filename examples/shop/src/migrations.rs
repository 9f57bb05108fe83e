//! How databases of the first version become what the program needs.

use pantile::{
    ColumnDef, Database, Decimal, Migration, Migrations, Range, TableChange, TableDef, Transaction, Type,
    Value,
};

use crate::orders::{ITEMS, Order, ShopError, total};

const PRICE: Type = Type::Decimal { precision: 10, scale: 2 };
const TOTAL: Type = Type::Decimal { precision: 12, scale: 2 };

fn first() -> Migration {
    Migration::new(1, "items and orders")
        .create_table(
            TableDef::new("items")
                .column("id", Type::U32)
                .column("name", Type::String(40))
                .column("price", PRICE)
                .column("sold", Type::U64)
                .primary_key(["id"]),
        )
        .create_table(
            TableDef::new("orders")
                .column("id", Type::U64)
                .column("item", Type::U32)
                .column("pieces", Type::U32)
                .primary_key(["id"]),
        )
        .run(stock)
}

/// All that a database has had, in order. What is here once is never changed.
fn all() -> Migrations {
    Migrations::new()
        .then(first())
        .then(
            Migration::new(2, "notes and totals").alter_table(
                "orders",
                TableChange::new()
                    .add_column(ColumnDef::new("note", Type::String(100)).nullable())
                    .add_column(ColumnDef::new("total", TOTAL).nullable()),
            ),
        )
        .then(
            Migration::new(3, "totals of earlier orders, and an index")
                .run(fill_totals)
                .create_index("orders", pantile::IndexDef::new("by_item", ["item"])),
        )
}

fn stock(db: &Database, txn: &mut Transaction) -> pantile::Result<()> {
    let items = db.table("items")?;
    for id in 0..ITEMS {
        let name = format!("item {id}");
        let price = Decimal { units: 199 + i128::from(id), scale: 2 };
        txn.insert(&items, &[id.into(), name.as_str().into(), Value::Decimal(price), 0u64.into()])?;
    }
    Ok(())
}

/// One transaction: the totals of all earlier orders, or none.
fn fill_totals(db: &Database, txn: &mut Transaction) -> pantile::Result<()> {
    let (items, orders) = (db.table("items")?, db.table("orders")?);
    let mut cursor = txn.cursor(&orders, Range::all())?;
    while let Some(row) = cursor.next(txn)? {
        let order: Order = row.to()?;
        let item = txn.get(&items, &[order.item.into()])?.expect("an order is of an item");
        let total = total(item.get("price")?, order.pieces);
        txn.update(&orders, &[order.id.into()], &[("total", Value::Decimal(total))])?;
    }
    Ok(())
}

/// Makes what is missing. Several processes of different versions may have tried.
pub fn migrate(db: &Database) -> Result<(), ShopError> {
    println!("migrated {:?}", all().apply(db)?);
    Ok(())
}

/// A database as the first version would have left it after some orders.
pub fn first_version(db: &Database, orders: u64) -> Result<(), ShopError> {
    Migrations::new().then(first()).apply(db)?;
    let (items, table) = (db.table("items")?, db.table("orders")?);
    let item = |id: u64| (id % u64::from(ITEMS)) as u32;
    let pieces = |id: u64| 1 + (id % 7) as u32;
    db.run(|txn| {
        txn.insert_many(&table, (0..orders).map(|id| [id.into(), item(id).into(), pieces(id).into()]))?;
        let mut sold = [0u64; ITEMS as usize];
        (0..orders).for_each(|id| sold[item(id) as usize] += u64::from(pieces(id)));
        for (id, sold) in (0u32..).zip(sold) {
            txn.update(&items, &[id.into()], &[("sold", sold.into())])?;
        }
        Ok::<_, ShopError>(())
    })
}
