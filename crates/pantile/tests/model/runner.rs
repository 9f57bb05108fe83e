//! Transactions begin, end, and survive closing and killing.

use std::rc::Rc;

use pantile::{Database, Error, Index, IndexDef, Isolation, Savepoint, Table, Transaction};

use crate::rows::{EXTRA, LAYOUTS, definitions};
use crate::state::{Model, Own, Query, Seen, Span};
use crate::support::{Bed, Home, LEVELS, Rng, abort_at, is_conflict};

/// Transactions open at once.
const MOST_OPEN: usize = 6;

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
    /// No other has run beside it, so nothing may stand in its way.
    pub alone: bool,
    /// An index was made meanwhile, so that its commit may meet conflicts.
    pub indexed: bool,
}

impl Open {
    /// Where it reads.
    pub fn view(&self) -> u64 {
        match self.txn.isolation() {
            Isolation::ReadCommitted if self.access != Access::Safe => u64::MAX,
            _ => self.txn.timestamp().get(),
        }
    }

    /// Where it looks for others that have a unique key.
    pub fn unique_view(&self) -> u64 {
        if self.is_serializable() { self.view() } else { u64::MAX }
    }

    pub fn is_serializable(&self) -> bool {
        self.txn.isolation() == Isolation::Serializable
    }
}

pub struct Runner {
    pub rng: Rng,
    pub model: Model,
    pub open: Vec<Open>,
    pub tables: Vec<Table>,
    pub extra: Option<Index>,
    db: Option<Database>,
    home: Home,
    /// Rows of the catalog.
    defined: u64,
    /// What committed transactions have seen, and where.
    settled: Vec<(String, u64, Seen)>,
    commits: u64,
    reopened: u64,
}

impl Runner {
    pub fn new(bed: Bed, seed: u64) -> Self {
        let mut home = Home::new(bed).collect_by_seed(seed);
        let db = home.open();
        let tables = definitions().map(|def| db.create_table(def).expect("a table")).to_vec();
        Self {
            rng: Rng::new(seed),
            model: Model::default(),
            open: Vec::new(),
            tables,
            extra: None,
            home,
            defined: db.stats().tuples,
            db: Some(db),
            settled: Vec::new(),
            commits: 0,
            reopened: 0,
        }
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("it is open")
    }

    pub fn step(&mut self) {
        let few = self.open.len() < MOST_OPEN;
        match self.rng.below(1000) {
            0..4 => self.reopen(),
            4..10 => self.toggle_index(),
            10..130 if few => self.begin(),
            _ if self.open.is_empty() => self.begin(),
            dice => {
                let n = self.rng.index(self.open.len());
                // Reports stay open for long.
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
        let alone = self.open.is_empty();
        if access == Access::Safe {
            let writers = self.open.iter().filter(|o| o.access == Access::ReadWrite && o.is_serializable());
            writers.for_each(|writer| assert!(txn.timestamp() < writer.txn.timestamp()));
        } else {
            assert!(txn.timestamp().get() > self.model.highest(), "above all that is committed");
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
        let Open { txn, own, mut seen, access, indexed, .. } = self.open.swap_remove(n);
        let (begun, level) = (txn.timestamp(), txn.isolation());
        let who = format!("{access:?} {level:?}");
        let ts = match txn.commit() {
            Ok(ts) => ts,
            Err(error) if indexed && is_conflict(&error) => return,
            Err(error) => panic!("conflicts show before: {error}"),
        };
        if level == Isolation::Serializable {
            assert_eq!(ts, begun, "serializable transactions write where they read");
        }
        self.model.commit(ts.get(), &own);
        self.commits += 1;
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
                    assert!(matches!(scan, Err(Error::UnknownIndex { .. })), "nobody keeps it up any more");
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
        let clean = self.rng.percent(50);
        let open = std::mem::take(&mut self.open);
        self.extra = None;
        self.tables.clear();
        let db = self.db.take().expect("it is open");
        if clean {
            drop(open);
            self.home.close(db);
        } else {
            self.home.kill(db, open.into_iter().map(|o| o.txn).collect());
        }
        let db = self.home.open();
        assert_eq!(db.recovery().was_closed, clean);
        assert_eq!(db.tables(), ["large", "narrow", "wide"]);
        self.tables = LAYOUTS.map(|l| db.table(l.name).expect("the table is there")).to_vec();
        self.extra = self.tables[0].index(EXTRA.name).ok();
        self.db = Some(db);
        self.reopened += 1;
        self.check_settled();
        self.verify();
    }

    /// What was read stays true, whoever has committed since.
    fn check_settled(&mut self) {
        for (who, ts, seen) in self.settled.drain(..) {
            // Its own writes, committed at `ts`, were yet to come.
            let now = self.model.answer(&seen.query, ts - 1, &seen.own);
            self.model.check(&seen.query, &now, &seen.rows, &who);
        }
    }

    /// Everything committed is there, and nothing else.
    fn verify(&mut self) {
        // Beside others only a safe snapshot is sure not to meet a lock.
        let quiet = self.open.is_empty();
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
                    let got = self.ask(&txn, &query).expect("nothing stands in the way");
                    self.model.check(&query, &self.model.answer(&query, at, &own), &got, &"verify");
                }
            }
        }
        txn.commit().expect("nothing to do");
        assert_eq!(self.db().stats().tuples, self.defined + self.model.tuples(), "tuples");
    }

    pub fn finish(mut self) {
        self.open.clear();
        self.reopen();
        self.reopen();
        assert_eq!(self.db().stats().running, 0);
        assert!(self.commits > 3, "{} commits, {} openings", self.commits, self.reopened);
    }
}
