//! One life of a database: from opening to the power cut.

use std::sync::Arc;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::stats::CollectorStats;
use pantile::{
    Collector, Database, Error, GcOptions, IndexDef, Medium, Options, Pacing, Range, TableDef, Type,
};
use pantile_base::limits::CHUNK_BYTES;
use pantile_testkit::cut::{Broken, CutKind, CutMedium, Image, Log};

use crate::client::{BY_V, Client, KEYS, Mood, Selection, Stage, Turn, decode};
use crate::state::{Change, State, TableState, Versions};
use pantile_testkit::{Random, mix};

/// Bytes of a piece of a value out of line.
const PIECE: usize = 60_000;
/// Blocks of the catalog that may be empty.
const OPEN_OF_CATALOG: u64 = 8;
/// Rounds of upkeep within which all space must have been given back, besides
/// one for each table.
const ROUNDS_OF_SPACE: usize = 20;

/// How a life ends, unless the power is cut before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// With open transactions.
    Abrupt,
    Closed,
    /// All tables are dropped and all space is given back before it is closed.
    Emptied,
}

/// The parameters of a life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub seed: u64,
    pub kind: CutKind,
    pub collector: Collector,
    pub broken: Option<Broken>,
    pub clients: u8,
    /// The most microseconds between two calls, and the number of calls of all
    /// clients.
    pub pace: u64,
    pub calls: u64,
    pub mood: Mood,
    pub hot: u64,
    /// Most bytes of the medium.
    pub limit: Option<u64>,
    /// Most tables at a time.
    pub tables: usize,
    /// Whether some transactions are large.
    pub floods: bool,
    /// How far the clocks of two clients may differ.
    pub skew: Duration,
    pub ending: Ending,
}

/// An acknowledged step.
#[derive(Debug)]
pub(crate) struct Step {
    /// The number of events before it began, and after it ended.
    pub began: usize,
    pub ended: usize,
    pub ts: u64,
    pub changes: Vec<Change>,
}

/// What a life did, and its log.
pub(crate) struct Life {
    pub start: Image,
    pub log: Log,
    pub state: State,
    pub steps: Vec<Step>,
    /// The highest timestamp acknowledged before this life.
    pub floor: u64,
    pub collected: CollectorStats,
    /// Commits that found no space.
    pub refused: u64,
    pub was_closed: bool,
}

impl Plan {
    fn options(&self, medium: Arc<CutMedium>, time: SimulatedTime) -> Options {
        let mut random = Random::new(self.seed ^ 0xEA6E, 0);
        let gc = GcOptions {
            theta: *random.pick(&[0.5, 0.75]),
            queue_share: *random.pick(&[0.0, 0.0, 0.15]),
            epoch: Duration::from_micros(*random.pick(&[100, 300, 1_000])),
            pacing: *random.pick(Pacing::ALL),
            bypass: !random.one_in(4),
            space_target: *random.pick(&[1.0, 1.25]),
            ..GcOptions::default()
        };
        let slots = *random.pick(&[2, 4, 4, 8, 16]);
        Options::new()
            .collector(self.collector)
            .gc(gc)
            .block_slots(slots)
            .streams(1 + random.below(3) as usize)
            .on_medium(medium)
            .recovery_threads(1)
            .simulated_time(time)
    }

