//! Queries over CUSTOMER and its orders.

use std::collections::BTreeMap;

use foldhash::HashMap;
use pantile::{Range, Result, Row, Value};

use super::dates::EARLIEST;
use crate::ch::answer::{Answer, By, ordered, row};
use crate::ch::snapshot::{Line, Order, Snapshot, WarehouseKey};
use crate::tpcc::schema::{customer, new_order};

fn place(row: &Row<'_>) -> Result<WarehouseKey> {
    Ok((row.get(customer::C_W_ID)?, row.get(customer::C_D_ID)?, row.get(customer::C_ID)?))
}

/// The code of the first character of the state, which is the key of the nation.
fn nation(row: &Row<'_>) -> Result<u8> {
    Ok(row.get::<&str>(customer::C_STATE)?.as_bytes()[0])
}

fn key((w, d, number): WarehouseKey) -> [Value<'static>; 3] {
    [w.into(), d.into(), number.into()]
}

/// Q3: the open orders of customers in some states, and what they will bring in.
pub fn q3(s: &Snapshot<'_>) -> Result<Answer> {
    let customers: HashMap<WarehouseKey, ()> = s.hashed(&s.tpcc.customer, |row| {
        Ok(if nation(row)? == b'A' { Some((place(row)?, ())) } else { None })
    })?;
    let mut answer = Vec::new();
    s.each(&s.tpcc.new_order, |row| {
        let (w, d): (u16, u8) = (row.get(new_order::NO_W_ID)?, row.get(new_order::NO_D_ID)?);
        let number: u32 = row.get(new_order::NO_O_ID)?;
        let key = key((w, d, number));
        let Some(order) = s.txn.get(&s.tpcc.order, &key)? else { return Ok(()) };
        let order = Order::read(&order)?;
        if order.entered <= EARLIEST || !customers.contains_key(&order.customer()) {
            return Ok(());
        }
        let mut revenue = None;
        for line in s.txn.scan(&s.tpcc.order_line, Range::prefix(&key))? {
            *revenue.get_or_insert(0) += Line::read(&line?)?.amount;
        }
        answer.extend(revenue.map(|revenue: i64| row![number, w, d, revenue, order.entered.0]));
        Ok(())
    })?;
    Ok(ordered(answer, &[By::Down(3), By::Up(4)]))
}

/// Q5: what customers of each nation of a region have bought of suppliers of
/// their own nation.
pub fn q5(s: &Snapshot<'_>) -> Result<Answer> {
    let nations = s.nations_of(|region| region == "Europe")?;
    let stock = s.stock_of(&s.suppliers_of(&nations)?)?;
    let customers: HashMap<WarehouseKey, u8> = s.hashed(&s.tpcc.customer, |row| {
        let nation = nation(row)?;
        nations.contains_key(&nation).then(|| Ok((place(row)?, nation))).transpose()
    })?;
    let mut revenue: HashMap<u8, i64> = HashMap::default();
    s.orders(|order, lines| {
        let Some(nation) = customers.get(&order.customer()) else { return Ok(()) };
        if order.entered >= EARLIEST {
            for line in lines.iter().filter(|line| stock.get(&(line.order.0, line.item)) == Some(nation)) {
                *revenue.entry(*nation).or_default() += line.amount;
            }
        }
        Ok(())
    })?;
    let answer = revenue.into_iter().map(|(nation, revenue)| row![&*nations[&nation], revenue]).collect();
    Ok(ordered(answer, &[By::Down(1)]))
}

/// Q13: how many customer numbers have how many orders that certain carriers
/// delivered. As in the original, a number stands for the customers of all
/// districts that have it.
pub fn q13(s: &Snapshot<'_>) -> Result<Answer> {
    let mut delivered: HashMap<WarehouseKey, u32> = HashMap::default();
    s.each(&s.tpcc.order, |row| {
        let order = Order::read(row)?;
        if order.carrier.is_some_and(|carrier| carrier > 8) {
            *delivered.entry(order.customer()).or_default() += 1;
        }
        Ok(())
    })?;
    let mut counts: HashMap<u32, u32> = HashMap::default();
    s.each(&s.tpcc.customer, |row| {
        let customer = place(row)?;
        *counts.entry(customer.2).or_default() += delivered.get(&customer).copied().unwrap_or(0);
        Ok(())
    })?;
    let mut spread: HashMap<u32, u32> = HashMap::default();
    for count in counts.into_values() {
        *spread.entry(count).or_default() += 1;
    }
    let answer = spread.into_iter().map(|(count, customers)| row![count, customers]).collect();
    Ok(ordered(answer, &[By::Down(1), By::Down(0)]))
}

/// Q22: customers with more money than others who have never ordered
/// anything, by the first character of their state.
pub fn q22(s: &Snapshot<'_>) -> Result<Answer> {
    let wanted = |row: &Row<'_>| {
        let phone: &str = row.get(customer::C_PHONE)?;
        Result::Ok(matches!(phone.as_bytes().first(), Some(b'1'..=b'7')))
    };
    let (mut sum, mut count) = (0i128, 0i128);
    s.each(&s.tpcc.customer, |row| {
        let balance: i64 = row.get(customer::C_BALANCE)?;
        if balance > 0 && wanted(row)? {
            sum += i128::from(balance);
            count += 1;
        }
        Ok(())
    })?;
    let mut groups: BTreeMap<u8, (u32, i64)> = BTreeMap::new();
    s.each(&s.tpcc.customer, |row| {
        let balance: i64 = row.get(customer::C_BALANCE)?;
        // Without anybody there is no mean, and nobody has more.
        if count == 0 || i128::from(balance) * count <= sum || !wanted(row)? {
            return Ok(());
        }
        let key = key(place(row)?);
        let first = s.txn.scan_index(&s.tpcc.order_by_customer, Range::prefix(&key).limit(1))?.next();
        if first.transpose()?.is_none() {
            let (customers, balances) = groups.entry(nation(row)?).or_default();
            *customers += 1;
            *balances += balance;
        }
        Ok(())
    })?;
    let groups = groups.into_iter();
    Ok(groups.map(|(state, (n, sum))| row![&*char::from(state).to_string(), n, sum]).collect())
}
