//! What a process does until it is killed or asked to close.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pantile::{Database, IndexDef, Timestamp, Value};

use crate::error::{Error, Result};
use crate::history::{Change, Found, Line};
use crate::reader::read_for_long;
use crate::settings::Settings;
use crate::workload::{EXTRA_INDEX, Tables, Workload, extra, extra_definition, retired, unindexed};

/// The parameters of a life.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Settings of the database.
    pub settings: Settings,
    /// The number of this life of the database. Each life opens it with
    /// different options.
    pub number: u64,
    /// When to stop working and close the database; never if `None`.
    pub close_after: Option<Duration>,
    /// A fault that verification must find.
    pub sabotage: Option<Sabotage>,
}

/// Deliberate faults, which verification must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// Transactions are acknowledged before they commit.
    AcknowledgeEarly,
    /// Now and then a transaction lacks one of its rows.
    LoseRow,
}

impl Sabotage {
    /// All of them, with their names.
    pub const ALL: [(Sabotage, &'static str); 2] =
        [(Sabotage::AcknowledgeEarly, "acknowledge-early"), (Sabotage::LoseRow, "lose-row")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(one, _)| *one == self).expect("every fault has a name").1
    }

    /// The fault with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(one, _)| *one)
    }
}

/// Under [`Sabotage::LoseRow`], one in this many transactions lacks a row.
const ROW_LOST_EVERY: u64 = 5;
/// Transactions of a client between two lines about the collector.
const TOLD_EVERY: u64 = 8;

/// What all threads of a life share.
struct Shared<'a, W> {
    life: &'a Life,
    workload: Workload,
    db: &'a Database,
    tables: &'a Tables,
    out: &'a Mutex<W>,
    stop: &'a AtomicBool,
}

/// As [`work_on`], on the database in `dir`, with the life's options.
///
/// # Errors
/// As [`work_on`].
pub fn work<W: Write + Send>(life: &Life, dir: &Path, out: W) -> Result<()> {
    work_on(life, || life.settings.open_to_work(dir, life.number), out)
}

/// Works on a database, and writes a [`Line`] to `out` for each thing done.
/// Each line is a single write, so it is there as a whole or not at all.
///
/// # Errors
/// Whatever ends the work early: an error of the engine, a pipe that nobody
/// reads any more, or something that must not happen.
pub fn work_on<W: Write + Send>(
    life: &Life,
    open: impl FnOnce() -> pantile::Result<Database>,
    out: W,
) -> Result<()> {
    let out = Mutex::new(out);
    let Settings { seed, clients, .. } = life.settings;
    let workload = Workload { seed, clients };
    tell(&out, &Line::Run(workload))?;
    tell(&out, &Line::Opening)?;
    let outcome = live(life, workload, open, &out);
    match &outcome {
        Ok(()) => {}
        Err(Error::Broken(what)) => tell(&out, &Line::Broken(what.clone()))?,
        Err(error) => tell(&out, &Line::Failed(error.to_string()))?,
    }
    outcome
}

fn live<W: Write + Send>(
    life: &Life,
    workload: Workload,
    open: impl FnOnce() -> pantile::Result<Database>,
    out: &Mutex<W>,
) -> Result<()> {
    let db = open()?;
    let found = match db.recovery() {
        _ if db.tables().is_empty() => Found::Nothing,
        recovery if recovery.was_closed => Found::Closed,
        _ => Found::Killed,
    };
    tell(out, &Line::Opened(found))?;
    let tables = Tables::open(&db)?;
    let stop = AtomicBool::new(false);
    let shared = Shared { life, workload, db: &db, tables: &tables, out, stop: &stop };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..workload.clients)
            .map(|client| {
                let shared = &shared;
                scope.spawn(move || shared.ends_all(shared.client(client)))
            })
            .collect();
        let reader = scope.spawn(|| {
            let seed = life.settings.seed ^ life.number;
            shared.ends_all(read_for_long(&db, &tables, life.settings.protocol, seed, &stop))
        });
        if let Some(after) = life.close_after {
            thread::sleep(after);
            stop.store(true, Ordering::Relaxed);
        }
        clients.into_iter().chain([reader]).try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::Broken("a thread panicked".into())))
        })
    })?;
    tell(out, &Line::Closing)?;
    db.close()?;
    tell(out, &Line::Closed)
}

