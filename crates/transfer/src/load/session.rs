//! One load: its tables, and the way of blocks to the threads.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use pantile::{Database, Range, TableDef};

use crate::block::{Block, Rows};
use crate::error::Error;
use crate::load::settings::{Loaded, Settings};
use crate::load::work::Work;
use crate::progress::Progress;
use crate::schema;
use crate::target::Target;

/// A load that is running.
pub struct Session<'s> {
    pub settings: &'s Settings<'s>,
    work: &'s Work<'s>,
    pub sender: Option<SyncSender<Block>>,
    names: Vec<String>,
    made: Vec<Made>,
    blocks: u64,
    turns: u64,
    loaded: Loaded,
}

/// A table whose rows are all of this load.
pub struct Made {
    name: String,
    is_new: bool,
}

impl Made {
    /// Takes the rows away, and the table if the load has created it. Returns
    /// what it could not do.
    pub fn take_back(self, db: &Database) -> Option<(String, pantile::Error)> {
        let Self { name, is_new } = self;
        let done = match is_new {
            true => db.drop_table(&name),
            false => db.table(&name).and_then(|table| db.truncate_table(&table).map(drop)),
        };
        done.err().map(|error| (name, error))
    }
}

impl<'s> Session<'s> {
    pub fn new(settings: &'s Settings<'s>, work: &'s Work<'s>) -> Self {
        Self {
            settings,
            work,
            sender: None,
            names: Vec::new(),
            made: Vec::new(),
            blocks: 0,
            turns: 0,
            loaded: Loaded::default(),
        }
    }

    /// Whether a table of the dump is to be loaded.
    pub fn wants(&self, table: &str) -> bool {
        self.settings.tables.is_empty() || self.settings.tables.iter().any(|name| name == table)
    }

    /// Whether a table has come before.
    pub fn has_seen(&self, table: &str) -> bool {
        self.names.iter().any(|name| name == table)
    }

    /// Checks that the dump had the tables that were asked for.
    pub fn check_names(&self) -> Result<(), Error> {
        match self.settings.tables.iter().find(|name| !self.has_seen(name)) {
            Some(name) => Err(Error::NoSuchTable(name.clone())),
            None => Ok(()),
        }
    }

    /// The table of this definition, which is created unless it exists.
    pub fn table(&mut self, def: TableDef) -> Result<Arc<Target>, Error> {
        if !self.settings.db.tables().contains(&def.name) {
            return self.create(def);
        }
        let table = def.name.clone();
        let target = self.existing(&table)?;
        match schema::difference(&def, &target.def) {
            Some(detail) => Err(Error::TableDiffers { table, detail }),
            None => Ok(target),
        }
    }

    /// Creates a table.
    pub fn create(&mut self, def: TableDef) -> Result<Arc<Target>, Error> {
        let table = self.settings.db.create_table(def.clone())?;
        self.loaded.tables_created += 1;
        self.made.push(Made { name: def.name.clone(), is_new: true });
        self.names.push(def.name.clone());
        Ok(Arc::new(Target { table, def, is_own: true, number: self.names.len() }))
    }

    /// A table that exists.
    pub fn existing(&mut self, name: &str) -> Result<Arc<Target>, Error> {
        let db = self.settings.db;
        let table = db.table(name)?;
        let def = table.definition();
        let is_own = self.settings.is_alone
            && self.settings.batch.is_none()
            // Otherwise it cannot be emptied again.
            && db.check_prepared(&table).is_ok()
            && db.begin_read()?.scan(&table, Range::all().limit(1))?.next().transpose()?.is_none();
        if is_own {
            self.made.push(Made { name: def.name.clone(), is_new: false });
        }
        self.names.push(name.to_owned());
        Ok(Arc::new(Target { table, def, is_own, number: self.names.len() }))
    }

    /// Hands rows to the threads.
    pub fn send(&mut self, target: &Arc<Target>, file: Option<&str>, rows: Rows) -> Result<(), Error> {
        let turn = (!target.is_own).then_some(self.turns);
        self.turns += u64::from(turn.is_some());
        let (target, file) = (Arc::clone(target), file.map(str::to_owned));
        let block = Block { target, number: self.blocks, turn, file, rows };
        self.blocks += 1;
        // Threads that have failed say why.
        match &self.sender {
            Some(sender) if !self.work.has_failed() => sender.send(block).map_err(|_| Error::Interrupted),
            _ => Err(Error::Interrupted),
        }
    }

    /// Counts what has been read, and asks whether to go on.
    pub fn note(&mut self, table: &str, rows: u64, bytes: u64) -> Result<(), Error> {
        self.loaded.rows += rows;
        self.loaded.bytes += bytes;
        let progress = Progress { table, rows: self.loaded.rows, bytes: self.loaded.bytes };
        match (self.settings.progress)(&progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }

    /// What was loaded, and what is to be taken back if the load has failed.
    pub fn end(self) -> (Loaded, Vec<Made>) {
        (self.loaded, self.made)
    }
}
