//! Transactions begin, end, and survive closing and killing.

use std::rc::Rc;
use std::time::Duration;

use pantile::{
    Conflict, Database, Error, Index, IndexDef, Isolation, Savepoint, Table, TableDef, Transaction, Type,
};
use pantile_testkit::Home;

use super::rows::{EXTRA, LAYOUTS, definitions};
use super::state::{Model, Own, Query, Seen, Span};
use super::tape::Decisions;
use crate::support::{LEVELS, PULSE, abort_at, is_conflict, let_collect};

/// The most transactions that are open at once.
const MOST_OPEN: usize = 6;

/// The most long readers that are open at once.
const MOST_LONG: usize = 3;

/// What collectors have done, over all openings.
#[derive(Clone, Copy, Default, Debug)]
pub struct Collected {
    pub reclaimed: u64,
    pub bypassed: u64,
    pub relocated: u64,
    pub tiles_dropped: u64,
    pub tombstones_dropped: u64,
}

impl std::ops::AddAssign for Collected {
    fn add_assign(&mut self, more: Self) {
        self.reclaimed += more.reclaimed;
        self.bypassed += more.bypassed;
        self.relocated += more.relocated;
        self.tiles_dropped += more.tiles_dropped;
        self.tombstones_dropped += more.tombstones_dropped;
    }
}

/// How a transaction was begun.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Access {
    ReadWrite,
    ReadOnly,
    Safe,
}

/// A running transaction.
pub struct Open {
    pub txn: Transaction,
    pub access: Access,
    pub own: Rc<Own>,
    pub saves: Vec<(Savepoint, Rc<Own>)>,
    pub dead: Vec<Savepoint>,
    pub seen: Vec<Seen>,
    /// No other transaction has run beside it, so it must not meet a conflict.
    pub alone: bool,
    /// An index was created meanwhile, so its commit may meet conflicts.
    pub indexed: bool,
}

impl Open {
    /// The timestamp at which it reads.
    pub fn view(&self) -> u64 {
        match self.txn.isolation() {
            Isolation::ReadCommitted if self.access != Access::Safe => u64::MAX,
            _ => self.txn.timestamp().get(),
        }
    }

    /// The timestamp at which it looks for other rows with a unique key.
    pub fn unique_view(&self) -> u64 {
        if self.is_serializable() { self.view() } else { u64::MAX }
    }

    pub fn is_serializable(&self) -> bool {
        self.txn.isolation() == Isolation::Serializable
    }
}

pub struct Runner {
    pub rng: Decisions,
    pub model: Model,
    pub open: Vec<Open>,
    pub tables: Vec<Table>,
    pub extra: Option<Index>,
    /// Readers that stay while collectors work, and the queries that they have
    /// made.
    long: Vec<(Open, Vec<Query>)>,
    /// For commits that let the collector work, if it should.
    pulse: Option<Table>,
    collected: Collected,
    db: Option<Database>,
    home: Home,
    /// Number of rows in the catalog.
    defined: u64,
    /// What committed transactions have seen, and at which timestamp.
    settled: Vec<(String, u64, Seen)>,
    commits: u64,
    reopened: u64,
}

impl Runner {
    pub fn new(mut home: Home, seed: u64) -> Self {
        let db = home.open();
        let tables = definitions().map(|def| db.create_table(def).expect("a table")).to_vec();
        Self {
            rng: Decisions::random(seed),
            model: Model::default(),
            open: Vec::new(),
            tables,
            extra: None,
            long: Vec::new(),
            pulse: None,
            collected: Collected::default(),
            home,
            defined: db.stats().tuples,
            db: Some(db),
            settled: Vec::new(),
            commits: 0,
            reopened: 0,
        }
    }

    /// Takes its decisions from these bytes instead of at random.
    pub fn deciding_by(mut self, bytes: &[u8]) -> Self {
        self.rng = Decisions::of_bytes(bytes);
        self
    }

    /// Lets the collector work from time to time, beside long readers.
    pub fn collecting(mut self) -> Self {
        let def = TableDef::new(PULSE).column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
        let pulse = self.db().create_table(def).expect("a table");
        let_collect(self.db(), &pulse, Duration::ZERO);
        self.pulse = Some(pulse);
        self.defined = self.db().stats().tuples;
        self
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("it is open")
    }

