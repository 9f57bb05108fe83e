//! Power cuts beside two-phase commits: random lives, in which transactions are
//! prepared, committed, published and rolled back beside ordinary ones, are cut at many
//! places. Whatever has been acknowledged is there; what is prepared has its locks and
//! can be decided; and sums over rows that many have changed agree with those that count.
//!
//! `PANTILE_CUT_LIVES` sets the number of lives, `PANTILE_CUT_SEED` the first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{
    ConflictPolicy, Database, Error, GcOptions, InFlight, IndexDef, Isolation, Medium, Options,
    PreparedTransaction, Range, Table, TableDef, TransactionOptions, Type, Value,
};
use pantile_testkit::cut::{CutKind, CutMedium, Image, Keep};
use pantile_testkit::{Random, from_env, mix};

const LEVELS: [Isolation; 3] = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];
/// Rows that many transactions add to, and rows that are there to be deleted.
const SHARED: u64 = 4;
const STOCK: std::ops::Range<u64> = 100..150;
/// The first row of a transaction's own, and their number.
const OWN: u64 = 1_000;
const EACH: u64 = 3;
const STEPS: u64 = 60;
const CUTS: usize = 40;

/// A transaction, by the numbers of events at which things have happened; never is the
/// end of time.
struct Part {
    number: u64,
    adds: Vec<u64>,
    deletes: Option<u64>,
    /// Preparing, if it was prepared.
    prepared: Option<(usize, usize)>,
    /// It has read what was in flight.
    depends: bool,
    commits: bool,
    decided: (usize, usize),
}

const NEVER: usize = usize::MAX;

impl Part {
    fn name(&self) -> Vec<u8> {
        self.number.to_be_bytes().to_vec()
    }

    fn may_be_prepared(&self, cut: usize) -> bool {
        self.prepared.is_some_and(|(began, _)| began < cut) && self.decided.1 > cut
    }

    fn may_be_committed(&self, cut: usize) -> bool {
        self.commits && self.decided.0 < cut
    }

    fn may_be_absent(&self, cut: usize) -> bool {
        match self.prepared {
            Some((_, ended)) => ended > cut || !self.commits && self.decided.0 < cut,
            None => !self.commits || self.decided.1 > cut,
        }
    }
}

fn options(medium: &Arc<CutMedium>, time: &SimulatedTime) -> Options {
    let gc = GcOptions { epoch: Duration::from_micros(500), ..GcOptions::default() };
    let options =
        Options::new().on_medium(Arc::clone(medium) as Arc<dyn Medium>).simulated_time(time.clone());
    options.gc(gc).block_slots(8).streams(2).recovery_threads(1)
}

fn definition() -> TableDef {
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64);
    let def = def.column("data", Type::Bytes(200_000)).primary_key(["id"]);
    def.index(IndexDef::new("by_n", ["n"]))
}

struct Life {
    medium: Arc<CutMedium>,
    parts: Vec<Part>,
    /// Events until its first rows were there.
    filled: usize,
}

struct Running<'r> {
    db: &'r Database,
    table: &'r Table,
    medium: &'r CutMedium,
    random: Random,
    parts: Vec<Part>,
    open: Vec<(usize, PreparedTransaction)>,
    flights: Vec<(usize, InFlight)>,
    /// What was published last has added to this row, and nothing has been synced since.
    published: Option<u64>,
}

impl Running<'_> {
    /// One transaction, up to its commit or until it is prepared.
    fn begin(&mut self) -> pantile::Result<()> {
        let number = self.parts.len() as u64;
        let level = *self.random.pick(&LEVELS);
        let options = TransactionOptions::new().isolation(level).conflict(ConflictPolicy::Abort);
        let mut txn = self.db.begin_with(options)?;
        let mut adds = Vec::new();
        let met = self.published.take();
        for key in 0..SHARED {
            if met == Some(key) || self.random.one_in(3) {
                txn.modify(self.table, &[key.into()], |row| {
                    let n: u64 = row.get(1)?;
                    row.set(1, (n + 1).into())?;
                    Ok(true)
                })?;
                adds.push(key);
            }
        }
        let stock = STOCK.start + self.random.below(STOCK.end - STOCK.start);
        let deletes = if self.random.one_in(3) {
            txn.delete(self.table, &[stock.into()])?.then_some(stock)
        } else {
            None
        };
        for n in 0..EACH {
            let len = match (met, self.random.one_in(40)) {
                // Its record is short, so that some cuts keep it whole.
                (Some(_), _) => 0,
                (None, true) => 130_000,
                (None, false) => self.random.below(300) as usize,
            };
            let data = vec![number as u8; len];
            txn.insert(self.table, &[(OWN + number * EACH + n).into(), number.into(), Value::Bytes(&data)])?;
        }
        let began = self.medium.events();
        let depends = met.is_some();
        let decided = (NEVER, NEVER);
        let mut part = Part { number, adds, deletes, prepared: None, depends, commits: true, decided };
        if !depends && self.random.one_in(2) {
            // What is in flight may be lost with what has read it.
            if self.random.one_in(2) {
                self.published = part.adds.first().copied();
                self.flights.push((self.parts.len(), txn.publish()?));
                part.decided = (began, NEVER);
            } else {
                txn.commit()?;
                part.decided = (began, self.medium.events());
            }
        } else {
            let prepared = self.db.prepare(txn, &part.name())?;
            part.prepared = Some((began, self.medium.events()));
            part.commits = false;
            self.open.push((self.parts.len(), prepared));
        }
        self.parts.push(part);
        Ok(())
    }

    fn decide(&mut self) {
        let at = self.random.index(self.open.len());
        let (n, prepared) = self.open.swap_remove(at);
        let part = &mut self.parts[n];
        part.decided.0 = self.medium.events();
        match self.random.below(4) {
            0 => prepared.rollback().expect("nothing is in its way"),
            1 => {
                part.commits = true;
                prepared.commit().expect("nothing is in its way");
            }
            _ => {
                part.commits = true;
                self.flights.push((n, prepared.publish().expect("nothing is in its way")));
                return;
            }
        }
        part.decided.1 = self.medium.events();
    }

    fn land(&mut self) {
        let at = self.random.index(self.flights.len());
        let (n, flight) = self.flights.swap_remove(at);
        flight.wait().expect("a sync");
        self.parts[n].decided.1 = self.medium.events();
    }
}

