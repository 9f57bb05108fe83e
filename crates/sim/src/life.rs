//! One life of a database: from opening to the power cut.

use std::sync::Arc;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::stats::CollectorStats;
use pantile::{
    Collector, Database, Error, GcOptions, IndexDef, Medium, Options, Pacing, Range, TableDef, Type,
};
use pantile_testkit::cut::{Broken, CutKind, CutMedium, Image, Log};

use crate::client::{BY_V, Client, KEYS, Mood, Stage, Turn, decode};
use crate::state::{Change, State, TableState, Versions};
use pantile_testkit::{Random, mix};

/// Most tables at a time.
const TABLES: usize = 3;

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
        let limit = self.limit.map(|limit| limit.max(start.len()));
        let medium = CutMedium::with_limit(start, self.kind, self.broken, limit);
        let time = SimulatedTime::default();
        time.advance(Duration::from_nanos(mix(self.seed) >> 20));
        let options = self.options(Arc::clone(&medium), time.clone());
        let db = options.open("simulated").map_err(|error| format!("open: {error}"))?;
        let mut world = World {
            random: Random::new(self.seed, 0),
            versions: Versions::new(state),
            state: state.clone(),
            steps: Vec::new(),
            tables_made: mix(self.seed) % 1_000_000,
            mood: self.mood,
            hot: self.hot,
            medium: &medium,
            db: &db,
        };
        let mut clients: Vec<Client> = (0..self.clients).map(Client::new).collect();
        for _ in 0..self.calls {
            let micros = if world.random.one_in(64) { 5_000 } else { world.random.below(self.pace) };
            time.advance(Duration::from_micros(micros));
            world.turn(&mut clients)?;
        }
        let collected = db.stats().collector;
        let World { steps, mut random, .. } = world;
        let was_closed = random.one_in(4);
        if was_closed {
            // An orderly end, with everything that it writes.
            clients.iter_mut().for_each(Client::leave);
            medium.run_as(0);
            db.close().map_err(|error| format!("close: {error}"))?;
        }
        // What is dropped later is no longer part of this life.
        let log = medium.take_log();
        Ok(Life { start: start.clone(), log, state: state.clone(), steps, floor, collected, was_closed })
    }
}

struct World<'w> {
    random: Random,
    versions: Versions,
    state: State,
    steps: Vec<Step>,
    tables_made: u64,
    mood: Mood,
    hot: u64,
    medium: &'w CutMedium,
    db: &'w Database,
}

impl World<'_> {
    fn turn(&mut self, clients: &mut [Client]) -> Result<(), String> {
        let is_quiet = clients.iter().all(Client::is_idle);
        let changes = self.state.len() < TABLES || self.random.one_in(24);
        if is_quiet && changes && (self.state.is_empty() || self.random.one_in(2)) {
            return self.define();
        }
        let client = &mut clients[self.random.below(clients.len() as u64) as usize];
        if client.is_idle() && self.state.is_empty() {
            return Ok(());
        }
        self.medium.run_as(client.core());
        let began = self.medium.events();
        let mut stage = Stage {
            db: self.db,
            versions: &mut self.versions,
            random: &mut self.random,
            mood: self.mood,
            hot: self.hot,
        };
        if let Turn::Committed { ts, changes } = client.turn(&mut stage)? {
            crate::state::apply(&mut self.state, &changes);
            self.steps.push(Step { began, ended: self.medium.events(), ts, changes });
        }
        Ok(())
    }

    /// Changes a definition while no transaction is running. If there is no
    /// space, nothing changes.
    fn define(&mut self) -> Result<(), String> {
        let began = self.medium.events();
        let names: Vec<String> = self.state.keys().cloned().collect();
        let name = |random: &mut Random| random.pick(&names).clone();
        let done = |result: pantile::Result<()>| match result {
            Ok(()) => Ok(true),
            Err(Error::StorageFull { .. }) => Ok(false),
            Err(error) => Err(format!("a change of a definition failed: {error}")),
        };
        let (is_done, change) = match (names.len(), self.random.below(3)) {
            (0, _) | (..TABLES, 0) => {
                self.tables_made += 1;
                let name = format!("t{}", self.tables_made);
                let def = TableDef::new(&name).column("k", Type::U64).column("v", Type::U64);
                let def = def.column("data", Type::Bytes(200_000)).primary_key(["k"]);
                let made = self.db.create_table(def.index(IndexDef::new(BY_V, ["v"])));
                (done(made.map(drop))?, Change::MakeTable(name))
            }
            (TABLES.., 1) => {
                let name = name(&mut self.random);
                (done(self.db.drop_table(&name))?, Change::DropTable(name))
            }
            _ => {
                let name = name(&mut self.random);
                let is_indexed = self.state[&name].is_indexed;
                let table = self.db.table(&name).map_err(|error| error.to_string())?;
                let outcome = match is_indexed {
                    true => self.db.drop_index(&table, BY_V),
                    false => self.db.create_index(&table, IndexDef::new(BY_V, ["v"])).map(drop),
                };
                (done(outcome)?, Change::SetIndexed(name, !is_indexed))
            }
        };
        if !is_done {
            return Ok(());
        }
        let changes = vec![change];
        self.versions.commit(0, &changes)?;
        crate::state::apply(&mut self.state, &changes);
        self.steps.push(Step { began, ended: self.medium.events(), ts: 0, changes });
        Ok(())
    }
}

/// Opens what a cut has left. Returns its state, and what opening did to the
/// medium.
///
/// # Errors
/// A description, if it cannot be opened or contradicts itself.
pub(crate) fn found(image: &Image, kind: CutKind, floor: u64) -> Result<(State, Log), String> {
    let medium = CutMedium::new(image, kind, None);
    let time = SimulatedTime::default();
    let options = Options::new()
        .on_medium(Arc::clone(&medium) as Arc<dyn Medium>)
        .recovery_threads(1)
        .streams(1)
        .simulated_time(time);
    let db = options.open("simulated").map_err(|error| format!("the database cannot be opened: {error}"))?;
    let log = medium.take_log();
    let state = read_all(&db).map_err(|error| format!("the database cannot be read: {error}"))??;
    let next = db.begin().map_err(|error| error.to_string())?.timestamp().get();
    if next <= floor {
        return Err(format!("the clock went back from {floor} to {next}"));
    }
    Ok((state, log))
}

/// All rows, by the primary key and by the index.
fn read_all(db: &Database) -> pantile::Result<Result<State, String>> {
    let txn = db.begin_read()?;
    let mut state = State::new();
    for name in db.tables() {
        let table = db.table(&name)?;
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