    /// Runs the life in a thread of its own. Thread-local state left by other
    /// runs would make runs of one seed differ.
    ///
    /// # Errors
    /// A description, if the database answered wrongly.
    pub fn live_alone(&self, start: &Image, state: &State, floor: u64) -> Result<Life, String> {
        let life = std::thread::scope(|scope| scope.spawn(|| self.live(start, state, floor)).join());
        life.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn live(&self, start: &Image, state: &State, floor: u64) -> Result<Life, String> {
        // A length that nothing durable needs may have been lost.
        let limit = self.limit.map(|limit| limit.max(start.len().next_multiple_of(CHUNK_BYTES)));
        let medium = CutMedium::with_limit(start, self.kind, self.broken, limit);
        let time = SimulatedTime::with_skew(self.skew);
        time.advance(Duration::from_nanos(mix(self.seed) >> 20));
        let options = self.options(Arc::clone(&medium), time.clone());
        let db = options.open("simulated").map_err(|error| format!("open: {error}"))?;
        let mut world = World {
            plan: self,
            random: Random::new(self.seed, 0),
            versions: Versions::new(state),
            state: state.clone(),
            steps: Vec::new(),
            refused: 0,
            scanned: None,
            wanted: None,
            tables_made: mix(self.seed) % 1_000_000,
            medium: &medium,
            time: &time,
            db: &db,
        };
        let mut clients: Vec<Client> = (0..self.clients).map(Client::new).collect();
        for _ in 0..self.calls {
            let micros = if world.random.one_in(64) { 5_000 } else { world.random.below(self.pace) };
            time.advance(Duration::from_micros(micros));
            world.turn(&mut clients)?;
        }
        let collected = db.stats().collector;
        let was_closed = self.ending != Ending::Abrupt;
        if was_closed {
            // An orderly end, with everything that it writes.
            world.refuse_to_close(&clients)?;
            clients.iter_mut().for_each(Client::leave);
            world.close()?;
        }
        // What is dropped later is no longer part of this life.
        let log = medium.take_log();
        let World { steps, refused, .. } = world;
        Ok(Life {
            start: start.clone(),
            log,
            state: state.clone(),
            steps,
            floor,
            collected,
            refused,
            was_closed,
        })
    }
}

struct World<'w> {
    plan: &'w Plan,
    random: Random,
    versions: Versions,
    state: State,
    steps: Vec<Step>,
    refused: u64,
    tables_made: u64,
    scanned: Option<Selection>,
    wanted: Option<Selection>,
    medium: &'w CutMedium,
    time: &'w SimulatedTime,
    db: &'w Database,
}