fn live(seed: u64, kind: CutKind) -> Life {
    let medium = CutMedium::new(&Image::default(), kind, None);
    let time = SimulatedTime::default();
    let db = options(&medium, &time).open("simulated").expect("open");
    let table = db.create_table(definition()).expect("a table");
    db.run(|txn| {
        let rows = (0..SHARED).chain(STOCK);
        rows.map(|key| [key.into(), 0u64.into(), Value::Bytes(b"")])
            .try_for_each(|row| txn.insert(&table, &row))
    })
    .expect("a commit");
    let filled = medium.events();
    let mut running = Running {
        db: &db,
        table: &table,
        medium: &medium,
        random: Random::new(seed, 0),
        parts: Vec::new(),
        open: Vec::new(),
        flights: Vec::new(),
        published: None,
    };
    for _ in 0..STEPS {
        time.advance(Duration::from_micros(1 + running.random.below(700)));
        let step = if running.published.is_some() { 7 } else { running.random.below(8) };
        match step {
            0 => drop(db.upkeep()),
            1 | 2 if !running.flights.is_empty() => running.land(),
            1..4 if !running.open.is_empty() => running.decide(),
            _ => match running.begin() {
                Ok(()) | Err(Error::Conflict { .. }) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            },
        }
    }
    let Running { parts, open, flights, .. } = running;
    // Later than all cuts.
    let last = medium.events();
    let life = Life { parts, filled, medium: Arc::clone(&medium) };
    drop((open, flights, table, db));
    // What was done since is no part of it.
    Life { parts: life.parts.into_iter().map(|part| ended_by(part, last)).collect(), ..life }
}

/// What was in flight at the end has not been acknowledged.
fn ended_by(mut part: Part, last: usize) -> Part {
    if part.decided.1 > last {
        part.decided.1 = NEVER;
    }
    part
}

/// The transactions whose rows are there.
fn committed(db: &Database, table: &Table, parts: &[Part], what: &str) -> BTreeSet<u64> {
    let txn = db.begin_read().expect("begin");
    let keys: BTreeSet<u64> = txn
        .scan(table, Range::all())
        .expect("a scan")
        .map(|row| row.expect("a row").get(0).expect("a key"))
        .collect();
    let mut found = BTreeSet::new();
    for part in parts {
        let own = (0..EACH).filter(|n| keys.contains(&(OWN + part.number * EACH + n))).count() as u64;
        assert!(own == 0 || own == EACH, "{what}: {own} rows of transaction {}", part.number);
        if own > 0 {
            found.insert(part.number);
        }
    }
    for key in 0..SHARED {
        let n: u64 = txn.get(table, &[key.into()]).expect("a look-up").expect("a row").get(1).expect("n");
        let adds = |part: &&Part| found.contains(&part.number) && part.adds.contains(&key);
        let expected = parts.iter().filter(adds).count() as u64;
        assert_eq!(n, expected, "{what}: row {key} of {found:?}");
    }
    for part in parts {
        if let Some(stock) = part.deletes.filter(|_| found.contains(&part.number)) {
            assert!(!keys.contains(&stock), "{what}: transaction {} has deleted {stock}", part.number);
        }
    }
    let by_n = table.index("by_n").expect("the index");
    assert_eq!(txn.scan_index(&by_n, Range::all()).expect("a scan").count(), keys.len(), "{what}");
    found
}

