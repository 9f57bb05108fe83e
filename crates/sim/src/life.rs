//! One life of a database: from opening to the power cut.

use std::sync::Arc;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::stats::{CollectorStats, TableSpace};
use pantile::{
    Collector, ColumnDef, Database, Error, GcOptions, InFlight, IndexDef, Options, Pacing, TableChange,
    TableDef, Type,
};
use pantile_base::limits::CHUNK_BYTES;
use pantile_testkit::cut::{Broken, CutKind, CutMedium, Image, Log};

use crate::aside::{self, Aside};
use crate::client::{BY_V, Client, Commit, Mood, PAD, Selection, Stage, Turn};
use crate::found::{compare_entries, tuples};
use crate::state::{Change, Look, State, Versions};
use pantile_testkit::{Random, mix};

/// Blocks of the catalog that may be empty.
const OPEN_OF_CATALOG: u64 = 8;
/// Rounds of upkeep within which all space must have been given back, besides
/// one for each table.
const ROUNDS_OF_SPACE: usize = 20;
/// Rounds of upkeep within which the indexes must have been cleaned.
const ROUNDS_OF_CLEANING: usize = 50;
/// Bytes of the smallest cache of rows.
const SMALLEST_ROW_CACHE: u64 = 1 << 20;

/// How a life ends, unless the power is cut before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// With open transactions.
    Abrupt,
    Closed,
    /// Closing begins beside open transactions, which go on.
    ClosedBeside,
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

/// A step, in the order in which others see them.
#[derive(Debug)]
pub(crate) struct Step {
    /// The number of events before it began, and after it was acknowledged; never
    /// is the end of time.
    pub began: usize,
    pub ended: usize,
    pub ts: u64,
    pub changes: Vec<Change>,
    /// The number of events after it was published.
    pub published: usize,
    /// Steps that were in flight, and on which it depends.
    pub needs: Vec<usize>,
}

