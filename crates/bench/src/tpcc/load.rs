//! The data that a TPC-C database begins with, clause 4.3.3.

use std::time::{SystemTime, UNIX_EPOCH};

use pantile::{Database, Result, Transaction, Value};

use super::random::{Text, last_name, non_uniform, zip};
use super::scale::{DISTRICTS, FIRST_PAYMENT, Scale};
use super::schema::{self, Tables};
use crate::load::Context;
use pantile_testkit::Random;

/// Rows inserted by one transaction.
const BATCH: u32 = 500;

/// Rows of ITEM and STOCK in one unit of work.
const CHUNK: u32 = 5_000;

/// First of the streams of HISTORY that hold what was loaded, one per warehouse.
pub(super) const LOADED_STREAMS: u32 = 1 << 31;

/// Microseconds since 1970.
pub(super) fn now() -> Value<'static> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Value::Timestamp(since.as_micros() as i64)
}

/// Something to load that depends on nothing else.
#[derive(Clone, Copy)]
enum Unit {
    Items { first: u32 },
    Warehouse { w: u16 },
    Stock { w: u16, first: u32 },
    Customers { w: u16, d: u8 },
    Orders { w: u16, d: u8 },
}

impl Unit {
    /// The warehouse that it is of.
    fn warehouse(self) -> Option<u16> {
        match self {
            Unit::Items { .. } => None,
            Unit::Warehouse { w }
            | Unit::Stock { w, .. }
            | Unit::Customers { w, .. }
            | Unit::Orders { w, .. } => Some(w),
        }
    }
}

fn units(scale: Scale) -> Vec<Unit> {
    let chunks = || (1..=scale.items).step_by(CHUNK as usize);
    let mut units: Vec<_> = chunks().map(|first| Unit::Items { first }).collect();
    for w in 1..=scale.warehouses {
        units.push(Unit::Warehouse { w });
        units.extend(chunks().map(|first| Unit::Stock { w, first }));
        units.extend((1..=DISTRICTS).map(|d| Unit::Customers { w, d }));
        units.extend((1..=DISTRICTS).map(|d| Unit::Orders { w, d }));
    }
    units
}

/// Fills the tables, and says when that is complete.
///
/// # Errors
/// Those of the engine; [`crate::Error::Interrupted`].
pub fn fill(
    db: &Database,
    tables: &Tables,
    scale: Scale,
    seed: u64,
    context: &Context<'_>,
) -> crate::Result<()> {
    let c_last = Random::new(seed, u64::MAX).between(0, 255);
    let loader = Loader { db, tables, scale, c_last, now: now() };
    let units = units(scale);
    let warehouse = u64::from(scale.items) + 10 * u64::from(scale.customers) * 13;
    context.observer.begin("loading", u64::from(scale.items) + u64::from(scale.warehouses) * warehouse);
    let done = context.in_parallel("loading", units.len(), |n| {
        // Its own random numbers make a unit the same whichever thread loads it.
        Ok(loader.load(units[n], &mut Random::new(seed, n as u64))?)
    });
    context.observer.end();
    done?;
    let row =
        [0u8.into(), scale.warehouses.into(), scale.items.into(), scale.customers.into(), c_last.into()];
    Ok(db.run(|txn| txn.insert(&tables.loaded, &row))?)
}

struct Loader<'a> {
    db: &'a Database,
    tables: &'a Tables,
    scale: Scale,
    c_last: u32,
    now: Value<'static>,
}

