//! What the conditions speak of, read from the database.

use pantile::{Database, Isolation, Micros, Range, Transaction, TransactionOptions, Value};

use crate::error::Result;
use crate::tpcc::scale::{DISTRICTS, Scale};
use crate::tpcc::schema::{Tables, customer, district, history, new_order, order, order_line, warehouse};

/// Payments of HISTORY, summed up.
pub(super) struct Payments {
    scale: Scale,
    /// By district in which they were made.
    made: Vec<i64>,
    /// By customer who made them.
    by: Vec<i64>,
    /// Rows of warehouses, districts or customers that do not exist.
    strays: Vec<String>,
}

pub(super) struct Warehouse {
    pub w: u16,
    pub ytd: i64,
    pub districts: Vec<District>,
    /// Rows of HISTORY that belong nowhere.
    pub stray_payments: Vec<String>,
}

pub(super) struct District {
    pub w: u16,
    pub d: u8,
    pub ytd: i64,
    pub next_order: u32,
    /// Sum of the payments made here.
    pub payments: i64,
    /// By number.
    pub orders: Vec<Order>,
    /// Their numbers, in order.
    pub open: Vec<u32>,
    /// By number of the order.
    pub lines: Vec<Lines>,
    pub customers: Vec<Customer>,
}

pub(super) struct Order {
    pub id: u32,
    pub customer: u32,
    pub lines: u32,
    pub has_carrier: bool,
}

/// The lines of one order.
pub(super) struct Lines {
    pub order: u32,
    pub count: u32,
    pub delivered: u32,
    /// Sum of the amounts of those delivered.
    pub delivered_amount: i64,
}

pub(super) struct Customer {
    pub id: u32,
    pub balance: i64,
    pub paid: i64,
    pub deliveries: u32,
    /// Sum of its rows in HISTORY.
    pub payments: i64,
    /// Sum of the amounts of its order lines delivered.
    pub delivered_amount: i64,
}

impl Payments {
    fn district(&self, w: u16, d: u8) -> Option<usize> {
        let known = (1..=self.scale.warehouses).contains(&w) && (1..=DISTRICTS).contains(&d);
        known.then(|| usize::from(w - 1) * usize::from(DISTRICTS) + usize::from(d - 1))
    }

    fn customer(&self, w: u16, d: u8, c: u32) -> Option<usize> {
        let known = (1..=self.scale.customers).contains(&c);
        let first = self.district(w, d).filter(|_| known)? * self.scale.customers as usize;
        Some(first + c as usize - 1)
    }
}

fn reader(db: &Database) -> pantile::Result<Transaction> {
    db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot).read_only(true))
}

/// Sums up HISTORY.
pub(super) fn payments(db: &Database, tables: &Tables, scale: Scale) -> Result<Payments> {
    let districts = usize::from(scale.warehouses) * usize::from(DISTRICTS);
    let customers = districts * scale.customers as usize;
    let mut sums = Payments { scale, made: vec![0; districts], by: vec![0; customers], strays: Vec::new() };
    let txn = reader(db)?;
    for row in txn.scan(&tables.history, Range::all())? {
        let row = row?;
        let (w, d) = (row.get(history::H_W_ID)?, row.get(history::H_D_ID)?);
        let (cw, cd, c) =
            (row.get(history::H_C_W_ID)?, row.get(history::H_C_D_ID)?, row.get(history::H_C_ID)?);
        let amount: i64 = row.get(history::H_AMOUNT)?;
        match (sums.district(w, d), sums.customer(cw, cd, c)) {
            (Some(district), Some(customer)) => {
                sums.made[district] += amount;
                sums.by[customer] += amount;
            }
            _ => sums.strays.push(format!("a payment of customer {cw}/{cd}/{c} in district {w}/{d}")),
        }
    }
    Ok(sums)
}

