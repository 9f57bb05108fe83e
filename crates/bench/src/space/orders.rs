//! TPC-C's tables as a load: which of their rows are updated how often.
//!
//! Warehouses, districts, customers and stock are updated at random, each row at
//! a rate of its own. An order, its lines and its entry among the open orders
//! are written once and once more when the order is delivered, in the order in
//! which they came; payments are written once. Their first versions die
//! together and their last ones never, so at best they cost no copies.

use std::sync::atomic::AtomicBool;

use pantile::stats::TableSpace;
use pantile::{Database, Isolation};

use super::optimum::{Class, Optimum};
use super::updating::Updating;
use crate::error::Result;
use crate::load::{self, Silent};
use crate::runner::Client as _;
use crate::tpcc::schema::{customer, district, history, new_order, order, order_line, stock, warehouse};
use crate::tpcc::{Client, DISTRICTS, Scale, Tpcc};
use crate::workload::Workload;

/// Bytes that a transaction of the mix writes, roughly.
const TRANSACTION_BYTES: u64 = 3000;
/// Lines of an order, on average.
const LINES: f64 = 10.0;
/// Payments that are for a customer by name, of all.
const BY_NAME: f64 = 0.6;
const DISTRICT_COUNT: f64 = DISTRICTS as f64;

/// A warehouse at work.
pub(super) struct Orders {
    db: Database,
    client: Client,
    scale: Scale,
    /// Transactions of each kind in the window.
    kinds: [f64; 5],
    /// The tables when the window began.
    before: Vec<TableSpace>,
}

impl Orders {
    pub fn load(db: Database, seed: u64) -> Result<Self> {
        let tpcc = Tpcc { scale: Scale::full(1), together: false, seed };
        let context = load::Context { threads: 1, stop: &AtomicBool::new(false), observer: &Silent };
        let data = tpcc.load(&db, &context)?;
        let client = tpcc.clients(&db, &data, 1, Isolation::Serializable)?.remove(0);
        Ok(Self { db, client, scale: tpcc.scale, kinds: [0.0; 5], before: Vec::new() })
    }

    /// Versions of the rows of a table that are updated at random, per row, in
    /// classes: their share of the rows, and versions.
    fn versions(&self, table: &str) -> Vec<(f64, f64)> {
        let [orders, payments, _, deliveries, _] = self.kinds;
        match table {
            warehouse::NAME => vec![(1.0, payments)],
            district::NAME => vec![(1.0, (payments + orders) / DISTRICT_COUNT)],
            stock::NAME => {
                let mean = orders * LINES / f64::from(self.scale.items);
                skewed(13).map(|(rows, rate)| (rows, mean * rate)).collect()
            }
            customer::NAME => self.versions_of_customers(payments / DISTRICT_COUNT, deliveries),
            _ => Vec::new(),
        }
    }

    /// Of customers with the same name one gets all payments by name.
    fn versions_of_customers(&self, payments: f64, deliveries: f64) -> Vec<(f64, f64)> {
        let customers = f64::from(self.scale.customers);
        let names = f64::from(self.scale.last_names());
        let named =
            skewed(8).map(|(rows, rate)| (rows * names / customers, BY_NAME * payments * rate / names));
        let others = (1.0 - names / customers, 0.0);
        let mut classes = Vec::new();
        for (rows, by_name) in named.chain([others]) {
            for (share, rate) in skewed(10) {
                let by_id = (1.0 - BY_NAME) * payments * rate / customers;
                classes.push((rows * share, by_name + by_id + deliveries / customers));
            }
        }
        classes
    }

    /// Versions of orders, their lines, and payments.
    fn written_in_order(&self, table: &str) -> f64 {
        let [orders, payments, _, deliveries, _] = self.kinds;
        let delivered = deliveries * DISTRICT_COUNT;
        match table {
            order::NAME => orders + delivered,
            order_line::NAME => (orders + delivered) * LINES,
            new_order::NAME => orders,
            history::NAME => payments,
            _ => 0.0,
        }
    }
}

/// Rows that `NURand(2^bits - 1, ..)` draws: of those whose lowest bits have
/// `k` ones, their share of the rows, and how often each is drawn if the mean
/// is 1 (TPC-C 2.1.6: of two random bits one suffices for a one).
fn skewed(bits: u32) -> impl Iterator<Item = (f64, f64)> {
    let mut choose = 1.0;
    (0..=bits).map(move |k| {
        let share = choose / 2f64.powi(bits as i32);
        choose *= f64::from(bits - k) / f64::from(k + 1);
        (share, 1.5f64.powi(k as i32) * 0.5f64.powi((bits - k) as i32))
    })
}

/// Live rows of a table, and bytes of one.
fn live(space: &TableSpace) -> (f64, f64) {
    ((space.contents - space.obsolete) as f64, space.bytes as f64 / space.contents.max(1) as f64)
}

impl Updating for Orders {
    fn db(&self) -> &Database {
        &self.db
    }

    fn transaction_bytes(&self) -> u64 {
        TRANSACTION_BYTES
    }

    fn update(&mut self) -> Result<()> {
        let kind = self.client.draw();
        self.client.attempt()?;
        self.kinds[kind] += 1.0;
        Ok(())
    }

    fn begin_window(&mut self) {
        self.kinds = [0.0; 5];
        self.before = self.db.space_by_table();
    }

    /// For the mean of the live bytes in the window.
    fn optimum(&self) -> Optimum {
        let mut classes = Vec::new();
        for after in &self.db.space_by_table() {
            let before = self.before.iter().find(|before| before.table == after.table);
            let (rows, row_bytes) = live(after);
            let mean = before.map_or(rows, |before| f64::midpoint(live(before).0, rows));
            let versions = self.versions(&after.table);
            if versions.is_empty() {
                classes.push(Class { bytes: mean * row_bytes, updates: 0.0 });
                classes.push(Class { bytes: 0.0, updates: self.written_in_order(&after.table) * row_bytes });
            }
            classes.extend(versions.into_iter().map(|(share, versions)| Class {
                bytes: share * mean * row_bytes,
                updates: share * mean * versions * row_bytes,
            }));
        }
        Optimum::new(classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_uniform_numbers_have_the_mean_of_uniform_ones() {
        for bits in [8, 10, 13] {
            let rows: f64 = skewed(bits).map(|(share, _)| share).sum();
            let drawn: f64 = skewed(bits).map(|(share, rate)| share * rate).sum();
            assert!((rows - 1.0).abs() < 1e-9 && (drawn - 1.0).abs() < 1e-9, "{bits}: {rows} {drawn}");
        }
    }
}
