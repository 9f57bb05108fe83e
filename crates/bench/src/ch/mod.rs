//! CH-benCHmark: TPC-C's transactions beside the queries of TPC-H, on one
//! database (R. Cole and others, "The Mixed Workload CH-benCHmark", DBTest
//! 2011).
//!
//! The data is that of [`crate::tpcc`] and three tables more. Some clients
//! run TPC-C's mix, as they do there; others run sixteen of the 22 queries,
//! one after the other, each over one read-only transaction at a safe
//! snapshot. `docs/workloads.md` says which queries are left out, and what is
//! different from the original.

pub mod answer;
pub mod load;
pub mod queries;
mod reader;
pub mod schema;
pub mod snapshot;

use pantile::{Database, Isolation, TableDef};

pub use reader::Reader;

use crate::error::{Error, Result};
use crate::load::Context;
use crate::record::Consistency;
use crate::runner::{self, Outcome};
use crate::tpcc::{self, Tpcc};
use crate::workload::{Found, LoadedRow, Workload};
use pantile_testkit::Random;
use queries::QUERIES;
use schema::Tables;
use tpcc::random::KINDS as TRANSACTIONS;

/// Kinds of transaction, and of query behind them.
const COUNT: usize = TRANSACTIONS.len() + QUERIES.len();

const KINDS: [&str; COUNT] = {
    let mut kinds = [""; COUNT];
    let mut n = 0;
    while n < COUNT {
        kinds[n] = match n.checked_sub(TRANSACTIONS.len()) {
            None => TRANSACTIONS[n],
            Some(query) => QUERIES[query].name,
        };
        n += 1;
    }
    kinds
};

/// The workload.
#[derive(Clone, Debug)]
pub struct Ch {
    /// The transactions, and most of the data.
    pub tpcc: Tpcc,
    /// Clients of the transactions.
    pub oltp: usize,
    /// Clients of the queries.
    pub olap: usize,
}

impl Ch {
    /// All clients: what [`crate::settings::Settings::threads`] must be.
    pub fn threads(&self) -> usize {
        self.oltp + self.olap
    }

    /// All tables, in the order in which they are created.
    fn definitions() -> Vec<TableDef> {
        let mut all = tpcc::schema::definitions();
        all.extend(schema::definitions());
        all
    }
}

/// Handles of the data.
pub struct Data {
    /// TPC-C's.
    pub tpcc: tpcc::Data,
    /// The other three tables.
    pub tables: Tables,
}

impl Workload for Ch {
    type Client = Client;
    type Data = Data;

    fn name(&self) -> &'static str {
        "ch"
    }

    fn config(&self) -> serde_json::Value {
        let mut config = self.tpcc.config();
        config["oltp"] = self.oltp.into();
        config["olap"] = self.olap.into();
        config
    }

    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn orders(&self) -> Option<usize> {
        self.tpcc.orders()
    }

    fn find(&self, db: &Database) -> Result<Found<Data>> {
        Ok(match self.tpcc.find_among(db, &Self::definitions())? {
            Found::Nothing => Found::Nothing,
            Found::Other(what) => Found::Other(what),
            Found::Complete(tpcc) => match Tables::open(db) {
                Ok(tables) => Found::Complete(Data { tpcc, tables }),
                Err(pantile::Error::UnknownTable(_)) => {
                    Found::Other("holds TPC-C's data without the tables of CH; give another directory".into())
                }
                Err(error) => return Err(error.into()),
            },
        })
    }

    fn load(&self, db: &Database, context: &Context<'_>) -> Result<Data> {
        tpcc::create_all(db, Self::definitions())?;
        let tables = Tables::open(db)?;
        load::fill(db, &tables, self.tpcc.seed)?;
        // TPC-C's part comes last: it ends with what says that all is there.
        Ok(Data { tpcc: self.tpcc.fill(db, context)?, tables })
    }

    fn clients(&self, db: &Database, data: &Data, count: usize, isolation: Isolation) -> Result<Vec<Client>> {
        if count != self.threads() {
            return Err(Error::Setting(format!(
                "there are {} clients for transactions and {} for queries, so threads must be {}, not {count}",
                self.oltp,
                self.olap,
                self.threads()
            )));
        }
        let transactions = self.tpcc.clients(db, &data.tpcc, self.oltp, isolation)?;
        let mut clients: Vec<_> =
            transactions.into_iter().map(|client| Client::Oltp(Box::new(client))).collect();
        clients.extend((0..self.olap).map(|n| {
            let random = Random::new(self.tpcc.seed, (1 << 40) + n as u64);
            Client::Olap(Box::new(Reader::new(db, &data.tpcc.tables, &data.tables, random)))
        }));
        Ok(clients)
    }

    fn random_row<'d>(&self, data: &'d Data, random: &mut Random) -> LoadedRow<'d> {
        self.tpcc.random_row(&data.tpcc, random)
    }

    fn check(&self, db: &Database, data: &Data, context: &Context<'_>) -> Result<Option<Consistency>> {
        self.tpcc.check(db, &data.tpcc, context)
    }
}

/// A client.
pub enum Client {
    /// Runs transactions.
    Oltp(Box<tpcc::Client>),
    /// Runs queries.
    Olap(Box<Reader>),
}

impl runner::Client for Client {
    fn draw(&mut self) -> usize {
        match self {
            Client::Oltp(client) => client.draw(),
            Client::Olap(reader) => TRANSACTIONS.len() + reader.draw(),
        }
    }

    fn attempt(&mut self) -> Result<Outcome> {
        match self {
            Client::Oltp(client) => client.attempt(),
            Client::Olap(reader) => reader.attempt().map(|()| Outcome::Committed),
        }
    }

    fn is_analytical(&self) -> bool {
        matches!(self, Client::Olap(_))
    }
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