fn check(image: &Image, kind: CutKind, life: &Life, cut: usize, random: &mut Random, what: &str, depth: u32) {
    let medium = CutMedium::new(image, kind, None);
    let time = SimulatedTime::default();
    let db = options(&medium, &time).open("simulated").unwrap_or_else(|error| panic!("{what}: {error}"));
    let opened = medium.events();
    if cut < life.filled {
        return;
    }
    let table = db.table("t").expect("the table");
    let mut found = committed(&db, &table, &life.parts, what);
    let names: BTreeSet<Vec<u8>> = db.prepared().into_iter().collect();
    for part in &life.parts {
        let (is_committed, is_prepared) = (found.contains(&part.number), names.contains(&part.name()));
        let is_right = match (is_prepared, is_committed) {
            (true, true) => false,
            (true, false) => part.may_be_prepared(cut),
            (false, true) => part.may_be_committed(cut),
            (false, false) => part.may_be_absent(cut),
        };
        let Part { number, prepared, decided, commits, .. } = part;
        assert!(
            is_right,
            "{what}: transaction {number} is prepared: {is_prepared}, committed: {is_committed}; prepared at \
             {prepared:?}, decided at {decided:?}, commits: {commits}"
        );
    }
    if depth > 0 {
        let again = random.below(opened as u64 + 1) as usize;
        let keep = *random.pick(Keep::of(kind));
        let image = medium.cut(again, keep, random.word() >> 32);
        check(
            &image,
            kind,
            life,
            cut,
            random,
            &format!("{what}, and in the recovery at {again}, {keep:?}"),
            depth - 1,
        );
    }
    // Locks keep others out.
    for name in &names {
        let number = u64::from_be_bytes(name.as_slice().try_into().expect("a name"));
        let options = TransactionOptions::new().isolation(Isolation::ReadCommitted);
        let mut txn = db.begin_with(options.conflict(ConflictPolicy::Abort)).expect("begin");
        let outcome = txn.insert(&table, &[(OWN + number * EACH).into(), 0u64.into(), Value::Bytes(b"")]);
        assert!(matches!(outcome, Err(Error::Conflict { .. })), "{what}: {number} has no locks: {outcome:?}");
    }
    for name in &names {
        let number = u64::from_be_bytes(name.as_slice().try_into().expect("a name"));
        let prepared = db.take_prepared(name).expect("it waits");
        if random.one_in(2) {
            prepared.commit().unwrap_or_else(|error| panic!("{what}: {error}"));
            found.insert(number);
        } else {
            prepared.rollback().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
    assert_eq!(committed(&db, &table, &life.parts, what), found, "{what}: decided");
    drop(table);
    if random.one_in(2) {
        db.close().unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    let left = medium.cut(medium.events(), Keep::Nothing, 0);
    let medium = CutMedium::new(&left, kind, None);
    let db = options(&medium, &time).open("simulated").unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(db.prepared().is_empty(), "{what}: all were decided");
    let table = db.table("t").expect("the table");
    assert_eq!(committed(&db, &table, &life.parts, what), found, "{what}: opened again");
}

#[test]
fn no_cut_loses_what_is_prepared() {
    let lives = from_env("PANTILE_CUT_LIVES", 24);
    let first = from_env("PANTILE_CUT_SEED", 1);
    let mut seen = [0usize; 3];
    for seed in first..first + lives {
        let kind = CutKind::ALL[seed as usize % CutKind::ALL.len()];
        let life = live(seed, kind);
        let mut random = Random::new(mix(seed), 1);
        let (persists, events) = (life.medium.persists(), life.medium.events() as u64);
        // Just before what was written is durable, others may be that were published before.
        let dependent = life.parts.iter().filter(|part| part.depends);
        let preparing: Vec<_> = dependent.filter_map(|part| part.prepared.map(|(_, ended)| ended)).collect();
        for n in 0..CUTS {
            let (cut, keep) = match n % 4 {
                // Just before a record is durable that depends on what is in flight: some
                // of both is there.
                0 if !preparing.is_empty() => {
                    let cut = *random.pick(&preparing) - 1 - random.index(2);
                    (cut, *Keep::of(kind).last().expect("one in pieces"))
                }
                0 | 1 => (*random.pick(&persists), *random.pick(Keep::of(kind))),
                _ => (random.below(events + 1) as usize, *random.pick(Keep::of(kind))),
            };
            let choice = random.word() >> 32;
            let image = life.medium.cut(cut, keep, choice);
            let what = format!("seed {seed}, {kind:?}, cut at {cut}, {keep:?}");
            check(&image, kind, &life, cut, &mut random, &what, 1);
        }
        seen[0] += life.parts.iter().filter(|part| part.prepared.is_none()).count();
        seen[1] += life.parts.iter().filter(|part| part.prepared.is_some() && part.commits).count();
        seen[2] += life.parts.iter().filter(|part| part.prepared.is_some() && !part.commits).count();
    }
    println!("{lives} lives, {} cuts each; {seen:?} ordinary, committed, not committed", CUTS);
    assert!(seen.iter().all(|count| *count as u64 >= lives), "{seen:?}");
}