/// Reads everything else of one warehouse.
pub(super) fn warehouse(
    db: &Database,
    tables: &Tables,
    scale: Scale,
    w: u16,
    payments: &Payments,
) -> Result<Warehouse> {
    let txn = reader(db)?;
    let row = txn.get(&tables.warehouse, &[w.into()])?;
    let ytd = row.map_or(Ok(0), |row| row.get(warehouse::W_YTD))?;
    let read = |d| District::read(&txn, tables, scale, (w, d), payments);
    let districts = (1..=DISTRICTS).map(read).collect::<Result<_>>()?;
    // Payments that belong nowhere are told once.
    let stray_payments = if w == 1 { payments.strays.clone() } else { Vec::new() };
    Ok(Warehouse { w, ytd, districts, stray_payments })
}

impl District {
    fn read(
        txn: &Transaction,
        tables: &Tables,
        scale: Scale,
        (w, d): (u16, u8),
        payments: &Payments,
    ) -> Result<Self> {
        let prefix = [w.into(), d.into()];
        let row = txn.get(&tables.district, &prefix)?;
        let (ytd, next_order) = match row {
            Some(row) => (row.get(district::D_YTD)?, row.get(district::D_NEXT_O_ID)?),
            None => (0, 0),
        };
        let orders = orders(txn, tables, &prefix)?;
        let lines = lines(txn, tables, &prefix)?;
        let mut open = Vec::new();
        for row in txn.scan(&tables.new_order, Range::prefix(&prefix))? {
            open.push(row?.get(new_order::NO_O_ID)?);
        }
        let mut delivered = vec![0; scale.customers as usize];
        for order in &orders {
            let found = lines.binary_search_by_key(&order.id, |l| l.order);
            if let (Ok(n), Some(sum)) = (found, delivered.get_mut((order.customer as usize).wrapping_sub(1)))
            {
                *sum += lines[n].delivered_amount;
            }
        }
        let mut customers = Vec::with_capacity(delivered.len());
        for row in txn.scan(&tables.customer, Range::prefix(&prefix))? {
            let row = row?;
            let id: u32 = row.get(customer::C_ID)?;
            customers.push(Customer {
                id,
                balance: row.get(customer::C_BALANCE)?,
                paid: row.get(customer::C_YTD_PAYMENT)?,
                deliveries: row.get(customer::C_DELIVERY_CNT)?,
                payments: payments.customer(w, d, id).map_or(0, |n| payments.by[n]),
                delivered_amount: delivered.get((id as usize).wrapping_sub(1)).copied().unwrap_or(0),
            });
        }
        let payments = payments.district(w, d).map_or(0, |n| payments.made[n]);
        Ok(Self { w, d, ytd, next_order, payments, orders, open, lines, customers })
    }
}

fn orders(txn: &Transaction, tables: &Tables, prefix: &[Value<'_>]) -> Result<Vec<Order>> {
    let mut orders = Vec::new();
    for row in txn.scan(&tables.order, Range::prefix(prefix))? {
        let row = row?;
        orders.push(Order {
            id: row.get(order::O_ID)?,
            customer: row.get(order::O_C_ID)?,
            lines: row.get(order::O_OL_CNT)?,
            has_carrier: row.get::<Option<u8>>(order::O_CARRIER_ID)?.is_some(),
        });
    }
    Ok(orders)
}

fn lines(txn: &Transaction, tables: &Tables, prefix: &[Value<'_>]) -> Result<Vec<Lines>> {
    let mut lines: Vec<Lines> = Vec::new();
    for row in txn.scan(&tables.order_line, Range::prefix(prefix))? {
        let row = row?;
        let order = row.get(order_line::OL_O_ID)?;
        let delivered = row.get::<Option<Micros>>(order_line::OL_DELIVERY_D)?.is_some();
        let amount = if delivered { row.get(order_line::OL_AMOUNT)? } else { 0i64 };
        match lines.last_mut().filter(|last| last.order == order) {
            Some(last) => {
                last.count += 1;
                last.delivered += u32::from(delivered);
                last.delivered_amount += amount;
            }
            None => {
                let delivered = u32::from(delivered);
                lines.push(Lines { order, count: 1, delivered, delivered_amount: amount });
            }
        }
    }
    Ok(lines)
}