    pub fn step(&mut self) {
        if self.pulse.is_some() && self.rng.percent(8) {
            return self.collect_step();
        }
        let few = self.open.len() < MOST_OPEN;
        match self.rng.below(1000) {
            0..4 => self.reopen(),
            4..10 => self.toggle_index(),
            10..130 if few => self.begin(),
            _ if self.open.is_empty() => self.begin(),
            dice => {
                let n = self.rng.index(self.open.len());
                if dice % 3 == 0 {
                    self.open[n].txn.end_statement();
                }
                // Reports stay open for a long time.
                let ends = self.open[n].access == Access::ReadWrite || self.rng.percent(15);
                match dice {
                    130..230 if ends => self.commit(n),
                    230..270 if ends => self.rollback(n),
                    270..330 => self.savepoint(n),
                    330..370 => self.rollback_to(n),
                    _ => self.operate(n),
                }
            }
        }
    }

    fn collect_step(&mut self) {
        match self.rng.below(100) {
            0..35 => self.let_collect(),
            35..50 if self.long.len() < MOST_LONG => self.begin_long(),
            _ if self.long.is_empty() => {}
            50..57 => {
                let n = self.rng.index(self.long.len());
                self.check_long(n);
                let _ = self.long.swap_remove(n);
            }
            _ => {
                let n = self.rng.index(self.long.len());
                self.check_long(n);
            }
        }
    }

    /// Gives the collector time, some of it without writers, which delay the
    /// durable watermark, and without old readers, which keep survivors.
    fn let_collect(&mut self) {
        let quiet = self.rng.below(100);
        if quiet < 40 {
            while let Some(n) = self.open.iter().position(|o| o.access == Access::ReadWrite || quiet < 25) {
                self.rollback(n);
            }
        }
        if quiet < 25 {
            (0..self.long.len()).for_each(|n| self.check_long(n));
            self.long.clear();
        }
        self.open.iter_mut().for_each(|o| o.alone = false);
        let time = Duration::from_millis(self.rng.below(8));
        let_collect(self.db(), self.pulse.as_ref().expect("it is made"), time);
        if self.rng.percent(20) {
            let chains = self.db().chains(1_000);
            assert!(chains.mean.is_finite() && chains.mean <= chains.max as f64, "{chains:?}");
        }
    }

    fn begin_long(&mut self) {
        let options = match self.rng.below(5) {
            0 => abort_at(Isolation::Serializable).read_only(true),
            1 => abort_at(Isolation::Serializable).safe_snapshot(),
            2 => abort_at(Isolation::ReadCommitted),
            3 => abort_at(Isolation::ReadCommitted).read_only(true),
            _ => abort_at(Isolation::Snapshot),
        };
        let access = if options == options.safe_snapshot() { Access::Safe } else { Access::ReadOnly };
        let txn = self.db().begin_with(options).expect("a transaction");
        self.open.iter_mut().for_each(|o| o.alone = false);
        let open = Open {
            txn,
            access,
            own: Rc::default(),
            saves: Vec::new(),
            dead: Vec::new(),
            seen: Vec::new(),
            alone: false,
            indexed: false,
        };
        self.long.push((open, Vec::new()));
    }

    /// Repeats a query that the reader has made before and makes a new one, and
    /// from time to time reads a whole table.
    fn check_long(&mut self, n: usize) {
        self.open.iter_mut().for_each(|o| o.alone = false);
        let new = if self.rng.percent(30) { self.whole_table() } else { self.random_query() };
        self.long[n].1.push(new);
        if self.long[n].1.len().is_multiple_of(3) {
            self.long[n].0.txn.end_statement();
        }
        let (open, queries) = &self.long[n];
        for query in queries.iter().rev().take(12) {
            // An index that has been dropped since is not maintained.
            if matches!(query, Query::Scan { index: Some(index), .. }
                if index.name == EXTRA.name && self.extra.is_none())
            {
                continue;
            }
            match self.ask(&open.txn, query) {
                Ok(got) => {
                    let expected = self.model.answer(query, open.view(), &open.own);
                    self.model.check(query, &expected, &got, &("long", &open.txn));
                }
                Err(error) => {
                    assert!(is_conflict(&error) && open.access != Access::Safe, "{query:?}: {error}");
                }
            }
        }
    }