fn tell<W: Write>(out: &Mutex<W>, line: &Line) -> Result<()> {
    let text = format!("{line}\n").replace(['\r', '\n'], " ").trim_end().to_owned() + "\n";
    let mut out = out.lock().expect("no thread panics while it writes");
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::io("report what was done"))
}

impl<W: Write> Shared<'_, W> {
    /// A thread that fails ends the others as well.
    fn ends_all(&self, outcome: Result<()>) -> Result<()> {
        if outcome.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        outcome
    }

    fn client(&self, client: u64) -> Result<()> {
        let first = self.tables.last_of(self.db, client)? + 1;
        for seq in (first..).take_while(|_| !self.stop.load(Ordering::Relaxed)) {
            let extra = extra(client, seq).filter(|name| !self.db.tables().contains(name));
            if let Some(name) = extra {
                self.change(Change::Make, &name, || {
                    self.db.create_table(extra_definition(&name)).map(|_| ())
                })?;
            }
            self.transaction(client, seq)?;
            self.definitions(client, seq)?;
            if seq.is_multiple_of(TOLD_EVERY) {
                let done = self.db.stats().collector;
                self.tell(&Line::Collected(done.blocks_reclaimed, done.survivors_relocated))?;
            }
        }
        Ok(())
    }

    fn transaction(&self, client: u64, seq: u64) -> Result<()> {
        let sabotage = self.life.sabotage;
        let loses = sabotage == Some(Sabotage::LoseRow) && seq.is_multiple_of(ROW_LOST_EVERY);
        if sabotage == Some(Sabotage::AcknowledgeEarly) {
            self.tell(&Line::Commit(client, seq, Timestamp::ZERO))?;
        }
        let extra = extra(client, seq);
        let (ts, whole) = self.db.run(|txn| {
            let whole = self.workload.transaction(self.tables, txn, client, seq)?;
            if loses {
                self.workload.lose_a_row(self.tables, txn, client, seq)?;
            }
            if let Some(name) = &extra {
                let tag = self.workload.tag(client, seq);
                txn.insert(&self.db.table(name)?, &[seq.into(), Value::Str(&tag)])?;
            }
            Ok::<_, pantile::Error>((txn.timestamp(), whole))
        })?;
        if sabotage != Some(Sabotage::AcknowledgeEarly) {
            self.tell(&Line::Commit(client, seq, ts))?;
        }
        if whole {
            Ok(())
        } else {
            Err(Error::Broken(format!("client {client}: transaction {seq} lacks a row")))
        }
    }

    fn definitions(&self, client: u64, seq: u64) -> Result<()> {
        let there = |name: &String| self.db.tables().contains(name);
        if let Some(name) = extra(client, seq).filter(there) {
            let table = self.db.table(&name)?;
            if table.index(EXTRA_INDEX).is_err() {
                let index = IndexDef::unique(EXTRA_INDEX, ["tag"]);
                self.change(Change::Index, &name, || self.db.create_index(&table, index).map(|_| ()))?;
            }
        }
        if let Some(name) = unindexed(client, seq).filter(there) {
            let table = self.db.table(&name)?;
            if table.index(EXTRA_INDEX).is_ok() {
                self.change(Change::Unindex, &name, || self.db.drop_index(&table, EXTRA_INDEX))?;
            }
        }
        if let Some(name) = retired(client, seq).filter(there) {
            self.change(Change::Drop, &name, || self.db.drop_table(&name))?;
        }
        Ok(())
    }

    fn change(&self, change: Change, name: &str, make: impl FnOnce() -> pantile::Result<()>) -> Result<()> {
        self.tell(&Line::Begin(change, name.into()))?;
        make()?;
        self.tell(&Line::End(change, name.into()))
    }

    fn tell(&self, line: &Line) -> Result<()> {
        tell(self.out, line)
    }
}
