//! Queries over STOCK and its suppliers.

use foldhash::HashMap;
use pantile::Result;

use crate::ch::answer::{Answer, By, ordered, row};
use crate::ch::schema::supplier;
use crate::ch::snapshot::{Snapshot, supplier_of};
use crate::tpcc::schema::{item, stock};

/// Q2: the suppliers of a region that have the least stock of some items.
pub fn q2(s: &Snapshot<'_>) -> Result<Answer> {
    let nations = s.nations_of(|region| region.starts_with("Europ"))?;
    let suppliers = s.suppliers_of(&nations)?;
    let items: HashMap<u32, String> = s.hashed(&s.tpcc.item, |row| {
        let wanted = row.get::<&str>(item::I_DATA)?.ends_with('b');
        wanted.then(|| Ok((row.get(item::I_ID)?, row.get::<&str>(item::I_NAME)?.to_owned()))).transpose()
    })?;
    let mut least: HashMap<u32, i64> = HashMap::default();
    let mut candidates: Vec<(u32, u16, i64)> = Vec::new();
    s.each(&s.tpcc.stock, |row| {
        let (w, item) = (row.get(stock::S_W_ID)?, row.get(stock::S_I_ID)?);
        let supplier = supplier_of(w, item);
        if items.contains_key(&item) && suppliers.contains_key(&supplier) {
            let quantity = row.get(stock::S_QUANTITY)?;
            let least = least.entry(item).or_insert(quantity);
            *least = quantity.min(*least);
            candidates.push((item, supplier, quantity));
        }
        Ok(())
    })?;
    let mut answer = Vec::new();
    for (item, key, _) in candidates.into_iter().filter(|(item, _, quantity)| least[item] == *quantity) {
        let Some(row) = s.txn.get(&s.ch.supplier, &[key.into()])? else { continue };
        let name: &str = row.get(supplier::SU_NAME)?;
        let (address, phone): (&str, &str) = (row.get(supplier::SU_ADDRESS)?, row.get(supplier::SU_PHONE)?);
        let comment: &str = row.get(supplier::SU_COMMENT)?;
        let nation = &*nations[&suppliers[&key]];
        answer.push(row![key, name, nation, item, &*items[&item], address, phone, comment]);
    }
    Ok(ordered(answer, &[By::Up(2), By::Up(1), By::Up(3)]))
}

/// Q11: the items of a nation's suppliers that are ordered often: in more
/// than 5 of 1,000 orders of any of these.
pub fn q11(s: &Snapshot<'_>) -> Result<Answer> {
    let suppliers = s.suppliers_of(&s.nations(|name| name == "Germany")?)?;
    let mut orders: HashMap<u32, i64> = HashMap::default();
    let mut all = 0;
    s.each(&s.tpcc.stock, |row| {
        let (w, item) = (row.get(stock::S_W_ID)?, row.get(stock::S_I_ID)?);
        if suppliers.contains_key(&supplier_of(w, item)) {
            let count: i64 = row.get(stock::S_ORDER_CNT)?;
            *orders.entry(item).or_default() += count;
            all += count;
        }
        Ok(())
    })?;
    let often = orders.into_iter().filter(|(_, count)| count * 1000 > all * 5);
    Ok(ordered(often.map(|(item, count)| row![item, count]).collect(), &[By::Down(1)]))
}