    fn whole_table(&mut self) -> Query {
        Query::Scan { table: self.rng.index(LAYOUTS.len()), index: None, range: Span::prefix(Vec::new()) }
    }

    /// Records what the collector has done in this opening.
    fn note_collected(&mut self) {
        let stats = self.db().stats().collector;
        self.collected += Collected {
            reclaimed: stats.versions_reclaimed,
            bypassed: stats.blocks_bypassed,
            relocated: stats.survivors_relocated,
            tiles_dropped: stats.tiles_dropped,
            tombstones_dropped: stats.tombstones_dropped,
        };
    }

    fn begin(&mut self) {
        let access = *self.rng.pick(&[
            Access::ReadWrite,
            Access::ReadWrite,
            Access::ReadWrite,
            Access::ReadWrite,
            Access::ReadOnly,
            Access::Safe,
        ]);
        // Mostly serializable.
        let level = if self.rng.percent(60) { Isolation::Serializable } else { *self.rng.pick(&LEVELS) };
        let options = match access {
            Access::ReadWrite => abort_at(level),
            Access::ReadOnly => abort_at(level).read_only(true),
            Access::Safe => abort_at(level).safe_snapshot(),
        };
        let txn = self.db().begin_with(options).expect("a transaction");
        let alone = self.open.is_empty() && self.long.is_empty();
        if access == Access::Safe {
            let writers = self.open.iter().filter(|o| o.access == Access::ReadWrite && o.is_serializable());
            writers.for_each(|writer| assert!(txn.timestamp() < writer.txn.timestamp()));
        } else {
            assert!(
                txn.timestamp().get() > self.model.highest(),
                "the timestamp is above everything committed"
            );
        }
        self.open.iter_mut().for_each(|o| o.alone = false);
        self.open.push(Open {
            txn,
            access,
            own: Rc::default(),
            saves: Vec::new(),
            dead: Vec::new(),
            seen: Vec::new(),
            alone,
            indexed: false,
        });
    }

    fn commit(&mut self, n: usize) {
        let Open { txn, own, mut seen, access, indexed, alone, .. } = self.open.swap_remove(n);
        let (begun, level) = (txn.timestamp(), txn.isolation());
        let who = format!("{access:?} {level:?}");
        let ts = match txn.commit() {
            Ok(ts) => ts,
            Err(error) if indexed && is_conflict(&error) => return,
            Err(Error::Conflict { conflict: Conflict::ReadChanged, .. }) if !alone => return,
            Err(error) => panic!("conflicts show before: {error}"),
        };
        self.model.commit(ts.get(), &own);
        self.commits += 1;
        if level == Isolation::Serializable && access != Access::Safe {
            // It may have moved. What it has seen holds there as well.
            assert!(ts >= begun && (ts == begun || !alone), "it moves only behind others");
            self.settled.extend(seen.iter().cloned().map(|s| (who.clone(), ts.get(), s)));
        }
        if level != Isolation::ReadCommitted || access == Access::Safe {
            self.settled.extend(seen.drain(..).map(|s| (who.clone(), begun.get(), s)));
        }
    }

    fn rollback(&mut self, n: usize) {
        let open = self.open.swap_remove(n);
        if self.rng.percent(50) {
            open.txn.rollback();
        }
    }

    fn savepoint(&mut self, n: usize) {
        let open = &mut self.open[n];
        let savepoint = open.txn.savepoint();
        open.saves.push((savepoint, Rc::clone(&open.own)));
    }

    fn rollback_to(&mut self, n: usize) {
        let foreign = self.open.iter().filter_map(|o| o.saves.last()).map(|s| s.0).next();
        let open = &mut self.open[n];
        let foreign = foreign.filter(|f| open.saves.iter().all(|(s, _)| s != f) && !open.dead.contains(f));
        for dead in open.dead.iter().copied().chain(foreign) {
            assert!(matches!(open.txn.rollback_to(dead), Err(Error::UnknownSavepoint)), "{dead:?}");
        }
        if open.saves.is_empty() {
            return;
        }
        let at = self.rng.index(open.saves.len());
        open.txn.rollback_to(open.saves[at].0).expect("a savepoint of this transaction");
        open.own = Rc::clone(&open.saves[at].1);
        open.dead.extend(open.saves.drain(at + 1..).map(|(s, _)| s));
    }