impl Loader<'_> {
    fn load(&self, unit: Unit, random: &mut Random) -> Result<u64> {
        // A warehouse begins on the node that its partition is mapped to, where there are nodes.
        unit.warehouse().into_iter().for_each(|w| pantile_nvm::join_node(w.into()));
        let chunk = |first: u32| first..=(first + CHUNK - 1).min(self.scale.items);
        let customers = 1..=self.scale.customers;
        match unit {
            Unit::Items { first } => self.batches(chunk(first), random, |t, i, r| self.item(t, i, r)),
            Unit::Stock { w, first } => self.batches(chunk(first), random, |t, i, r| self.stock(t, w, i, r)),
            Unit::Customers { w, d } => {
                self.batches(customers, random, |t, c, r| self.customer(t, w, d, c, r))
            }
            Unit::Orders { w, d } => {
                let mut of: Vec<u32> = customers.clone().collect();
                random.shuffle(&mut of);
                self.batches(customers, random, |t, o, r| self.order(t, (w, d, o), of[o as usize - 1], r))
            }
            Unit::Warehouse { w } => self.batches(1..=1, random, |t, _, r| self.warehouse(t, w, r)),
        }
    }

    /// Inserts for each of the numbers, some in each transaction; gives the rows inserted.
    fn batches(
        &self,
        numbers: std::ops::RangeInclusive<u32>,
        random: &mut Random,
        insert: impl Fn(&mut Transaction, u32, &mut Random) -> Result<u64>,
    ) -> Result<u64> {
        let mut rows = 0;
        for first in numbers.clone().step_by(BATCH as usize) {
            let before = random.clone();
            rows += self.db.run(|txn| {
                *random = before.clone();
                let last = (first + BATCH - 1).min(*numbers.end());
                (first..=last).map(|n| insert(txn, n, random)).sum::<Result<u64>>()
            })?;
        }
        Ok(rows)
    }

    fn item(&self, txn: &mut Transaction, i: u32, random: &mut Random) -> Result<u64> {
        let name = Text::<24>::letters(random, 14);
        let data = Text::<50>::data(random, 26);
        let row = [
            i.into(),
            random.between(1, 10_000).into(),
            name.as_str().into(),
            // 1.00 to 100.00
            random.between(100, 10_000).into(),
            data.as_str().into(),
        ];
        txn.insert(&self.tables.item, &row).map(|()| 1)
    }

    fn warehouse(&self, txn: &mut Transaction, w: u16, random: &mut Random) -> Result<u64> {
        let customers = i64::from(self.scale.customers);
        let district_ytd = customers * FIRST_PAYMENT;
        let address = Address::new(random);
        let name = Text::<10>::letters(random, 6);
        let [a, b, c, d, e] = address.values();
        let tax = random.between(0, 2000).into();
        let ytd = (district_ytd * i64::from(DISTRICTS)).into();
        txn.insert(&self.tables.warehouse, &[w.into(), name.as_str().into(), a, b, c, d, e, tax, ytd])?;
        for district in 1..=DISTRICTS {
            let address = Address::new(random);
            let name = Text::<10>::letters(random, 6);
            let [a, b, c, d, e] = address.values();
            let tax = random.between(0, 2000).into();
            let next = (self.scale.customers + 1).into();
            let key = [w.into(), district.into()];
            let row = [key[0], key[1], name.as_str().into(), a, b, c, d, e, tax, district_ytd.into(), next];
            txn.insert(&self.tables.district, &row)?;
        }
        Ok(1 + u64::from(DISTRICTS))
    }

    fn stock(&self, txn: &mut Transaction, w: u16, i: u32, random: &mut Random) -> Result<u64> {
        let dist: [Text<24>; 10] = std::array::from_fn(|_| Text::letters(random, 24));
        let data = Text::<50>::data(random, 26);
        let mut row = [Value::UInt(0); 17];
        row[schema::stock::S_W_ID] = w.into();
        row[schema::stock::S_I_ID] = i.into();
        row[schema::stock::S_QUANTITY] = random.between(10, 100).into();
        for (n, dist) in dist.iter().enumerate() {
            row[schema::stock::S_DIST_01 + n] = dist.as_str().into();
        }
        row[schema::stock::S_DATA] = data.as_str().into();
        txn.insert(&self.tables.stock, &row).map(|()| 1)
    }

    /// A customer and the payment that its history begins with.
    fn customer(&self, txn: &mut Transaction, w: u16, d: u8, c: u32, random: &mut Random) -> Result<u64> {
        let names = self.scale.last_names();
        let name = if c <= names { c - 1 } else { non_uniform(random, 255, self.c_last, 0, names - 1) };
        let (name, first) = (last_name(name), Text::<16>::letters(random, 8));
        let address = Address::new(random);
        let phone = Text::<16>::digits(random);
        let credit = if random.percent(10) { "BC" } else { "GC" };
        let data = Text::<500>::letters(random, 300);
        let [street_1, street_2, city, state, zip] = address.values();
        let row = [
            w.into(),
            d.into(),
            c.into(),
            first.as_str().into(),
            "OE".into(),
            name.as_str().into(),
            street_1,
            street_2,
            city,
            state,
            zip,
            phone.as_str().into(),
            self.now,
            credit.into(),
            // 50,000.00
            5_000_000i64.into(),
            random.between(0, 5000).into(),
            (-FIRST_PAYMENT).into(),
            FIRST_PAYMENT.into(),
            1u32.into(),
            0u32.into(),
            data.as_str().into(),
        ];
        txn.insert(&self.tables.customer, &row)?;
        let data = Text::<24>::letters(random, 12);
        let number = u32::from(d - 1) * self.scale.customers + c;
        let row = [
            (LOADED_STREAMS + u32::from(w)).into(),
            number.into(),
            c.into(),
            d.into(),
            w.into(),
            d.into(),
            w.into(),
            self.now,
            FIRST_PAYMENT.into(),
            data.as_str().into(),
        ];
        txn.insert(&self.tables.history, &row).map(|()| 2)
    }

    /// An order of customer `c` with its lines.
    fn order(
        &self,
        txn: &mut Transaction,
        (w, d, o): (u16, u8, u32),
        c: u32,
        random: &mut Random,
    ) -> Result<u64> {
        let delivered = o <= self.scale.delivered();
        let [w, d, o]: [Value<'_>; 3] = [w.into(), d.into(), o.into()];
        let carrier = delivered.then(|| random.between(1, 10)).into();
        let lines = random.between(5, 15);
        txn.insert(&self.tables.order, &[w, d, o, c.into(), self.now, carrier, lines.into(), 1u8.into()])?;
        for number in 1..=lines {
            let item = random.between(1, self.scale.items);
            let amount = if delivered { 0 } else { random.between(1, 999_999) };
            let date = if delivered { self.now } else { Value::Null };
            let info = Text::<24>::letters(random, 24);
            let row = [
                w,
                d,
                o,
                number.into(),
                item.into(),
                w,
                date,
                5u8.into(),
                amount.into(),
                info.as_str().into(),
            ];
            txn.insert(&self.tables.order_line, &row)?;
        }
        if !delivered {
            txn.insert(&self.tables.new_order, &[w, d, o])?;
        }
        Ok(u64::from(lines) + 1 + u64::from(!delivered))
    }
}

struct Address {
    streets: [Text<20>; 2],
    city: Text<20>,
    state: Text<2>,
    zip: Text<9>,
}

impl Address {
    fn new(random: &mut Random) -> Self {
        let mut state = Text::EMPTY;
        for _ in 0..2 {
            let letter = b'A' + random.below(26) as u8;
            state.push(char::from(letter).encode_utf8(&mut [0; 4]));
        }
        Self {
            streets: std::array::from_fn(|_| Text::letters(random, 10)),
            city: Text::letters(random, 10),
            state,
            zip: zip(random),
        }
    }

    fn values(&self) -> [Value<'_>; 5] {
        [
            self.streets[0].as_str().into(),
            self.streets[1].as_str().into(),
            self.city.as_str().into(),
            self.state.as_str().into(),
            self.zip.as_str().into(),
        ]
    }
}
