//! Queries over ORDER and ORDER-LINE together.

use std::collections::BTreeMap;

use foldhash::HashMap;
use pantile::Result;

use super::dates::{EARLIEST, LATEST, year};
use crate::ch::answer::{Answer, By, ordered, row};
use crate::ch::snapshot::Snapshot;
use crate::tpcc::schema::{customer, item};

/// What an order must have brought in to be large, in hundredths.
const LARGE: i64 = 20_000;

/// Q4: how many orders of some years, of each number of lines, have been
/// delivered at least in part.
pub fn q4(s: &Snapshot<'_>) -> Result<Answer> {
    let mut counts: BTreeMap<u8, u32> = BTreeMap::new();
    s.orders(|order, lines| {
        let in_time = (EARLIEST..LATEST).contains(&order.entered);
        let is_late = |delivered| delivered >= order.entered;
        if in_time && lines.iter().any(|line| line.delivered.is_some_and(is_late)) {
            *counts.entry(order.lines).or_default() += 1;
        }
        Ok(())
    })?;
    Ok(counts.into_iter().map(|(lines, count)| row![lines, count]).collect())
}

/// Q9: what suppliers of each nation have sold of some items, by year.
pub fn q9(s: &Snapshot<'_>) -> Result<Answer> {
    let items: HashMap<u32, ()> = s.hashed(&s.tpcc.item, |row| {
        let wanted = row.get::<&str>(item::I_DATA)?.ends_with("BB");
        Ok(wanted.then_some((row.get(item::I_ID)?, ())))
    })?;
    let nations = s.nations(|_| true)?;
    let stock = s.stock_of(&s.suppliers_of(&nations)?)?;
    let mut profits: HashMap<(u8, i64), i64> = HashMap::default();
    s.orders(|order, lines| {
        for line in lines.iter().filter(|line| items.contains_key(&line.item)) {
            if let Some(&nation) = stock.get(&(line.supply, line.item)) {
                *profits.entry((nation, year(order.entered))).or_default() += line.amount;
            }
        }
        Ok(())
    })?;
    let profits = profits.into_iter();
    let answer = profits.map(|((nation, year), profit)| row![&*nations[&nation], year, profit]).collect();
    Ok(ordered(answer, &[By::Up(0), By::Down(1)]))
}

/// Q12: delivered lines of orders of each number of lines, by the carrier that delivered.
pub fn q12(s: &Snapshot<'_>) -> Result<Answer> {
    let mut counts: BTreeMap<u8, (u32, u32)> = BTreeMap::new();
    s.orders(|order, lines| {
        let in_time = |line| (order.entered..LATEST).contains(line);
        for _ in lines.iter().filter(|line| line.delivered.as_ref().is_some_and(in_time)) {
            let (high, low) = counts.entry(order.lines).or_default();
            *high += u32::from(matches!(order.carrier, Some(1 | 2)));
            *low += u32::from(order.carrier.is_some_and(|carrier| carrier > 2));
        }
        Ok(())
    })?;
    Ok(counts.into_iter().map(|(lines, (high, low))| row![lines, high, low]).collect())
}

/// Q18: large orders and who gave them.
pub fn q18(s: &Snapshot<'_>) -> Result<Answer> {
    let mut answer = Vec::new();
    s.orders(|order, lines| {
        let amount: i64 = lines.iter().map(|line| line.amount).sum();
        if amount <= LARGE {
            return Ok(());
        }
        let (w, d, c) = order.customer();
        if let Some(row) = s.txn.get(&s.tpcc.customer, &[w.into(), d.into(), c.into()])? {
            let last: &str = row.get(customer::C_LAST)?;
            answer.push(row![last, c, order.key.2, order.entered.0, order.lines, amount]);
        }
        Ok(())
    })?;
    Ok(ordered(answer, &[By::Down(5), By::Up(3)]))
}