    fn toggle_index(&mut self) {
        let db = self.db().clone();
        match self.extra.take() {
            Some(old) => {
                db.drop_index(&self.tables[0], EXTRA.name).expect("the index is there");
                assert!(self.tables[0].index(EXTRA.name).is_err());
                if let Some(open) = self.open.first() {
                    let scan = open.txn.scan_index(&old, pantile::Range::all());
                    assert!(
                        matches!(scan, Err(Error::UnknownIndex { .. })),
                        "the index is no longer maintained"
                    );
                }
            }
            None => {
                self.open.iter_mut().for_each(|o| o.indexed = true);
                let def = IndexDef::new(EXTRA.name, ["tag", "number"]);
                self.extra = Some(db.create_index(&self.tables[0], def).expect("an index"));
            }
        }
    }

    fn reopen(&mut self) {
        self.verify();
        self.note_collected();
        let clean = self.rng.percent(50);
        let mut open = std::mem::take(&mut self.open);
        open.extend(self.long.drain(..).map(|(open, _)| open));
        self.extra = None;
        let pulse = self.pulse.take().is_some();
        self.tables.clear();
        let db = self.db.take().expect("it is open");
        if clean {
            drop(open);
            self.home.close(db);
        } else {
            self.home.kill(db, open.into_iter().map(|o| o.txn).collect());
        }
        let db = self.home.open();
        // A database to which nothing was added since it was opened stays closed.
        assert!(db.recovery().was_closed == clean || db.recovery().from_image);
        let tables: Vec<String> = db.tables().into_iter().filter(|name| name != PULSE).collect();
        assert_eq!(tables, ["large", "narrow", "wide"]);
        self.pulse = pulse.then(|| db.table(PULSE).expect("the table is there"));
        self.tables = LAYOUTS.map(|l| db.table(l.name).expect("the table is there")).to_vec();
        self.extra = self.tables[0].index(EXTRA.name).ok();
        self.db = Some(db);
        self.reopened += 1;
        self.check_settled();
        self.verify();
    }

    /// What was read stays true, whatever others have committed since.
    fn check_settled(&mut self) {
        for (who, ts, seen) in self.settled.drain(..) {
            // Its own writes, committed at `ts`, were still to come.
            let now = self.model.answer(&seen.query, ts - 1, &seen.own);
            self.model.check(&seen.query, &now, &seen.rows, &who);
        }
    }

    /// Checks that everything committed is there, and nothing else.
    fn verify(&mut self) {
        // Beside other transactions, only a safe snapshot never meets a lock.
        let quiet = self.open.is_empty() && self.long.is_empty();
        let db = self.db();
        let txn = if quiet { db.begin() } else { db.begin_safe_snapshot() }.expect("a transaction");
        let (at, own) = (txn.timestamp().get(), Own::default());
        for (t, layout) in LAYOUTS.iter().enumerate() {
            let extra = self.extra.iter().filter(|_| t == 0).map(|_| Some(EXTRA));
            let indexes = layout.indexes.iter().map(|i| Some(*i)).chain(extra);
            for index in std::iter::once(None).chain(indexes) {
                for reverse in [false, true] {
                    let mut range = Span::prefix(Vec::new());
                    range.reverse = reverse;
                    let query = Query::Scan { table: t, index, range };
                    let got = self.ask(&txn, &query).expect("no conflict");
                    self.model.check(&query, &self.model.answer(&query, at, &own), &got, &"verify");
                }
            }
        }
        txn.commit().expect("nothing to do");
        assert_eq!(self.db().stats().tuples, self.defined + self.model.tuples(), "tuples");
    }

    pub fn finish(mut self) -> Collected {
        self.settle();
        assert!(self.commits > 3, "{} commits, {} openings", self.commits, self.reopened);
        self.collected
    }

    /// Ends all open transactions, and checks that what has been committed is
    /// there.
    pub fn settle(&mut self) {
        self.open.clear();
        self.reopen();
        self.reopen();
        assert_eq!(self.db().stats().running, 0);
    }
}
