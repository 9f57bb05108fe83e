//! Queries over ORDER-LINE.

use std::collections::BTreeMap;

use foldhash::HashMap;
use pantile::Result;

use super::dates::{EARLIEST, LATEST, YEAR_1999};
use crate::ch::answer::{Answer, row};
use crate::ch::schema::supplier;
use crate::ch::snapshot::{Snapshot, supplier_of};
use crate::tpcc::schema::stock;

/// Q1: quantities and amounts of delivered lines by their number in the order.
pub fn q1(s: &Snapshot<'_>) -> Result<Answer> {
    let mut groups: BTreeMap<u8, (i64, i64, i64)> = BTreeMap::new();
    s.lines(|line| {
        if line.delivered.is_some_and(|delivered| delivered > EARLIEST) {
            let (quantity, amount, count) = groups.entry(line.number).or_default();
            *quantity += i64::from(line.quantity);
            *amount += line.amount;
            *count += 1;
        }
    })?;
    let mean = |sum: i64, count: i64| sum as f64 / count as f64;
    Ok(groups
        .into_iter()
        .map(|(number, (quantity, amount, count))| {
            row![number, quantity, amount, mean(quantity, count), mean(amount, count), count]
        })
        .collect())
}

/// Q6: the amount of lines that were delivered in some years in some quantities.
pub fn q6(s: &Snapshot<'_>) -> Result<Answer> {
    let mut revenue = 0i64;
    s.lines(|line| {
        let in_time = line.delivered.is_some_and(|delivered| (YEAR_1999..LATEST).contains(&delivered));
        if in_time && (1..=100_000).contains(&u32::from(line.quantity)) {
            revenue += line.amount;
        }
    })?;
    Ok(vec![row![revenue]])
}

/// Q15: the suppliers of what was delivered for the most money.
pub fn q15(s: &Snapshot<'_>) -> Result<Answer> {
    let mut sold: HashMap<(u16, u32), i64> = HashMap::default();
    s.lines(|line| {
        if line.delivered.is_some_and(|delivered| delivered >= EARLIEST) {
            *sold.entry((line.supply, line.item)).or_default() += line.amount;
        }
    })?;
    let mut revenue: BTreeMap<u16, i64> = BTreeMap::new();
    s.each(&s.tpcc.stock, |row| {
        let (w, item) = (row.get(stock::S_W_ID)?, row.get(stock::S_I_ID)?);
        if let Some(amount) = sold.get(&(w, item)) {
            *revenue.entry(supplier_of(w, item)).or_default() += amount;
        }
        Ok(())
    })?;
    let most = revenue.values().max().copied();
    let mut answer = Vec::new();
    for (key, total) in revenue {
        if Some(total) == most
            && let Some(row) = s.txn.get(&s.ch.supplier, &[key.into()])?
        {
            let name: &str = row.get(supplier::SU_NAME)?;
            let (address, phone): (&str, &str) =
                (row.get(supplier::SU_ADDRESS)?, row.get(supplier::SU_PHONE)?);
            answer.push(row![key, name, address, phone, total]);
        }
    }
    Ok(answer)
}