/// Turns of a client after a refused commit, besides the first one.
const LOOKS: u8 = 2;
/// Commits in flight at a time, at most.
const FLIGHTS: usize = 4;

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
    /// Events until it had been opened.
    pub opened: usize,
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
        let retry_for = self.retry_for();
        let slots = *random.pick(&[2, 4, 4, 8, 16]);
        let image_every = *random.pick(&[u64::MAX, 1, 500, 4_000, 30_000]);
        let whole_blocks = [Collector::TB_COLLECT, Collector::TB_COLLECT_EAGER].contains(&self.collector);
        let options = match whole_blocks && random.one_in(3) {
            true => Options::new().row_cache(SMALLEST_ROW_CACHE),
            false => Options::new(),
        };
        options
            .collector(self.collector)
            .gc(gc)
            .block_slots(slots)
            .streams(1 + random.below(3) as usize)
            .on_medium(medium)
            .recovery_threads(1)
            .index_image_every(image_every)
            .retry_for(retry_for)
            .simulated_time(time)
    }

    /// How long a transaction is run again.
    fn retry_for(&self) -> Duration {
        Duration::from_millis([0, 3, 100][(mix(self.seed) % 3) as usize])
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
        time.on_pause(aside::pause);
        let options = self.options(Arc::clone(&medium), time.clone());
        let db = options.open("simulated").map_err(|error| format!("open: {error}"))?;
        let opened = medium.events();
        let mut world = World {
            plan: self,
            random: Random::new(self.seed, 0),
            versions: Versions::new(state),
            state: state.clone(),
            steps: Vec::new(),
            refused: 0,
            is_closing: false,
            flights: Vec::new(),
            scanned: None,
            wanted: None,
            looking: None,
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
            world.close(&mut clients)?;
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
            opened,
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
    /// A thread is closing the database.
    is_closing: bool,
    /// Commits in flight, with the numbers of their steps.
    flights: Vec<(usize, InFlight)>,
    tables_made: u64,
    scanned: Option<Selection>,
    wanted: Option<Selection>,
    /// A client whose commit was refused, and turns in which it looks at once what
    /// is there.
    looking: Option<(usize, u8)>,
    medium: &'w CutMedium,
    time: &'w SimulatedTime,
    db: &'w Database,
}

impl World<'_> {
    fn turn(&mut self, clients: &mut [Client]) -> Result<(), String> {
        if self.flights.len() == FLIGHTS || !self.flights.is_empty() && self.random.one_in(16) {
            self.land()?;
        }
        let is_lacking = self.state.len() < self.plan.tables;
        let often = match self.plan.mood {
            _ if is_lacking => 3,
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
        if !self.is_closing && self.random.one_in(500) {
            return self.refuse_to_close(clients);
        }
        if !self.is_closing && self.random.one_in(50) {
            self.db.upkeep();
            return Ok(());
        }
        if !self.is_closing && self.random.one_in(25 * often) {
            clients.iter_mut().for_each(Client::leave);
            self.land_all()?;
            return self.check_entries();
        }
        let looking = self.looking.take();
        let chosen = match looking {
            Some((client, _)) => client,
            None => self.random.below(clients.len() as u64) as usize,
        };
        let client = &mut clients[chosen];
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
            is_looking: looking.is_some(),
            is_closing: self.is_closing,
            may_publish: !self.is_closing,
            retry_for: self.plan.retry_for(),
            time: self.time,
            scanned: &mut self.scanned,
            wanted: &mut self.wanted,
        };
        match client.turn(&mut stage)? {
            Turn::Committed(commit) => self.note_commit(began, self.medium.events(), commit),
            Turn::Published(commit, flight) if flight.is_over() => {
                flight.wait().map_err(|error| format!("a commit that was durable: {error}"))?;
                self.note_commit(began, self.medium.events(), commit);
            }
            Turn::Published(commit, flight) => {
                self.note_commit(began, usize::MAX, commit);
                self.flights.push((self.steps.len() - 1, flight));
            }
            Turn::Told { at, looks } => self.note_told(at, &looks),
            Turn::Refused => {
                self.refused += 1;
                self.looking = self.random.one_in(2).then_some((chosen, LOOKS));
                return Ok(());
            }
            Turn::Nothing => {}
        }
        self.looking = looking.and_then(|(client, left)| Some((client, left.checked_sub(1)?)));
        Ok(())
    }

    fn note_commit(&mut self, began: usize, ended: usize, commit: Commit) {
        let Commit { ts, mut changes, read_at, looks } = commit;
        // A deletion of what is not there has written nothing, so nothing meets it.
        changes.retain(|change| change.is_written(&self.state));
        let rests_on = |step: &Step| {
            let sees = |change: &Change| step.ts <= read_at && looks.iter().any(|look| look.sees(change));
            let meets = |change: &Change| changes.iter().any(|own| own.meets(change));
            step.changes.iter().any(|change| sees(change) || meets(change))
        };
        let flights = self.flights.iter().map(|(n, _)| *n);
        let needs = flights.filter(|n| rests_on(&self.steps[*n])).collect();
        crate::state::apply(&mut self.state, &changes);
        let published = self.medium.events();
        self.steps.push(Step { began, ended, ts, changes, published, needs });
    }

    /// What a reader has been told must not be lost.
    fn note_told(&mut self, at: u64, looks: &[Look]) {
        let now = self.medium.events();
        for (n, _) in &self.flights {
            let step = &mut self.steps[*n];
            let sees = |change: &Change| looks.iter().any(|look| look.sees(change));
            if step.ts <= at && step.changes.iter().any(sees) {
                step.ended = step.ended.min(now);
            }
        }
    }

    /// Waits for one of the commits in flight.
    fn land(&mut self) -> Result<(), String> {
        let chosen = self.random.below(self.flights.len() as u64) as usize;
        let (n, flight) = self.flights.swap_remove(chosen);
        flight.wait().map_err(|error| format!("a commit in flight: {error}"))?;
        self.steps[n].ended = self.steps[n].ended.min(self.medium.events());
        Ok(())
    }

    fn land_all(&mut self) -> Result<(), String> {
        while !self.flights.is_empty() {
            self.land()?;
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
                self.done(self.db.drop_table(&name))?.then_some(Change::DropTable(name))
            }
            _ if names.is_empty() || is_lacking && !self.random.one_in(4) => self.make_table()?,
            _ if self.random.one_in(2) => {
                let name = self.random.pick(&names).clone();
                self.change_index(name)?
            }
            _ => {
                let name = self.random.pick(&names).clone();
                self.change_columns(&name)?;
                None
            }
        };
        self.note(began, change)
    }

    fn make_table(&mut self) -> Result<Option<Change>, String> {
        let name = loop {
            self.tables_made += 1;
            let name = format!("t{}", self.tables_made);
            // A table of an earlier life may have it.
            if !self.state.contains_key(&name) {
                break name;
            }
        };
        let def = TableDef::new(&name).column("k", Type::U64).column("v", Type::U64);
        let def = def.column("data", Type::Bytes(200_000)).primary_key(["k"]);
        let made = self.db.create_table(def.index(IndexDef::new(BY_V, ["v"])));
        Ok(self.done(made.map(drop))?.then_some(Change::MakeTable(name)))
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
        Ok(self.done(changed)?.then_some(Change::SetIndexed(name, !is_indexed)))
    }

    /// Adds the pad, or drops it. What clients look at stays the same.
    fn change_columns(&self, name: &str) -> Result<(), String> {
        let table = self.db.table(name).map_err(|error| error.to_string())?;
        let change = match table.column(PAD.0) {
            Ok(_) => TableChange::new().drop_column(PAD.0),
            Err(_) => TableChange::new().add_column(ColumnDef::new(PAD.0, Type::U64).default(PAD.1)),
        };
        match self.db.alter_table(&table, &change) {
            // It has had all layouts that it can have.
            Err(Error::InvalidDefinition(_)) => Ok(()),
            changed => self.done(changed.map(drop)).map(drop),
        }
    }

    /// Whether a change of a definition was made: `false` if there was no space,
    /// or the database is being closed.
    fn done(&self, result: pantile::Result<()>) -> Result<bool, String> {
        match result {
            Ok(()) => Ok(true),
            Err(Error::StorageFull { .. }) => Ok(false),
            Err(Error::Closed) if self.is_closing => Ok(false),
            Err(error) => Err(format!("a change of a definition failed: {error}")),
        }
    }

    fn note(&mut self, began: usize, change: Option<Change>) -> Result<(), String> {
        let Some(change) = change else { return Ok(()) };
        let changes = vec![change];
        self.versions.commit(0, &changes)?;
        crate::state::apply(&mut self.state, &changes);
        let ended = self.medium.events();
        self.steps.push(Step { began, ended, ts: 0, changes, published: ended, needs: Vec::new() });
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
    fn close(&mut self, clients: &mut [Client]) -> Result<(), String> {
        self.land_all()?;
        if self.plan.ending == Ending::ClosedBeside && self.close_beside(clients)? {
            return self.check_closed();
        }
        clients.iter_mut().for_each(Client::leave);
        self.medium.run_as(0);
        self.check_entries()?;
        if self.plan.ending == Ending::Emptied {
            self.empty()?;
        }
        self.check_counts()?;
        self.db.clone().close().map_err(|error| format!("close: {error}"))?;
        self.check_closed()
    }

    /// Closes the database beside open transactions, which can go on and
    /// commit; none begins. Returns whether it was closed.
    fn close_beside(&mut self, clients: &mut [Client]) -> Result<bool, String> {
        let db = self.db.clone();
        let mut closing = Aside::new(move || db.close());
        self.is_closing = true;
        let closed = loop {
            self.medium.run_as(0);
            if let Some(closed) = closing.resume() {
                break closed;
            }
            self.turn(clients)?;
        };
        self.is_closing = false;
        match closed {
            Ok(()) if clients.iter().all(Client::is_idle) => self.check_counts().map(|()| true),
            Ok(()) => Err("the database was closed, and a transaction is open".into()),
            Err(Error::StillOpen { .. }) => Ok(false),
            Err(error) => Err(format!("close beside transactions: {error}")),
        }
    }

    fn check_counts(&self) -> Result<(), String> {
        let (tuples, expected) = (self.db.stats().tuples, tuples(&self.state));
        if tuples != expected {
            return Err(format!("there are {tuples} tuples, and {expected} were written"));
        }
        let spaces = self.db.space_by_table();
        match spaces.iter().find(|of| of.blocks > of.contents) {
            Some(of) => Err(format!("blocks in use hold nothing: {of:?}")),
            None => Ok(()),
        }
    }

    /// Once nothing runs, the indexes must come to have an entry for each row
    /// and no other.
    fn check_entries(&self) -> Result<(), String> {
        for _ in 0..ROUNDS_OF_CLEANING {
            if self.db.stats().stale_entries == 0 {
                break;
            }
            self.time.advance(Duration::from_millis(5));
            self.db.upkeep();
        }
        compare_entries(self.db, &self.state)
    }

    /// A closed database refuses every call and leaves its medium alone.
    fn check_closed(&self) -> Result<(), String> {
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
            let change = self.done(self.db.drop_table(&name))?.then_some(Change::DropTable(name));
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
        let stays = |of: &TableSpace| ["catalog", "dependencies"].contains(&&*of.table);
        tables.iter().all(|of| stays(of) && !(compacts && of.blocks > of.contents + OPEN_OF_CATALOG))
    }
}