impl World<'_> {
    fn turn(&mut self, clients: &mut [Client]) -> Result<(), String> {
        let is_lacking = self.state.len() < self.plan.tables;
        let often = match self.plan.mood {
            _ if is_lacking => 8,
            Mood::Varied => 24,
            Mood::Churning | Mood::Deleting => 400,
        };
        if self.state.is_empty() || self.random.one_in(often) {
            return self.define();
        }
        if let Some(read) = self.scanned.take().filter(|read| self.is_indexed(&read.table)) {
            // What was read through it must stay protected.
            let began = self.medium.events();
            let change = self.change_index(read.table.clone())?;
            self.note(began, change)?;
            self.wanted = Some(read);
            return Ok(());
        }
        if self.random.one_in(500) {
            return self.refuse_to_close(clients);
        }
        let client = &mut clients[self.random.below(clients.len() as u64) as usize];
        self.medium.run_as(client.core());
        // The clock of the last core is ahead of all others.
        let ahead = u32::from(client.core()) + 1;
        self.time.run_ahead(self.plan.skew * ahead / u32::from(self.plan.clients));
        let began = self.medium.events();
        let mut stage = Stage {
            db: self.db,
            versions: &mut self.versions,
            random: &mut self.random,
            mood: self.plan.mood,
            hot: self.plan.hot,
            floods: self.plan.floods,
            often_late: !self.plan.skew.is_zero(),
            scanned: &mut self.scanned,
            wanted: &mut self.wanted,
        };
        match client.turn(&mut stage)? {
            Turn::Committed { ts, changes } => {
                crate::state::apply(&mut self.state, &changes);
                self.steps.push(Step { began, ended: self.medium.events(), ts, changes });
            }
            Turn::Refused => self.refused += 1,
            Turn::Nothing => {}
        }
        Ok(())
    }

    /// Changes a definition beside the clients' transactions. If there is no
    /// space, nothing changes.
    fn define(&mut self) -> Result<(), String> {
        let began = self.medium.events();
        let names: Vec<String> = self.state.keys().cloned().collect();
        let is_lacking = names.len() < self.plan.tables;
        let change = match self.random.below(if self.plan.tables > 3 { 12 } else { 3 }) {
            0 if !is_lacking => {
                let name = self.random.pick(&names).clone();
                done(self.db.drop_table(&name))?.then_some(Change::DropTable(name))
            }
            _ if names.is_empty() || is_lacking && !self.random.one_in(4) => self.make_table()?,
            _ => {
                let name = self.random.pick(&names).clone();
                self.change_index(name)?
            }
        };
        self.note(began, change)
    }

    fn make_table(&mut self) -> Result<Option<Change>, String> {
        self.tables_made += 1;
        let name = format!("t{}", self.tables_made);
        let def = TableDef::new(&name).column("k", Type::U64).column("v", Type::U64);
        let def = def.column("data", Type::Bytes(200_000)).primary_key(["k"]);
        let made = self.db.create_table(def.index(IndexDef::new(BY_V, ["v"])));
        Ok(done(made.map(drop))?.then_some(Change::MakeTable(name)))
    }

    fn is_indexed(&self, name: &str) -> bool {
        self.state.get(name).is_some_and(|table| table.is_indexed)
    }

    fn change_index(&self, name: String) -> Result<Option<Change>, String> {
        let is_indexed = self.is_indexed(&name);
        let table = self.db.table(&name).map_err(|error| error.to_string())?;
        let changed = match is_indexed {
            true => self.db.drop_index(&table, BY_V),
            false => self.db.create_index(&table, IndexDef::new(BY_V, ["v"])).map(drop),
        };
        Ok(done(changed)?.then_some(Change::SetIndexed(name, !is_indexed)))
    }

    fn note(&mut self, began: usize, change: Option<Change>) -> Result<(), String> {
        let Some(change) = change else { return Ok(()) };
        let changes = vec![change];
        self.versions.commit(0, &changes)?;
        crate::state::apply(&mut self.state, &changes);
        self.steps.push(Step { began, ended: self.medium.events(), ts: 0, changes });
        Ok(())
    }

    /// While a transaction is open, the database is not closed and goes on.
    fn refuse_to_close(&self, clients: &[Client]) -> Result<(), String> {
        match clients.iter().all(Client::is_idle) || self.db.clone().close().is_err() {
            true => Ok(()),
            false => Err("the database was closed, and a transaction is open".into()),
        }
    }

    /// Closes the database, which must count what it holds, give back what it
    /// does not, and be left alone afterwards.
    fn close(&mut self) -> Result<(), String> {
        self.medium.run_as(0);
        if self.plan.ending == Ending::Emptied {
            self.empty()?;
        }
        let (tuples, expected) = (self.db.stats().tuples, tuples(&self.state));
        if tuples != expected {
            return Err(format!("there are {tuples} tuples, and {expected} were written"));
        }
        let spaces = self.db.space_by_table();
        if let Some(of) = spaces.iter().find(|of| of.blocks > of.contents) {
            return Err(format!("blocks in use hold nothing: {of:?}"));
        }
        self.db.clone().close().map_err(|error| format!("close: {error}"))?;
        let events = self.medium.events();
        let refused = [
            self.db.begin().map(drop),
            self.db.begin_read().map(drop),
            self.db.drop_table("t").map(drop),
            self.db.compact().map(drop),
            self.db.clone().close(),
        ];
        self.db.upkeep();
        if let Some(n) = refused.iter().position(Result::is_ok) {
            return Err(format!("call {n} on a closed database succeeded"));
        }
        match self.medium.events() - events {
            0 => Ok(()),
            late => Err(format!("a closed database has touched its medium {late} times")),
        }
    }

    /// Drops every table. Their space must then be free.
    fn empty(&mut self) -> Result<(), String> {
        for name in self.state.keys().cloned().collect::<Vec<_>>() {
            let began = self.medium.events();
            let change = done(self.db.drop_table(&name))?.then_some(Change::DropTable(name));
            self.note(began, change)?;
        }
        if !self.state.is_empty() {
            // There was no space for the change of the definition.
            return Ok(());
        }
        for _ in 0..ROUNDS_OF_SPACE + self.plan.tables {
            self.db.compact().map_err(|error| format!("compact: {error}"))?;
            self.time.advance(Duration::from_millis(5));
            self.db.upkeep();
            if self.is_empty() {
                return Ok(());
            }
        }
        Err(format!("all tables were dropped, and these take space: {:?}", self.db.space_by_table()))
    }

    /// Whether only the catalog takes space. Other collectors keep what it held
    /// before, and all of them the tombstones of its rows.
    fn is_empty(&self) -> bool {
        let compacts = [Collector::TB_COLLECT, Collector::TB_COLLECT_EAGER].contains(&self.plan.collector);
        let tables = self.db.space_by_table();
        tables
            .iter()
            .all(|of| of.table == "catalog" && !(compacts && of.blocks > of.contents + OPEN_OF_CATALOG))
    }
}

