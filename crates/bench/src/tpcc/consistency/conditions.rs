//! The conditions, each a function of the facts.

use std::collections::BTreeMap;

use super::Report;
use super::facts::{District, Lines, Order, Warehouse};
use crate::tpcc::scale::Scale;

/// Checks all conditions for a warehouse.
pub(super) fn check(warehouse: &Warehouse, scale: Scale, report: &mut Report) {
    condition_1(warehouse, report);
    condition_8(warehouse, report);
    for district in &warehouse.districts {
        condition_2(district, report);
        condition_3(district, report);
        condition_4(district, report);
        condition_5(district, report);
        condition_6(district, report);
        condition_7(district, report);
        condition_9(district, report);
        condition_10(district, report);
        condition_11(district, scale, report);
        condition_12(district, report);
    }
}

/// Hundredths as people write them.
fn money(hundredths: i64) -> String {
    pantile::Decimal::new(hundredths.into(), 2).to_string()
}

/// W_YTD = sum(D_YTD)
fn condition_1(warehouse: &Warehouse, report: &mut Report) {
    let sum: i64 = warehouse.districts.iter().map(|d| d.ytd).sum();
    if warehouse.ytd != sum {
        let (w, ytd) = (warehouse.w, money(warehouse.ytd));
        report.add(1, format!("w_ytd of warehouse {w} is {ytd}, the sum of its d_ytd {}", money(sum)));
    }
}

/// D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID); a district without open orders
/// has no max(NO_O_ID).
fn condition_2(district: &District, report: &mut Report) {
    let last = district.next_order.checked_sub(1);
    let last_order = district.orders.last().map(|order| order.id);
    let last_open = district.open.last().copied();
    if last_order != last || last_open.is_some_and(|open| Some(open) != last) {
        let next = district.next_order;
        report.add(
            2,
            format!("district {district}: d_next_o_id is {next}, max(o_id) {last_order:?}, max(no_o_id) {last_open:?}"),
        );
    }
}

/// max(NO_O_ID) - min(NO_O_ID) + 1 = number of open orders
fn condition_3(district: &District, report: &mut Report) {
    let (Some(first), Some(last)) = (district.open.first(), district.open.last()) else { return };
    let count = district.open.len();
    if (last - first) as usize + 1 != count {
        report.add(3, format!("district {district}: {count} open orders from number {first} to {last}"));
    }
}

/// sum(O_OL_CNT) = number of order lines
fn condition_4(district: &District, report: &mut Report) {
    let sum: u64 = district.orders.iter().map(|order| u64::from(order.lines)).sum();
    let count: u64 = district.lines.iter().map(|lines| u64::from(lines.count)).sum();
    if sum != count {
        report.add(4, format!("district {district}: sum(o_ol_cnt) is {sum}, there are {count} order lines"));
    }
}

/// O_CARRIER_ID is null if and only if the order is open, and every open
/// order is an order.
fn condition_5(district: &District, report: &mut Report) {
    let mut open = district.open.iter().copied().peekable();
    for order in &district.orders {
        while let Some(stray) = open.next_if(|&open| open < order.id) {
            report.add(5, format!("order {district}/{stray} is open and not there"));
        }
        let is_open = open.next_if_eq(&order.id).is_some();
        if is_open == order.has_carrier {
            let carrier = if order.has_carrier { "a" } else { "no" };
            let open = if is_open { "open" } else { "not open" };
            report.add(5, format!("order {district}/{} has {carrier} carrier and is {open}", order.id));
        }
    }
    for stray in open {
        report.add(5, format!("order {district}/{stray} is open and not there"));
    }
}

/// Every order beside its lines, lines without an order included.
fn orders_and_lines(district: &District) -> BTreeMap<u32, (Option<&Order>, Option<&Lines>)> {
    let mut both: BTreeMap<u32, (Option<&Order>, Option<&Lines>)> =
        district.orders.iter().map(|order| (order.id, (Some(order), None))).collect();
    for lines in &district.lines {
        both.entry(lines.order).or_default().1 = Some(lines);
    }
    both
}

