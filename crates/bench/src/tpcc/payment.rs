//! Payment, clause 2.5: a customer pays.

use std::hint::black_box;

use pantile::{Row, Value};

use super::load::now;
use super::new_order::another;
use super::random::{Constants, Text};
use super::scale::{DISTRICTS, Scale};
use super::schema::{customer, district, warehouse};
use super::session::{Session, Who, expect_changed};
use crate::error::Result;
use crate::runner::Outcome;
use pantile_testkit::Random;

/// The input of a payment.
#[derive(Clone)]
pub(super) struct Input {
    w: u16,
    d: u8,
    customer_w: u16,
    customer_d: u8,
    who: Who,
    amount: i64,
}

impl Input {
    /// 15 payments in 100 come from a customer of another warehouse, if there is one.
    pub fn draw(random: &mut Random, constants: &Constants, scale: Scale, w: u16) -> Self {
        let mut district = || random.between(1, DISTRICTS.into()) as u8;
        let (d, other) = (district(), district());
        let remote = scale.warehouses > 1 && random.percent(15);
        Self {
            w,
            d,
            customer_w: if remote { another(random, w, scale.warehouses) } else { w },
            customer_d: if remote { other } else { d },
            who: Who::draw(random, constants, scale),
            // 1.00 to 5,000.00
            amount: random.between(100, 500_000).into(),
        }
    }

    /// That of the warehouse, of the district and of the customer.
    pub fn warehouses(&self) -> [u16; 3] {
        [self.w, self.w, self.customer_w]
    }

    #[cfg(test)]
    pub fn is_remote(&self) -> bool {
        self.customer_w != self.w
    }

    #[cfg(test)]
    pub fn is_by_name(&self) -> bool {
        matches!(self.who, Who::Name(_))
    }
}

pub(super) fn attempt(session: &mut Session, input: &Input) -> Result<Outcome> {
    let mut txn = session.writer()?;
    let tables = &session.tables;
    let (w, d): (Value<'_>, Value<'_>) = (input.w.into(), input.d.into());

    let mut data = Text::<24>::EMPTY;
    let changed = txn.modify(&tables.warehouse, &[w], |row| {
        data.push(row.get(warehouse::W_NAME)?);
        black_box((row.get::<&str>(warehouse::W_STREET_1)?, row.get::<&str>(warehouse::W_ZIP)?));
        let ytd: i64 = row.get(warehouse::W_YTD)?;
        row.set(warehouse::W_YTD, (ytd + input.amount).into())?;
        Ok(true)
    })?;
    expect_changed(changed, "the warehouse", &[w])?;
    data.push("    ");
    let changed = txn.modify(&tables.district, &[w, d], |row| {
        data.push(row.get(district::D_NAME)?);
        black_box((row.get::<&str>(district::D_STREET_1)?, row.get::<&str>(district::D_ZIP)?));
        let ytd: i64 = row.get(district::D_YTD)?;
        row.set(district::D_YTD, (ytd + input.amount).into())?;
        Ok(true)
    })?;
    expect_changed(changed, "the district", &[w, d])?;

    let (customer_w, customer_d) = (input.customer_w, input.customer_d);
    let c = input.who.find(&txn, &tables.customer_by_name, customer_w, customer_d, &mut session.found)?;
    let key: [Value<'_>; 3] = [customer_w.into(), customer_d.into(), c.into()];
    let changed = txn.modify(&tables.customer, &key, |row| {
        let balance: i64 = row.get(customer::C_BALANCE)?;
        row.set(customer::C_BALANCE, (balance - input.amount).into())?;
        let paid: i64 = row.get(customer::C_YTD_PAYMENT)?;
        row.set(customer::C_YTD_PAYMENT, (paid + input.amount).into())?;
        let payments: u32 = row.get(customer::C_PAYMENT_CNT)?;
        row.set(customer::C_PAYMENT_CNT, (payments + 1).into())?;
        black_box((row.get::<&str>(customer::C_FIRST)?, row.get::<i64>(customer::C_DISCOUNT)?));
        if row.get::<&str>(customer::C_CREDIT)? == "BC" {
            let data = bad_credit(input, c, row.get(customer::C_DATA)?);
            row.set(customer::C_DATA, data.as_str().into())?;
        }
        Ok(true)
    })?;
    expect_changed(changed, "the customer", &key)?;

    let (stream, number) = session.history;
    let [w_of, d_of, c] = key;
    let amount = input.amount.into();
    let row = [stream.into(), number.into(), c, d_of, w_of, d, w, now(), amount, data.as_str().into()];
    txn.insert(&tables.history, &row)?;
    txn.commit()?;
    session.history.1 += 1;
    Ok(Outcome::Committed)
}

/// `C_DATA` of a customer with bad credit: this payment before the earlier ones.
fn bad_credit(input: &Input, c: u32, earlier: &str) -> Text<500> {
    let mut data = Text::EMPTY;
    let numbers = [
        u64::from(c),
        input.customer_d.into(),
        input.customer_w.into(),
        input.d.into(),
        input.w.into(),
        input.amount.unsigned_abs() / 100,
    ];
    for (n, number) in numbers.into_iter().enumerate() {
        if n > 0 {
            data.push(" ");
        }
        data.push_number(number);
    }
    data.push(if input.amount % 100 < 10 { ".0" } else { "." });
    data.push_number(input.amount.unsigned_abs() % 100);
    data.push("|");
    data.push(earlier);
    data
}

/// The columns of a customer that its clerk sees.
pub(super) fn show(row: &Row<'_>) -> Result<()> {
    let names = (row.get::<&str>(customer::C_FIRST)?, row.get::<&str>(customer::C_LAST)?);
    black_box((names, row.get::<i64>(customer::C_BALANCE)?));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_credit_is_prepended_and_cut() {
        let input = Input { w: 1, d: 2, customer_w: 3, customer_d: 4, who: Who::Id(5), amount: 1205 };
        let data = bad_credit(&input, 5, "earlier");
        assert_eq!(data.as_str(), "5 4 3 2 1 12.05|earlier");
        let long = "x".repeat(500);
        assert_eq!(bad_credit(&input, 5, &long).as_str().len(), 500);
    }
}
