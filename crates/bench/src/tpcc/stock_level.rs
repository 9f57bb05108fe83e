//! Stock-Level, clause 2.8: counts recently sold items that run low.

use std::hint::black_box;
use std::ops::Bound;

use pantile::{Range, Value};

use super::scale::DISTRICTS;
use super::schema::{district, order_line, stock};
use super::session::{Session, expect};
use crate::error::{Error, Result};
use crate::runner::Outcome;
use pantile_testkit::Random;

/// Orders looked at.
const RECENT: u32 = 20;

/// Where, and how low.
#[derive(Clone)]
pub(super) struct Input {
    pub(super) w: u16,
    d: u8,
    threshold: i64,
}

impl Input {
    pub fn draw(random: &mut Random, w: u16) -> Self {
        Self { w, d: random.between(1, DISTRICTS.into()) as u8, threshold: random.between(10, 20).into() }
    }
}

pub(super) fn attempt(session: &mut Session, input: &Input) -> Result<Outcome> {
    let txn = session.reader()?;
    let tables = &session.tables;
    let (w, d): (Value<'_>, Value<'_>) = (input.w.into(), input.d.into());
    let next: u32 =
        expect(txn.get(&tables.district, &[w, d])?, "the district", &[w, d])?.get(district::D_NEXT_O_ID)?;

    let (from, to) = ([w, d, next.saturating_sub(RECENT).into()], [w, d, next.into()]);
    let recent = Range::all().from(Bound::Included(&from)).to(Bound::Excluded(&to));
    let items = &mut session.found;
    items.clear();
    for line in txn.scan(&tables.order_line, recent)? {
        items.push(line?.get(order_line::OL_I_ID)?);
    }
    items.sort_unstable();
    items.dedup();

    let mut low = 0;
    let mut count = |row, key: &[Value<'_>]| {
        let quantity: i64 = expect(row, "the stock", key)?.get(stock::S_QUANTITY)?;
        low += u32::from(quantity < input.threshold);
        Ok::<(), Error>(())
    };
    if session.together {
        let keys: Vec<_> = items.iter().map(|item| [w, (*item).into()]).collect();
        let rows = txn.get_many(&tables.stock, &keys)?;
        rows.into_iter().zip(&keys).try_for_each(|(row, key)| count(row, key))?;
    } else {
        for &item in items.iter() {
            let key = [w, item.into()];
            count(txn.get(&tables.stock, &key)?, &key)?;
        }
    }
    black_box(low);
    txn.commit()?;
    Ok(Outcome::Committed)
}
