//! TPC-C: an order-entry business in nine tables and five transactions.
//!
//! The data and the transactions are those of the specification: the mix of
//! 45 New-Order, 43 Payment and 4 each of Order-Status, Delivery and
//! Stock-Level comes from a shuffled deck; 1 New-Order in 100 rolls back; 60
//! of 100 Payments and Order-Statuses look the customer up by name; with
//! several warehouses 15 of 100 Payments and 1 of 100 order lines are remote.
//!
//! Clients neither think nor key in, and a client stands for all ten
//! terminals of a warehouse, or, where there are fewer clients than warehouses,
//! of several warehouses.

pub mod consistency;
mod delivery;
mod load;
mod new_order;
mod order_status;
mod payment;
pub mod random;
mod scale;
pub mod schema;
mod session;
mod stock_level;

use pantile::{Database, Isolation, TableDef, Value};

pub use scale::{DISTRICTS, Scale};
pub use session::Session;

use crate::error::Result;
use crate::load::Context;
use crate::partition::Assign;
use crate::record::Consistency;
use crate::runner::{self, Outcome};
use crate::workload::{Found, LoadedRow, Workload, remove_unfinished};
use pantile_testkit::Random;
use random::{Constants, Deck, KINDS};
use schema::{Tables, loaded};

/// The workload.
#[derive(Clone, Debug)]
pub struct Tpcc {
    /// The size of the data.
    pub scale: Scale,
    /// Whether rows of one table whose keys are known are read, changed and inserted by one
    /// call.
    pub together: bool,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Handles of the data, and what has to be known of it.
pub struct Data {
    /// The tables.
    pub tables: Tables,
    /// The constant with which last names were drawn when loading.
    c_last: u32,
}

impl Workload for Tpcc {
    type Client = Client;
    type Data = Data;

    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn config(&self) -> serde_json::Value {
        serde_json::json!({
            "warehouses": self.scale.warehouses,
            "items": self.scale.items,
            "customers_per_district": self.scale.customers,
            "mix": KINDS.iter().zip(random::MIX).collect::<std::collections::BTreeMap<_, _>>(),
        })
    }

    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn orders(&self) -> Option<usize> {
        Some(0)
    }

    fn find(&self, db: &Database) -> Result<Found<Data>> {
        self.find_among(db, &schema::definitions())
    }

    fn load(&self, db: &Database, context: &Context<'_>) -> Result<Data> {
        create_all(db, schema::definitions())?;
        self.fill(db, context)
    }

    fn clients(&self, db: &Database, data: &Data, count: usize, isolation: Isolation) -> Result<Vec<Client>> {
        (0..count).map(|n| Client::new(self, db, data, (n, count), isolation)).collect()
    }

    fn random_row<'d>(&self, data: &'d Data, random: &mut Random) -> LoadedRow<'d> {
        let (tables, scale) = (&data.tables, self.scale);
        let w = random.between(1, scale.warehouses.into());
        let d = random.between(1, DISTRICTS.into());
        let (table, key) = match random.below(100) {
            0..3 => (&tables.warehouse, vec![w]),
            3..15 => (&tables.district, vec![w, d]),
            15..30 => (&tables.new_order, vec![w, d, random.between(scale.delivered() + 1, scale.customers)]),
            30..65 => (&tables.customer, vec![w, d, random.between(1, scale.customers)]),
            _ => (&tables.stock, vec![w, random.between(1, scale.items)]),
        };
        let key = key.into_iter().map(Value::from).collect();
        LoadedRow { table, key, is_deleted: std::ptr::eq(table, &tables.new_order) }
    }

    fn check(&self, db: &Database, data: &Data, context: &Context<'_>) -> Result<Option<Consistency>> {
        let report = consistency::check(db, &data.tables, self.scale, context)?;
        Ok(Some(Consistency {
            checked: consistency::CONDITIONS,
            failed: report.failed().len() as u32,
            failures: report.violations.iter().take(Consistency::MOST).map(ToString::to_string).collect(),
        }))
    }
}

impl Tpcc {
    /// Looks for the data among tables of a workload that has more of them:
    /// the row that says what was loaded is the last that loading writes.
    pub(crate) fn find_among(&self, db: &Database, ours: &[TableDef]) -> Result<Found<Data>> {
        let Some((scale, c_last)) = read_loaded(db)? else {
            return remove_unfinished(db, &ours.iter().map(|table| table.name.as_str()).collect::<Vec<_>>());
        };
        if scale != self.scale {
            let Scale { warehouses, items, customers } = scale;
            return Ok(Found::Other(format!(
                "holds TPC-C's data for --warehouses {warehouses} ({items} items, {customers} customers a district); \
                 give the same, or another directory"
            )));
        }
        Ok(Found::Complete(Data { tables: Tables::open(db)?, c_last }))
    }

