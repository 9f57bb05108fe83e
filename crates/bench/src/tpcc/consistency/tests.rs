//! Each condition on a database that is damaged in the way that it speaks of.

use std::sync::atomic::AtomicBool;

use pantile::{MediumKind, Options, Transaction, Value};

use super::*;
use crate::load::Silent;
use crate::tpcc::Tpcc;
use crate::tpcc::schema::{customer, district, history, order, order_line, warehouse};
use crate::workload::Workload as _;

const SCALE: Scale = Scale { warehouses: 2, items: 50, customers: 30 };
static NEVER: AtomicBool = AtomicBool::new(false);

fn context() -> Context<'static> {
    Context { threads: 2, stop: &NEVER, observer: &Silent }
}

fn loaded() -> (Database, Tables) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").unwrap();
    let data = Tpcc { scale: SCALE, together: false, seed: 1 }.load(&db, &context()).unwrap();
    (db, data.tables)
}

/// The conditions that fail after the damage.
fn failed_after(damage: impl Fn(&mut Transaction, &Tables) -> pantile::Result<bool>) -> Vec<u8> {
    let (db, tables) = loaded();
    assert!(db.run(|txn| damage(txn, &tables)).unwrap(), "nothing was damaged");
    let report = check(&db, &tables, SCALE, &context()).unwrap();
    for violation in &report.violations {
        println!("{violation}");
    }
    report.failed().into_iter().collect()
}

fn without_text(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Null => Value::Null,
        Value::Int(n) => Value::Int(n),
        Value::UInt(n) => Value::UInt(n),
        Value::Timestamp(n) => Value::Timestamp(n),
        _ => Value::Str("text"),
    }
}

#[test]
fn a_database_as_loaded_is_consistent() {
    let (db, tables) = loaded();
    let report = check(&db, &tables, SCALE, &context()).unwrap();
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

/// Orders 1 to 21 of 30 are delivered.
const DELIVERED: u32 = 5;
const OPEN: u32 = 25;

#[test]
fn condition_1_compares_the_takings_of_a_warehouse_with_its_districts() {
    let failed =
        failed_after(|txn, t| txn.update(&t.warehouse, &[2u16.into()], &[(warehouse::W_YTD, 1.into())]));
    assert_eq!(failed, [1, 8]);
}

#[test]
fn condition_2_compares_the_next_order_with_the_last() {
    let key = [1u16.into(), 4u8.into()];
    let failed = failed_after(|txn, t| txn.update(&t.district, &key, &[(district::D_NEXT_O_ID, 40.into())]));
    assert_eq!(failed, [2]);
}

#[test]
fn condition_3_finds_a_gap_in_the_open_orders() {
    let key = [1u16.into(), 4u8.into(), OPEN.into()];
    let failed = failed_after(|txn, t| txn.delete(&t.new_order, &key));
    assert_eq!(failed, [3, 5, 11]);
}

#[test]
fn condition_4_counts_the_lines_of_a_district() {
    let key = [1u16.into(), 4u8.into(), OPEN.into(), 1u8.into()];
    let failed = failed_after(|txn, t| txn.delete(&t.order_line, &key));
    assert_eq!(failed, [4, 6]);
}

#[test]
fn condition_5_wants_a_carrier_where_an_order_is_not_open() {
    let key = [2u16.into(), 4u8.into(), DELIVERED.into()];
    let failed = failed_after(|txn, t| txn.update(&t.order, &key, &[(order::O_CARRIER_ID, Value::Null)]));
    assert_eq!(failed, [5, 7]);
}

#[test]
fn condition_5_wants_an_order_where_there_is_an_open_one() {
    let key = [2u16.into(), 4u8.into(), 31.into()];
    let failed = failed_after(|txn, t| txn.insert(&t.new_order, &key).map(|()| true));
    assert_eq!(failed, [2, 5, 11]);
}

#[test]
fn condition_6_counts_the_lines_of_each_order() {
    // A line moves from one order to another: the sum stays.
    let failed = failed_after(|txn, t| {
        let line = |o: u32, n: u8| [1u16.into(), 4u8.into(), o.into(), n.into()];
        let row = txn.get(&t.order_line, &line(OPEN, 1))?.unwrap().values()?;
        let mut row: Vec<Value<'static>> = row.into_iter().map(without_text).collect();
        row[order_line::OL_O_ID] = (OPEN + 1).into();
        row[order_line::OL_NUMBER] = 99u8.into();
        txn.insert(&t.order_line, &row)?;
        txn.delete(&t.order_line, &line(OPEN, 1))
    });
    assert_eq!(failed, [6]);
}

#[test]
fn condition_7_wants_a_date_where_there_is_a_carrier() {
    let key = [1u16.into(), 4u8.into(), DELIVERED.into(), 2u8.into()];
    let null = (order_line::OL_DELIVERY_D, Value::Null);
    let failed = failed_after(|txn, t| txn.update(&t.order_line, &key, &[null]));
    assert_eq!(failed, [7]);
}

#[test]
fn condition_8_compares_the_takings_of_a_warehouse_with_its_payments() {
    let stray = [0u32.into(), 0u32.into(), 1.into(), 1.into(), 1.into(), 1.into(), 9.into()];
    let failed = failed_after(|txn, t| {
        let rest = [Value::Timestamp(0), 100.into(), "nowhere".into()];
        txn.insert(&t.history, &[&stray[..], &rest].concat()).map(|()| true)
    });
    assert_eq!(failed, [8]);
}

#[test]
fn condition_9_compares_the_takings_of_a_district_with_its_payments() {
    // A payment moves to another district of the same warehouse.
    let key = [(crate::tpcc::load::LOADED_STREAMS + 1).into(), 1u32.into()];
    let failed = failed_after(|txn, t| txn.update(&t.history, &key, &[(history::H_D_ID, 7.into())]));
    assert_eq!(failed, [9]);
}

#[test]
fn condition_10_compares_the_balance_of_a_customer_with_its_payments() {
    // A payment moves to another customer.
    let key = [(crate::tpcc::load::LOADED_STREAMS + 1).into(), 1u32.into()];
    let failed = failed_after(|txn, t| txn.update(&t.history, &key, &[(history::H_C_ID, 2.into())]));
    assert_eq!(failed, [10]);
}

#[test]
fn condition_11_compares_deliveries_with_orders_that_are_not_open() {
    let key = [1u16.into(), 4u8.into(), 3u32.into()];
    let failed =
        failed_after(|txn, t| txn.update(&t.customer, &key, &[(customer::C_DELIVERY_CNT, 1.into())]));
    assert_eq!(failed, [11]);
}

#[test]
fn condition_12_compares_balance_and_payments_with_what_was_delivered() {
    let key = [1u16.into(), 4u8.into(), 3u32.into()];
    let failed = failed_after(|txn, t| txn.update(&t.customer, &key, &[(customer::C_YTD_PAYMENT, 0.into())]));
    assert_eq!(failed, [12]);
}
