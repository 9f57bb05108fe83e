//! New-Order, clause 2.4: enters an order of 5 to 15 lines.

use std::hint::black_box;

use pantile::{Row, RowEdit, Transaction, Value};
use smallvec::SmallVec;

use super::load::now;
use super::random::{Constants, Text, non_uniform};
use super::scale::{DISTRICTS, Scale};
use super::schema::{customer, district, item, stock, warehouse};
use super::session::{Session, expect, expect_changed};
use crate::error::Result;
use crate::runner::Outcome;
use pantile_testkit::Random;

/// Most lines of an order.
const MAX_LINES: usize = 15;

#[derive(Clone, Copy, Default)]
struct Line {
    item: u32,
    supply: u16,
    quantity: u8,
}

/// What is ordered.
#[derive(Clone)]
pub(super) struct Input {
    w: u16,
    d: u8,
    c: u32,
    lines: [Line; MAX_LINES],
    count: usize,
}

impl Input {
    /// 1 line in 100 comes from another warehouse, if there is one; 1 order
    /// in 100 ends with an item that does not exist.
    pub fn draw(random: &mut Random, constants: &Constants, scale: Scale, w: u16) -> Self {
        let count = random.between(5, MAX_LINES as u32) as usize;
        let mut lines = [Line::default(); MAX_LINES];
        for line in &mut lines[..count] {
            let remote = scale.warehouses > 1 && random.percent(1);
            *line = Line {
                item: non_uniform(random, 8191, constants.item, 1, scale.items),
                supply: if remote { another(random, w, scale.warehouses) } else { w },
                quantity: random.between(1, 10) as u8,
            };
        }
        if random.percent(1) {
            lines[count - 1].item = scale.items + 1;
        }
        Self {
            w,
            d: random.between(1, DISTRICTS.into()) as u8,
            c: non_uniform(random, 1023, constants.customer, 1, scale.customers),
            lines,
            count,
        }
    }

    /// That of the order, and of each line.
    pub fn warehouses(&self) -> impl Iterator<Item = u16> {
        [self.w].into_iter().chain(self.lines[..self.count].iter().map(|line| line.supply))
    }

    #[cfg(test)]
    pub fn rolls_back(&self, scale: Scale) -> bool {
        self.lines[self.count - 1].item > scale.items
    }

    #[cfg(test)]
    pub fn remote_lines(&self) -> (usize, usize) {
        (self.lines[..self.count].iter().filter(|line| line.supply != self.w).count(), self.count)
    }
}

/// A warehouse other than `w`.
pub(super) fn another(random: &mut Random, w: u16, warehouses: u16) -> u16 {
    let other = random.between(1, u32::from(warehouses) - 1) as u16;
    if other < w { other } else { other + 1 }
}