    /// Fills the tables, which are there and empty.
    pub(crate) fn fill(&self, db: &Database, context: &Context<'_>) -> Result<Data> {
        let tables = Tables::open(db)?;
        load::fill(db, &tables, self.scale, self.seed, context)?;
        let c_last = read_loaded(db)?.map_or(0, |(_, c_last)| c_last);
        Ok(Data { tables, c_last })
    }
}

/// Creates tables in their order.
pub(crate) fn create_all(db: &Database, definitions: Vec<TableDef>) -> Result<()> {
    for definition in definitions {
        db.create_table(definition)?;
    }
    Ok(())
}

/// What loading wrote when it was complete.
fn read_loaded(db: &Database) -> Result<Option<(Scale, u32)>> {
    let Ok(table) = db.table(loaded::NAME) else { return Ok(None) };
    let txn = db.begin_read()?;
    let Some(row) = txn.get(&table, &[0u8.into()])? else { return Ok(None) };
    let scale = Scale {
        warehouses: row.get(loaded::L_WAREHOUSES)?,
        items: row.get(loaded::L_ITEMS)?,
        customers: row.get(loaded::L_CUSTOMERS)?,
    };
    Ok(Some((scale, row.get(loaded::L_C_LAST)?)))
}

/// The inputs of a transaction.
#[derive(Clone)]
enum Input {
    NewOrder(new_order::Input),
    Payment(payment::Input),
    OrderStatus(order_status::Input),
    Delivery(delivery::Input),
    StockLevel(stock_level::Input),
}

/// A client.
pub struct Client {
    session: Session,
    random: Random,
    deck: Deck,
    constants: Constants,
    scale: Scale,
    /// The warehouses that it works for.
    homes: Vec<u16>,
    input: Input,
}

impl Client {
    fn new(
        tpcc: &Tpcc,
        db: &Database,
        data: &Data,
        (n, count): (usize, usize),
        isolation: Isolation,
    ) -> Result<Self> {
        // The constants are those of the run, the same for all its clients.
        let constants = Constants::for_run(data.c_last, &mut Random::new(tpcc.seed, u64::MAX - 1));
        let mut random = Random::new(tpcc.seed, (1 << 32) + n as u64);
        let session = Session::new(db, &data.tables, isolation, tpcc.together, n as u32)?;
        let homes = homes(n, count, tpcc.scale.warehouses);
        let input = Input::Delivery(delivery::Input::draw(&mut random, homes[0]));
        let (scale, deck) = (tpcc.scale, Deck::default());
        Ok(Self { session, random, deck, constants, scale, homes, input })
    }
}

/// The warehouses for which client `n` of `count` works.
fn homes(n: usize, count: usize, warehouses: u16) -> Vec<u16> {
    let all = usize::from(warehouses);
    (n % all..all).step_by(count.min(all)).map(|w| w as u16 + 1).collect()
}

impl runner::Client for Client {
    fn draw(&mut self) -> usize {
        let (random, constants, scale) = (&mut self.random, &self.constants, self.scale);
        let kind = self.deck.draw(random);
        let w = match self.homes[..] {
            [only] => only,
            _ => self.homes[random.below(self.homes.len() as u64) as usize],
        };
        self.input = match kind {
            0 => Input::NewOrder(new_order::Input::draw(random, constants, scale, w)),
            1 => Input::Payment(payment::Input::draw(random, constants, scale, w)),
            2 => Input::OrderStatus(order_status::Input::draw(random, constants, scale, w)),
            3 => Input::Delivery(delivery::Input::draw(random, w)),
            _ => Input::StockLevel(stock_level::Input::draw(random, w)),
        };
        kind
    }

    fn attempt(&mut self) -> Result<Outcome> {
        let session = &mut self.session;
        match &self.input {
            Input::NewOrder(input) => new_order::attempt(session, input),
            Input::Payment(input) => payment::attempt(session, input),
            Input::OrderStatus(input) => order_status::attempt(session, input),
            Input::Delivery(input) => delivery::attempt(session, input),
            Input::StockLevel(input) => stock_level::attempt(session, input),
        }
    }
}

/// A transaction with all its inputs.
pub struct Drawn(Input);

impl Assign for Client {
    type Drawn = Drawn;

    fn draw_for_all(&mut self) {
        self.homes = (1..=self.scale.warehouses).collect();
    }

    fn drawn(&self) -> Drawn {
        Drawn(self.input.clone())
    }

    fn attempt_next(&mut self, Drawn(input): Drawn) {
        self.input = input;
    }

    /// The warehouses of its rows, by which all tables but ITEM are partitioned.
    fn partition_keys(&self, keys: &mut Vec<u64>) {
        let mut add = |w: u16| keys.push(w.into());
        match &self.input {
            Input::NewOrder(input) => input.warehouses().for_each(add),
            Input::Payment(input) => input.warehouses().into_iter().for_each(add),
            Input::OrderStatus(input) => add(input.w),
            Input::Delivery(input) => add(input.w),
            Input::StockLevel(input) => add(input.w),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
