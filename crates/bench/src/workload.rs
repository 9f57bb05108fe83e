//! The interface of a workload.

use pantile::{Database, Isolation, Table, Value};

use crate::error::Result;
use crate::load::Context;
use crate::record::Consistency;
use crate::runner::Client;
use pantile_testkit::Random;

/// What a database holds of a workload's data.
#[derive(Debug)]
pub enum Found<D> {
    /// Nothing. What an interrupted load left has been removed.
    Nothing,
    /// All of the data.
    Complete(D),
    /// Something else: a description, and what to do.
    Other(String),
}

/// Where a row is that was loaded.
#[derive(Clone)]
pub struct LoadedRow<'d> {
    /// Its table.
    pub table: &'d Table,
    /// Its primary key.
    pub key: Vec<Value<'static>>,
    /// Whether transactions of the workload delete it.
    pub is_deleted: bool,
}

/// A workload.
pub trait Workload: Sync {
    /// Its clients.
    type Client: Client;
    /// Handles of its data.
    type Data: Sync;

    /// Its name in records.
    fn name(&self) -> &'static str;

    /// Its settings, for records.
    fn config(&self) -> serde_json::Value;

    /// The names of its kinds of transaction, by their numbers.
    fn kinds(&self) -> &'static [&'static str];

    /// The number of the kind whose commits per minute are TPC-C's metric.
    fn orders(&self) -> Option<usize> {
        None
    }

    /// What a client on a core of its own writes in a second, roughly, in bytes: rather too much than too little.
    fn most_bytes_per_second(&self) -> f64 {
        150e6
    }

    /// Looks for the data of this workload in the database.
    ///
    /// # Errors
    /// Those of the engine.
    fn find(&self, db: &Database) -> Result<Found<Self::Data>>;

    /// Loads the data into a database that holds none.
    ///
    /// # Errors
    /// Those of the engine; [`crate::Error::Interrupted`].
    fn load(&self, db: &Database, context: &Context<'_>) -> Result<Self::Data>;

    /// Makes clients.
    ///
    /// # Errors
    /// Those of the engine.
    fn clients(
        &self,
        db: &Database,
        data: &Self::Data,
        count: usize,
        isolation: Isolation,
    ) -> Result<Vec<Self::Client>>;

    /// Returns a random loaded row; rows that are written often are among them.
    fn random_row<'d>(&self, data: &'d Self::Data, random: &mut Random) -> LoadedRow<'d>;

    /// Checks that the data is consistent, if the workload defines what that means.
    ///
    /// # Errors
    /// Those of the engine; [`crate::Error::Interrupted`].
    fn check(&self, db: &Database, data: &Self::Data, context: &Context<'_>) -> Result<Option<Consistency>>;
}

/// Removes the tables that an interrupted load left. The table `ours[0]` tells
/// them from tables of others: loading creates it first, and it is removed last.
///
/// # Errors
/// Those of the engine.
pub fn remove_unfinished<D>(db: &Database, ours: &[&str]) -> Result<Found<D>> {
    let tables = db.tables();
    if tables.is_empty() {
        return Ok(Found::Nothing);
    }
    let is_ours = |name: &String| ours.contains(&name.as_str());
    if !tables.iter().all(is_ours) || !tables.iter().any(|name| name == ours[0]) {
        return Ok(Found::Other("holds tables of something else; give another directory".into()));
    }
    for name in ours.iter().rev().filter(|name| tables.iter().any(|table| table == *name)) {
        db.drop_table(name)?;
    }
    Ok(Found::Nothing)
}