pub(super) fn attempt(session: &mut Session, input: &Input) -> Result<Outcome> {
    let mut txn = session.writer()?;
    let tables = &session.tables;
    let (w, d, c): (Value<'_>, Value<'_>, Value<'_>) = (input.w.into(), input.d.into(), input.c.into());

    // The rows that most transactions want come first: the shorter the time
    // since a transaction began, the fewer later ones have been there before.
    let warehouse = expect(txn.get(&tables.warehouse, &[w])?, "the warehouse", &[w])?;
    let mut tax: i64 = warehouse.get(warehouse::W_TAX)?;
    let mut number = 0u32;
    let changed = txn.modify(&tables.district, &[w, d], |row| {
        number = row.get(district::D_NEXT_O_ID)?;
        tax += row.get::<i64>(district::D_TAX)?;
        row.set(district::D_NEXT_O_ID, (number + 1).into())?;
        Ok(true)
    })?;
    expect_changed(changed, "the district", &[w, d])?;
    let customer = expect(txn.get(&tables.customer, &[w, d, c])?, "the customer", &[w, d, c])?;
    let discount: i64 = customer.get(customer::C_DISCOUNT)?;
    black_box((customer.get::<&str>(customer::C_LAST)?, customer.get::<&str>(customer::C_CREDIT)?));

    let lines = &input.lines[..input.count];
    let all_local = lines.iter().all(|line| line.supply == input.w);
    let (o, count) = (number.into(), (input.count as u8).into());
    txn.insert(&tables.order, &[w, d, o, c, now(), Value::Null, count, u8::from(all_local).into()])?;
    txn.insert(&tables.new_order, &[w, d, o])?;

    let Some(total) = order_lines(&mut txn, session, input, number)? else {
        txn.rollback();
        return Ok(Outcome::RolledBack);
    };
    black_box(total * (10_000 - discount) * (10_000 + tax) / 100_000_000);
    txn.commit()?;
    Ok(Outcome::Committed)
}

/// Enters the lines; gives the sum of their amounts, or `None` if an item does not exist.
fn order_lines(txn: &mut Transaction, session: &Session, input: &Input, number: u32) -> Result<Option<i64>> {
    let (tables, lines) = (&session.tables, &input.lines[..input.count]);
    let mut total = 0;
    let mut offers = [Offer::default(); MAX_LINES];
    let mut infos = [Text::EMPTY; MAX_LINES];
    if session.together {
        let items: SmallVec<[_; MAX_LINES]> = lines.iter().map(|line| [line.item.into()]).collect();
        for ((row, offer), line) in txn.get_many(&tables.item, &items)?.iter().zip(&mut offers).zip(lines) {
            let Some(row) = row else { return Ok(None) };
            *offer = Offer::of(row, line)?;
        }
        let stocks: SmallVec<[_; MAX_LINES]> =
            lines.iter().map(|line| [line.supply.into(), line.item.into()]).collect();
        let changed = txn.modify_many(&tables.stock, &stocks, |n, row| {
            infos[n] = take(row, input, &lines[n], &offers[n])?;
            Ok(true)
        })?;
        expect_changed(changed == lines.len() as u64, "the stock of an order", &[number.into()])?;
        let rows = (0..lines.len()).map(|n| line_row(input, number, n, &offers[n], &infos[n]));
        txn.insert_many(&tables.order_line, rows)?;
        return Ok(Some(offers.iter().map(|offer| offer.amount).sum()));
    }
    for (n, line) in lines.iter().enumerate() {
        let Some(row) = txn.get(&tables.item, &[line.item.into()])? else { return Ok(None) };
        let offer = Offer::of(&row, line)?;
        total += offer.amount;
        let key = [line.supply.into(), line.item.into()];
        let mut info = Text::EMPTY;
        let changed = txn.modify(&tables.stock, &key, |row| {
            info = take(row, input, line, &offer)?;
            Ok(true)
        })?;
        expect_changed(changed, "the stock", &key)?;
        txn.insert(&tables.order_line, &line_row(input, number, n, &offer, &info))?;
    }
    Ok(Some(total))
}

/// What an item costs, in the quantity of a line.
#[derive(Clone, Copy, Default)]
struct Offer {
    amount: i64,
    is_original: bool,
}

impl Offer {
    fn of(item: &Row<'_>, line: &Line) -> Result<Self> {
        black_box(item.get::<&str>(item::I_NAME)?);
        Ok(Self {
            amount: i64::from(line.quantity) * item.get::<i64>(item::I_PRICE)?,
            is_original: item.get::<&str>(item::I_DATA)?.contains("ORIGINAL"),
        })
    }
}

fn line_row<'v>(input: &Input, number: u32, n: usize, offer: &Offer, info: &'v Text<24>) -> [Value<'v>; 10] {
    let line = &input.lines[n];
    [
        input.w.into(),
        input.d.into(),
        number.into(),
        (n as u8 + 1).into(),
        line.item.into(),
        line.supply.into(),
        Value::Null,
        line.quantity.into(),
        offer.amount.into(),
        info.as_str().into(),
    ]
}

/// Takes the quantity of a line from stock; gives the text that goes into the line.
fn take(row: &mut RowEdit<'_>, input: &Input, line: &Line, offer: &Offer) -> pantile::Result<Text<24>> {
    let wanted = i32::from(line.quantity);
    let mut info = Text::EMPTY;
    info.push(row.get::<&str>(stock::S_DIST_01 + usize::from(input.d) - 1)?);
    let brand = offer.is_original && row.get::<&str>(stock::S_DATA)?.contains("ORIGINAL");
    black_box(if brand { 'B' } else { 'G' });
    let left = row.get::<i32>(stock::S_QUANTITY)? - wanted;
    row.set(stock::S_QUANTITY, (if left >= 10 { left } else { left + 91 }).into())?;
    let ytd: u32 = row.get(stock::S_YTD)?;
    row.set(stock::S_YTD, (ytd + u32::from(line.quantity)).into())?;
    let orders: u32 = row.get(stock::S_ORDER_CNT)?;
    row.set(stock::S_ORDER_CNT, (orders + 1).into())?;
    if line.supply != input.w {
        let remote: u32 = row.get(stock::S_REMOTE_CNT)?;
        row.set(stock::S_REMOTE_CNT, (remote + 1).into())?;
    }
    Ok(info)
}