/// Whether a change of a definition was made: `false` if there was no space.
fn done(result: pantile::Result<()>) -> Result<bool, String> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::StorageFull { .. }) => Ok(false),
        Err(error) => Err(format!("a change of a definition failed: {error}")),
    }
}

/// Rows, pieces of values out of line, and definitions.
fn tuples(state: &State) -> u64 {
    let pieces = |(_, data): &(u64, Vec<u8>)| match data.len() {
        ..65_000 => 0,
        long => long.div_ceil(PIECE) as u64,
    };
    let of = |table: &TableState| 1 + table.rows.values().map(|row| 1 + pieces(row)).sum::<u64>();
    state.values().map(of).sum()
}

/// Opens what a cut has left, or a closed database. Returns its state, and
/// what opening did to the medium.
///
/// # Errors
/// A description, if it cannot be opened or contradicts itself.
pub(crate) fn found(
    image: &Image,
    kind: CutKind,
    floor: u64,
    is_closed: bool,
) -> Result<(State, Log), String> {
    let medium = CutMedium::new(image, kind, None);
    let time = SimulatedTime::default();
    let options = Options::new()
        .on_medium(Arc::clone(&medium) as Arc<dyn Medium>)
        .recovery_threads(1)
        .streams(1)
        .verify_reads(true)
        .simulated_time(time);
    let db = options.open("simulated").map_err(|error| format!("the database cannot be opened: {error}"))?;
    let log = medium.take_log();
    let state = read_all(&db).map_err(|error| format!("the database cannot be read: {error}"))??;
    check_space(&db, &state, is_closed)?;
    let next = db.begin().map_err(|error| error.to_string())?.timestamp().get();
    if next <= floor {
        return Err(format!("the clock went back from {floor} to {next}"));
    }
    Ok((state, log))
}

/// What a recovered database holds besides its rows, and what it has found.
fn check_space(db: &Database, state: &State, is_closed: bool) -> Result<(), String> {
    let (recovery, counted, expected) = (db.recovery(), db.stats().tuples, tuples(state));
    if is_closed && (!recovery.was_closed || recovery.discarded > 0) {
        return Err(format!("the database was closed, and {recovery:?}"));
    }
    if counted != expected {
        return Err(format!("there are {counted} tuples, and the rows have {expected}"));
    }
    // Each block that is kept holds something that was committed.
    let blocks: u64 = db.space_by_table().iter().map(|of| of.blocks).sum();
    let contents = recovery.contents_scanned - recovery.discarded;
    if !recovery.was_closed && blocks > contents {
        return Err(format!("{blocks} blocks are in use, for {contents} contents"));
    }
    Ok(())
}

/// All rows, by the primary key and by the index.
fn read_all(db: &Database) -> pantile::Result<Result<State, String>> {
    let txn = db.begin_read()?;
    let mut state = State::new();
    for name in db.tables() {
        let table = db.table(&name)?;
        // Before the indexes have been used.
        let early = txn.get(&table, &[(KEYS / 2).into()])?.map(|row| decode(&row)).transpose()?;
        let rows: std::collections::BTreeMap<_, _> =
            txn.scan(&table, Range::all())?.map(|row| decode(&row?)).collect::<pantile::Result<_>>()?;
        let index = table.index(BY_V).ok();
        if let Some(index) = &index {
            let found: std::collections::BTreeMap<_, _> = txn
                .scan_index(index, Range::all())?
                .map(|row| decode(&row?))
                .collect::<pantile::Result<_>>()?;
            if found != rows {
                return Ok(Err(format!("the index of {name} has {found:?}, the table {rows:?}")));
            }
        }
        if early.map(|(_, row)| row).as_ref() != rows.get(&(KEYS / 2)) {
            return Ok(Err(format!("the first read of {name} differs from a scan")));
        }
        for key in 0..KEYS {
            let row = txn.get(&table, &[key.into()])?.map(|row| decode(&row)).transpose()?;
            if row.map(|(_, row)| row).as_ref() != rows.get(&key) {
                return Ok(Err(format!("a read of {name} {key} differs from a scan")));
            }
        }
        state.insert(name, TableState { rows, is_indexed: index.is_some() });
    }
    Ok(Ok(state))
}