/// O_OL_CNT = number of the order's lines
fn condition_6(district: &District, report: &mut Report) {
    for (id, (order, lines)) in orders_and_lines(district) {
        let expected = order.map_or(0, |order| order.lines);
        let count = lines.map_or(0, |lines| lines.count);
        if expected != count || order.is_none() {
            let what = if order.is_some() { "has" } else { "is not there and has" };
            report.add(6, format!("order {district}/{id} {what} o_ol_cnt {expected} and {count} lines"));
        }
    }
}

/// OL_DELIVERY_D is null if and only if O_CARRIER_ID is
fn condition_7(district: &District, report: &mut Report) {
    for (id, (order, lines)) in orders_and_lines(district) {
        let Some(lines) = lines else { continue };
        let expected = if order.is_some_and(|order| order.has_carrier) { lines.count } else { 0 };
        if lines.delivered != expected {
            let (delivered, count) = (lines.delivered, lines.count);
            let carrier = if expected > 0 { "a" } else { "no" };
            report.add(
                7,
                format!(
                    "order {district}/{id} has {carrier} carrier, {delivered} of {count} lines delivered"
                ),
            );
        }
    }
}

/// W_YTD = sum(H_AMOUNT)
fn condition_8(warehouse: &Warehouse, report: &mut Report) {
    let sum: i64 = warehouse.districts.iter().map(|d| d.payments).sum();
    if warehouse.ytd != sum {
        let (w, ytd) = (warehouse.w, money(warehouse.ytd));
        report.add(8, format!("w_ytd of warehouse {w} is {ytd}, the sum of its h_amount {}", money(sum)));
    }
    for stray in &warehouse.stray_payments {
        report.add(8, format!("there is {stray}"));
    }
}

/// D_YTD = sum(H_AMOUNT)
fn condition_9(district: &District, report: &mut Report) {
    if district.ytd != district.payments {
        let (ytd, sum) = (money(district.ytd), money(district.payments));
        report.add(9, format!("d_ytd of district {district} is {ytd}, the sum of its h_amount {sum}"));
    }
}

/// C_BALANCE = sum(OL_AMOUNT of lines delivered) - sum(H_AMOUNT)
fn condition_10(district: &District, report: &mut Report) {
    for customer in &district.customers {
        let expected = customer.delivered_amount - customer.payments;
        if customer.balance != expected {
            let (balance, id) = (money(customer.balance), customer.id);
            report.add(
                10,
                format!(
                    "c_balance of customer {district}/{id} is {balance}, its lines delivered less its h_amount {}",
                    money(expected)
                ),
            );
        }
    }
}

/// number of orders - number of open orders = orders loaded as delivered (of
/// 3,000 customers 2,100) + orders delivered since
fn condition_11(district: &District, scale: Scale, report: &mut Report) {
    let since: u64 = district.customers.iter().map(|c| u64::from(c.deliveries)).sum();
    let expected = u64::from(scale.delivered()) + since;
    let (orders, open) = (district.orders.len() as u64, district.open.len() as u64);
    if orders != open + expected {
        report.add(
            11,
            format!(
                "district {district} has {orders} orders, {open} of them open, and {expected} deliveries"
            ),
        );
    }
}

/// C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT of lines delivered)
fn condition_12(district: &District, report: &mut Report) {
    for customer in &district.customers {
        let sum = customer.balance + customer.paid;
        if sum != customer.delivered_amount {
            let (delivered, id) = (money(customer.delivered_amount), customer.id);
            report.add(
                12,
                format!(
                    "c_balance + c_ytd_payment of customer {district}/{id} is {}, its lines delivered {delivered}",
                    money(sum)
                ),
            );
        }
    }
}

impl std::fmt::Display for District {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.w, self.d)
    }
}
