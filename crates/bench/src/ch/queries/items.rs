//! Queries over ITEM and what refers to it.

use foldhash::HashMap;
use pantile::Result;

use super::dates::{EARLIEST, LATEST};
use crate::ch::answer::{Answer, By, ordered, row};
use crate::ch::schema::supplier;
use crate::ch::snapshot::{Snapshot, supplier_of};
use crate::tpcc::schema::{item, stock};

/// Q14: the share of the revenue that is from promoted items, in percent.
pub fn q14(s: &Snapshot<'_>) -> Result<Answer> {
    let promoted: HashMap<u32, bool> = s.hashed(&s.tpcc.item, |row| {
        let data: &str = row.get(item::I_DATA)?;
        Ok(Some((row.get(item::I_ID)?, data.starts_with("PR"))))
    })?;
    let (mut of_promoted, mut all) = (0i64, 0i64);
    s.lines(|line| {
        let in_time = line.delivered.is_some_and(|delivered| (EARLIEST..LATEST).contains(&delivered));
        if let Some(&promoted) = promoted.get(&line.item).filter(|_| in_time) {
            of_promoted += if promoted { line.amount } else { 0 };
            all += line.amount;
        }
    })?;
    // The 1 that keeps the divisor from being zero is a hundred hundredths.
    Ok(vec![row![100.0 * of_promoted as f64 / (100 + all) as f64]])
}

/// Q16: how many suppliers, those with complaints left out, there are for
/// items of the same name, brand and price.
pub fn q16(s: &Snapshot<'_>) -> Result<Answer> {
    let bad: HashMap<u16, ()> = s.hashed(&s.ch.supplier, |row| {
        let comment: &str = row.get(supplier::SU_COMMENT)?;
        Ok(comment.contains("bad").then_some((row.get(supplier::SU_SUPPKEY)?, ())))
    })?;
    let mut groups: HashMap<(String, String, i64), usize> = HashMap::default();
    let group_of: HashMap<u32, usize> = s.hashed(&s.tpcc.item, |row| {
        let data: &str = row.get(item::I_DATA)?;
        if data.starts_with("zz") {
            return Ok(None);
        }
        let name: &str = row.get(item::I_NAME)?;
        let brand = data.chars().take(3).collect();
        let next = groups.len();
        let group = *groups.entry((name.to_owned(), brand, row.get(item::I_PRICE)?)).or_insert(next);
        Ok(Some((row.get(item::I_ID)?, group)))
    })?;
    let mut suppliers: Vec<(usize, u16)> = Vec::new();
    s.each(&s.tpcc.stock, |row| {
        let (w, item) = (row.get(stock::S_W_ID)?, row.get(stock::S_I_ID)?);
        let supplier = supplier_of(w, item);
        if let Some(&group) = group_of.get(&item)
            && !bad.contains_key(&supplier)
        {
            suppliers.push((group, supplier));
        }
        Ok(())
    })?;
    suppliers.sort_unstable();
    suppliers.dedup();
    let mut counts = vec![0u32; groups.len()];
    suppliers.iter().for_each(|&(group, _)| counts[group] += 1);
    let answer = groups
        .into_iter()
        .filter(|&(_, group)| counts[group] > 0)
        .map(|((name, brand, price), group)| row![&*name, &*brand, price, counts[group]])
        .collect();
    Ok(ordered(answer, &[By::Down(3)]))
}

/// Q19: the amount of lines of some items in some warehouses in some quantities.
pub fn q19(s: &Snapshot<'_>) -> Result<Answer> {
    let warehouses: HashMap<u32, [u16; 3]> = s.hashed(&s.tpcc.item, |row| {
        // 1.00 to 400,000.00
        if !(100..=40_000_000).contains(&row.get::<i64>(item::I_PRICE)?) {
            return Ok(None);
        }
        let warehouses = match row.get::<&str>(item::I_DATA)?.as_bytes().last() {
            Some(b'a') => [1, 2, 3],
            Some(b'b') => [1, 2, 4],
            Some(b'c') => [1, 5, 3],
            _ => return Ok(None),
        };
        Ok(Some((row.get(item::I_ID)?, warehouses)))
    })?;
    let mut revenue = 0i64;
    s.lines(|line| {
        let wanted = warehouses.get(&line.item).is_some_and(|of| of.contains(&line.order.0));
        if wanted && (1..=10).contains(&line.quantity) {
            revenue += line.amount;
        }
    })?;
    Ok(vec![row![revenue]])
}
