//! Delivery, clause 2.7: delivers the oldest open order of every district of
//! a warehouse, all in one transaction.

use pantile::{Isolation, Range, RowEdit, Transaction, Value};
use smallvec::SmallVec;

use super::load::now;
use super::scale::DISTRICTS;
use super::schema::{customer, new_order, order, order_line};
use super::session::{Session, confirmed, expect_changed, missing};
use crate::error::{Error, Result};
use crate::runner::Outcome;
use pantile_testkit::Random;

/// How often Delivery looks for an open order that nobody else delivers at the same moment.
const MOST_LOOKS: u32 = 10_000;

/// Who delivers, for which warehouse.
#[derive(Clone)]
pub(super) struct Input {
    pub(super) w: u16,
    carrier: u8,
}

impl Input {
    pub fn draw(random: &mut Random, w: u16) -> Self {
        Self { w, carrier: random.between(1, 10) as u8 }
    }
}

pub(super) fn attempt(session: &mut Session, input: &Input) -> Result<Outcome> {
    let mut txn = session.writer()?;
    let before = txn.savepoint();
    let date = now();
    let mut districts = 1..=DISTRICTS;
    match districts.try_for_each(|d| deliver(&mut txn, session, input, d.into(), date)) {
        Ok(()) => txn.commit()?,
        Err(error @ Error::Missing { .. }) => return Err(confirmed(txn, before, error)),
        Err(error) => return Err(error),
    };
    Ok(Outcome::Committed)
}

/// Takes the oldest open order of a district off the list, if there is one.
fn take_oldest(txn: &mut Transaction, session: &Session, w: Value<'_>, d: Value<'_>) -> Result<Option<u32>> {
    let open = &session.tables.new_order;
    let mut looks = 0;
    loop {
        let oldest = txn.scan(open, Range::prefix(&[w, d]).limit(1))?.next();
        let Some(oldest) = oldest.transpose()? else { return Ok(None) };
        let number: u32 = oldest.get(new_order::NO_O_ID)?;
        let key = [w, d, number.into()];
        if txn.delete(open, &key)? {
            return Ok(Some(number));
        }
        looks += 1;
        // At read committed, another client may have delivered it since the scan.
        if txn.isolation() != Isolation::ReadCommitted || looks == MOST_LOOKS {
            return Err(missing("the open order", &key));
        }
    }
}

/// Delivers the oldest open order of a district, if there is one.
fn deliver(
    txn: &mut Transaction,
    session: &Session,
    input: &Input,
    d: Value<'_>,
    date: Value<'_>,
) -> Result<()> {
    let tables = &session.tables;
    let w = input.w.into();
    let Some(oldest) = take_oldest(txn, session, w, d)? else { return Ok(()) };
    let key: [Value<'_>; 3] = [w, d, oldest.into()];

    let (mut c, mut lines) = (0u32, 0u8);
    let changed = txn.modify(&tables.order, &key, |row| {
        c = row.get(order::O_C_ID)?;
        lines = row.get(order::O_OL_CNT)?;
        row.set(order::O_CARRIER_ID, input.carrier.into())?;
        Ok(true)
    })?;
    expect_changed(changed, "the order", &key)?;

    let mut total = 0i64;
    let mut deliver = |row: &mut RowEdit<'_>| {
        total += row.get::<i64>(order_line::OL_AMOUNT)?;
        row.set(order_line::OL_DELIVERY_D, date)?;
        Ok(true)
    };
    let of_line = |number: u8| [key[0], key[1], key[2], number.into()];
    if session.together {
        let keys: SmallVec<[_; 15]> = (1..=lines).map(of_line).collect();
        let changed = txn.modify_many(&tables.order_line, &keys, |_, row| deliver(row))?;
        expect_changed(changed == u64::from(lines), "a line of the order", &key)?;
    } else {
        for number in 1..=lines {
            let changed = txn.modify(&tables.order_line, &of_line(number), &mut deliver)?;
            expect_changed(changed, "the order line", &of_line(number))?;
        }
    }

    let key = [w, d, c.into()];
    let changed = txn.modify(&tables.customer, &key, |row| {
        let balance: i64 = row.get(customer::C_BALANCE)?;
        row.set(customer::C_BALANCE, (balance + total).into())?;
        let deliveries: u32 = row.get(customer::C_DELIVERY_CNT)?;
        row.set(customer::C_DELIVERY_CNT, (deliveries + 1).into())?;
        Ok(true)
    })?;
    expect_changed(changed, "the customer", &key)
}
