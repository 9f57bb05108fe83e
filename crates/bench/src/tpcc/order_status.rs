//! Order-Status, clause 2.6: a customer asks for its last order.

use std::hint::black_box;

use pantile::{Micros, Range, Value};

use super::payment::show;
use super::random::Constants;
use super::scale::{DISTRICTS, Scale};
use super::schema::{order, order_line};
use super::session::{Session, Who, expect};
use crate::error::Result;
use crate::runner::Outcome;
use pantile_testkit::Random;

/// Who asks.
#[derive(Clone)]
pub(super) struct Input {
    pub(super) w: u16,
    d: u8,
    who: Who,
}

impl Input {
    pub fn draw(random: &mut Random, constants: &Constants, scale: Scale, w: u16) -> Self {
        let d = random.between(1, DISTRICTS.into()) as u8;
        Self { w, d, who: Who::draw(random, constants, scale) }
    }
}

pub(super) fn attempt(session: &mut Session, input: &Input) -> Result<Outcome> {
    let txn = session.reader()?;
    let tables = &session.tables;
    let c = input.who.find(&txn, &tables.customer_by_name, input.w, input.d, &mut session.found)?;
    let key: [Value<'_>; 3] = [input.w.into(), input.d.into(), c.into()];
    show(&expect(txn.get(&tables.customer, &key)?, "the customer", &key)?)?;
    let last = txn.scan_index(&tables.order_by_customer, Range::prefix(&key).reverse().limit(1))?.next();
    let order = expect(last.transpose()?, "the last order of the customer", &key)?;
    black_box((order.get::<Micros>(order::O_ENTRY_D)?, order.get::<Option<u8>>(order::O_CARRIER_ID)?));
    let prefix = [key[0], key[1], order.get(order::O_ID)?];
    let mut lines = 0;
    for line in txn.scan(&tables.order_line, Range::prefix(&prefix))? {
        let line = line?;
        black_box((line.get::<u32>(order_line::OL_I_ID)?, line.get::<u16>(order_line::OL_SUPPLY_W_ID)?));
        black_box((line.get::<u8>(order_line::OL_QUANTITY)?, line.get::<i64>(order_line::OL_AMOUNT)?));
        black_box(line.get::<Option<Micros>>(order_line::OL_DELIVERY_D)?);
        lines += 1;
    }
    black_box(lines);
    txn.commit()?;
    Ok(Outcome::Committed)
}
