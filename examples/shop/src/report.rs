//! Reports from a process of its own, beside the one that takes orders.

use std::io::stdout;

use pantile::{Database, Range};
use pantile_transfer::Dump;

use crate::orders::{Order, Shop, ShopError, total};

/// Pages of the list of orders.
const PAGE: usize = 5;

/// What was sold of each item, by the orders and by the items, which must agree.
pub fn report(db: &Database) -> Result<(), ShopError> {
    let shop = Shop::open(db)?;
    let txn = db.begin_safe_snapshot()?;
    let by_item = shop.orders.table().index("by_item")?;
    let mut all = 0;
    for item in shop.items.scan(&txn, Range::all())? {
        let item = item?;
        let (mut pieces, mut cents) = (0, 0);
        for order in shop.orders.scan_index(&txn, &by_item, Range::prefix(&[item.id.into()]))? {
            let order = order?;
            let due = total(item.price, order.pieces);
            assert_eq!(order.total, Some(due), "order {}", order.id);
            (pieces, cents) = (pieces + u64::from(order.pieces), cents + due.units);
        }
        assert_eq!(pieces, item.sold, "item {}", item.id);
        println!("{:>8} pieces of {:<8} for {}.{:02}", pieces, item.name, cents / 100, cents % 100);
        all += pieces;
    }
    println!("{all} pieces in {} orders; the last ones:", txn.count(shop.orders.table(), Range::all())?);
    for order in shop.orders.scan(&txn, Range::all().reverse().limit(PAGE))? {
        let Order { id, item, pieces, note, .. } = order?;
        println!("{id}: {pieces} of item {item} {}", note.unwrap_or_default());
    }
    Ok(())
}

/// Everything as text.
pub fn dump(db: &Database) -> Result<(), ShopError> {
    let dumped = Dump::new(db).and_then(|dump| dump.write(stdout().lock()));
    dumped.map(drop).map_err(|error| ShopError::Transfer(error.to_string()))
}
