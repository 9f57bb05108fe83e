//! Power cuts at every moment. What was acknowledged is there. Of a transaction
//! that was not acknowledged, all or nothing is there. Recovery finds the same
//! however often it is interrupted (I-7, I-8, I-9; traps T1, T2, T5, T16).
//!
//! `PANTILE_CUT_SEED` and `PANTILE_CUT_LIVES` set another seed and more lives.

use std::collections::BTreeMap;
use std::sync::Arc;

use pantile::{Database, IndexDef, Medium, Options, Range, TableDef, Timestamp, Type, Value};
use pantile_testkit::cut::{Broken, CutKind, CutMedium, Image, Keep};
use pantile_testkit::{Patience, Random, eager, from_env};

/// Tables by name, rows by key.
type State = BTreeMap<String, BTreeMap<u64, (u64, Vec<u8>)>>;

/// The events at which a step began and was acknowledged, and its timestamp.
struct Step {
    began: usize,
    ended: usize,
    ts: Timestamp,
}

/// What a client has done: its steps, and the states before, between and after
/// them.
struct Client {
    name: String,
    random: Random,
    tables_made: u64,
    states: Vec<State>,
    steps: Vec<Step>,
    /// Timestamps must stay above what earlier lives acknowledged.
    floor: Timestamp,
    /// Changes the same few small rows again and again, and rarely a table.
    churns: bool,
}

impl Client {
    fn new(name: &str, seed: u64) -> Self {
        let (random, floor) = (Random::new(seed, 0), Timestamp::ZERO);
        let (states, steps) = (vec![State::new()], Vec::new());
        Self { name: name.into(), random, tables_made: 0, states, steps, floor, churns: false }
    }

    /// Runs one step and records its acknowledgement.
    fn step(&mut self, db: &Database, events: impl Fn() -> usize) {
        let mut state = self.states.last().expect("a state").clone();
        let began = events();
        let mut ts = Timestamp::ZERO;
        let dice = self.random.below(if self.churns { 600 } else { 8 });
        match (state.len(), dice) {
            (0 | 1, _) | (2 | 3, 0) => {
                self.tables_made += 1;
                let fresh = format!("{}{}", self.name, self.tables_made);
                let def = TableDef::new(&fresh).column("k", Type::U64).column("v", Type::U64);
                let def = def.column("data", Type::Bytes(200_000)).primary_key(["k"]);
                db.create_table(def.index(IndexDef::new("by_v", ["v"]))).expect("create");
                state.insert(fresh, BTreeMap::new());
            }
            (3.., 1) => {
                let at = self.random.below(state.len() as u64) as usize;
                let name = state.keys().nth(at).expect("a table").clone();
                db.drop_table(&name).expect("drop");
                state.remove(&name);
            }
            _ => ts = self.transaction(db, &mut state),
        }
        self.states.push(state);
        self.steps.push(Step { began, ended: events(), ts });
    }

    fn transaction(&mut self, db: &Database, state: &mut State) -> Timestamp {
        let mut edited = state.clone();
        let random = self.random.clone();
        let ts = db.run(|txn| {
            edited.clone_from(state);
            let mut random = random.clone();
            for _ in 0..1 + random.below(6) {
                let at = random.below(edited.len() as u64) as usize;
                let (name, rows) = edited.iter_mut().nth(at).expect("a table");
                let table = db.table(name)?;
                // Some rows stay for a long time among others that do not.
                let key = if self.churns && random.below(8) > 0 { random.below(3) } else { random.below(12) };
                if random.below(4) == 0 {
                    assert_eq!(txn.delete(&table, &[key.into()])?, rows.remove(&key).is_some());
                    continue;
                }
                let len = match random.below(40) {
                    0 if !self.churns => 66_000,
                    _ if self.churns => 4 + random.below(30),
                    _ => 4 + random.below(300),
                };
                let row = (random.below(5), vec![random.below(250) as u8 + 1; len as usize]);
                txn.upsert(&table, &[key.into(), row.0.into(), Value::Bytes(&row.1)])?;
                rows.insert(key, row);
            }
            Ok::<_, pantile::Error>(txn.timestamp())
        });
        self.random.word();
        let ts = ts.expect("commit");
        // A transaction that changes nothing leaves nothing on the medium, so
        // the clock need not know its timestamp after a cut (T5).
        let has_changed = *state != edited;
        *state = edited;
        if has_changed { ts } else { Timestamp::ZERO }
    }

    /// The index of the state that must be there after a cut, and whether the
    /// next may be.
    fn expected(&self, cut: usize) -> (usize, bool) {
        let acknowledged = self.steps.iter().take_while(|step| step.ended <= cut).count();
        (acknowledged, self.steps.get(acknowledged).is_some_and(|step| step.began < cut))
    }

    /// The highest timestamp acknowledged before a cut.
    fn highest(&self, cut: usize) -> Timestamp {
        let acknowledged = self.steps.iter().filter(|step| step.ended <= cut);
        acknowledged.map(|step| step.ts).fold(self.floor, Timestamp::max)
    }

    /// Continues from the state that a cut has left.
    fn go_on(&mut self, state: usize, cut: usize) {
        self.floor = self.highest(cut);
        self.states = vec![self.states.swap_remove(state)];
        self.steps.clear();
    }
}

fn open(medium: &Arc<CutMedium>) -> Result<Database, String> {
    open_with(medium, Options::new().streams(2).worker(false))
}

fn open_with(medium: &Arc<CutMedium>, options: Options) -> Result<Database, String> {
    let medium = Arc::clone(medium) as Arc<dyn Medium>;
    let options = options.on_medium(medium).recovery_threads(1);
    options.open("nowhere").map_err(|error| error.to_string())
}

/// All rows, read by the primary key and by the secondary index.
fn dump(db: &Database) -> Result<State, String> {
    let read = || -> pantile::Result<State> {
        let txn = db.begin_read()?;
        let mut state = State::new();
        for name in db.tables() {
            let table = db.table(&name)?;
            let index = table.index("by_v")?;
            let row = |row: pantile::Row<'_>| {
                Ok((row.get(0)?, (row.get(1)?, row.get::<Option<Vec<u8>>>(2)?.unwrap_or_default())))
            };
            let rows = txn.scan(&table, Range::all())?.map(|r| row(r?)).collect::<pantile::Result<_>>()?;
            let indexed: BTreeMap<u64, (u64, Vec<u8>)> =
                txn.scan_index(&index, Range::all())?.map(|r| row(r?)).collect::<pantile::Result<_>>()?;
            assert_eq!(indexed, rows, "the index of {name} and the table differ");
            state.insert(name, rows);
        }
        Ok(state)
    };
    read().map_err(|error| error.to_string())
}

/// Opens what a cut has left; returns the state of each client that is there.
fn check(medium: &Arc<CutMedium>, clients: &[Client], cut: usize) -> Result<Vec<usize>, String> {
    let db = open(medium)?;
    let found = dump(&db)?;
    let mut outcome = Vec::new();
    for client in clients {
        let own = |name: &String| name.starts_with(&client.name);
        let found: State =
            found.iter().filter(|(n, _)| own(n)).map(|(n, r)| (n.clone(), r.clone())).collect();
        let (least, more) = client.expected(cut);
        let fits = (least..=least + usize::from(more)).find(|&n| client.states[n] == found);
        outcome.push(
            fits.ok_or_else(|| format!("client {} has lost step {least} or a part of it", client.name))?,
        );
        let next = db.begin().map_err(|error| error.to_string())?.timestamp();
        if next <= client.highest(cut) {
            return Err(format!("the clock went back to {next}"));
        }
    }
    Ok(outcome)
}

/// Clients at work on one medium, which is opened and closed `sessions` times.
fn work(medium: &Arc<CutMedium>, clients: &mut [Client], sessions: usize, steps: usize) {
    for _ in 0..sessions {
        let db = open(medium).expect("open");
        std::thread::scope(|scope| {
            for client in &mut *clients {
                let (db, medium) = (db.clone(), Arc::clone(medium));
                scope.spawn(move || (0..steps).for_each(|_| client.step(&db, || medium.events())));
            }
        });
        db.close().expect("close");
    }
}

/// Clients that churn beside a collector that is as eager as possible, until it
/// has emptied and freed enough blocks for the same ones to be used again, some
/// of them bypassed by a reader. Returns how many.
fn churn(medium: &Arc<CutMedium>, clients: &mut [Client], seed: u64, blocks: u64) -> (u64, u64) {
    // Blocks of two slots have no survivors.
    let options = eager(Options::new(), seed).block_slots(4 + 2 * (seed % 3) as u32);
    let db = open_with(medium, options).expect("open");
    clients.iter_mut().for_each(|client| client.churns = true);
    std::thread::scope(|scope| {
        for client in &mut *clients {
            let (db, medium) = (db.clone(), Arc::clone(medium));
            scope.spawn(move || {
                let (mut reader, patience) = (None, Patience::new());
                for round in 0.. {
                    (0..48).for_each(|_| client.step(&db, || medium.events()));
                    let done = db.stats().collector;
                    let has = |part| {
                        done.blocks_reclaimed >= blocks / part
                            && done.survivors_relocated >= blocks / part / 10
                    };
                    // Settings that reclaim little run until a quarter of that
                    // is reached.
                    if has(if round < 4 * blocks { 1 } else { 4 }) {
                        return;
                    }
                    patience.check(|| format!("hardly anything is reclaimed: {done:#?}"));
                    // Long readers come and go.
                    reader = match reader {
                        Some(_) => None,
                        None => client.random.below(3).eq(&0).then(|| db.begin_read().expect("begin")),
                    };
                }
            });
        }
    });
    let done = db.stats().collector;
    println!(
        "{} blocks, {} survivors, {} events",
        done.blocks_reclaimed,
        done.survivors_relocated,
        medium.events()
    );
    // Not closed: more is under way at a cut than after a close.
    (done.blocks_reclaimed, done.survivors_relocated)
}

fn one_client(kind: CutKind, broken: Option<Broken>, steps: usize) -> (Arc<CutMedium>, [Client; 1]) {
    let seed = from_env("PANTILE_CUT_SEED", 7);
    println!("PANTILE_CUT_SEED={seed}");
    let medium = CutMedium::new(&Image::default(), kind, broken);
    let mut clients = [Client::new("a", seed)];
    work(&medium, &mut clients, 2, steps);
    (medium, clients)
}

#[test]
fn every_moment_of_a_run_can_be_the_last() {
    CutKind::ALL.into_iter().for_each(try_every_moment);
}

fn try_every_moment(kind: CutKind) {
    let (medium, clients) = one_client(kind, None, 14);
    let fences = medium.persists();
    let mut tried = 0;
    for cut in 0..=medium.events() {
        let at_fence = fences.contains(&cut);
        // Pieces of a long value all look alike, so a few of them are enough.
        let modes =
            if at_fence { &Keep::ALL[..] } else { &Keep::ALL[2 + cut % 3..][..usize::from(cut % 29 == 0)] };
        for (n, &keep) in modes.iter().enumerate() {
            let found = check(&medium.after_cut(cut, keep, (cut * 5 + n) as u64), &clients, cut);
            found.unwrap_or_else(|why| panic!("cut at {cut} of {}, {keep:?}: {why}", medium.events()));
            tried += 1;
        }
    }
    println!("{tried} images of {} events, {} fences", medium.events(), fences.len());
    assert!(tried > 200);
}

/// Moments of a run: each of the first few after a fence that made something
/// durable in a chunk's first page, and others at random.
fn moments(medium: &CutMedium, random: &mut Random, most: usize) -> Vec<usize> {
    let mut moments = medium.changes_of_blocks();
    let surplus = moments.len().saturating_sub(most / 2);
    (0..surplus).for_each(|_| _ = moments.swap_remove(random.below(moments.len() as u64) as usize));
    let others = most - moments.len();
    moments.extend((0..others).map(|_| random.below(medium.events() as u64 + 1) as usize));
    moments.sort_unstable();
    moments
}

/// The same where blocks are emptied, freed and reused all the time (T1 to T4,
/// T12), with recoveries that are also cut.
#[test]
fn every_moment_of_collecting_can_be_the_last() {
    let seed = from_env("PANTILE_CUT_SEED", 5);
    let rounds = from_env("PANTILE_CUT_ROUNDS", 3);
    println!("PANTILE_CUT_SEED={seed} PANTILE_CUT_ROUNDS={rounds}");
    for seed in seed..seed + rounds {
        let mut random = Random::new(seed, 0);
        let medium = CutMedium::new(&Image::default(), CutKind::ALL[seed as usize % 2], None);
        let mut clients = [Client::new("a", random.word()), Client::new("b", random.word())];
        let clients = &mut clients[..1 + seed as usize % 2];
        let (reclaimed, relocated) = churn(&medium, clients, seed, 200);
        // As much as `churn` waits for at least.
        assert!(reclaimed >= 50 && relocated >= 5, "the collector hardly worked: {reclaimed}, {relocated}");
        for cut in moments(&medium, &mut random, 120) {
            let keep = Keep::ALL[random.below(5) as usize];
            let first = medium.after_cut(cut, keep, random.word());
            let found = check(&first, clients, cut);
            let found = found.unwrap_or_else(|why| panic!("seed {seed}, cut at {cut}, {keep:?}: {why}"));
            if random.below(8) == 0 {
                let again = random.below(first.events() as u64 + 1) as usize;
                let second = first.after_cut(again, keep, random.word());
                assert_eq!(check(&second, clients, cut), Ok(found), "seed {seed}, cut at {cut} and {again}");
            }
        }
    }
}

/// The next life continues the collector's work.
#[test]
fn one_collecting_life_after_the_other() {
    let seed = from_env("PANTILE_CUT_SEED", 11);
    let lives = from_env("PANTILE_CUT_LIVES", 12);
    println!("PANTILE_CUT_SEED={seed} PANTILE_CUT_LIVES={lives}");
    let mut random = Random::new(seed, 0);
    let mut image = Image::default();
    let mut clients = [Client::new("a", random.word()), Client::new("b", random.word())];
    let mut reclaimed = 0;
    for life in 0..lives {
        let medium = CutMedium::new(&image, CutKind::ALL[life as usize % 2], None);
        reclaimed += churn(&medium, &mut clients, seed + life / 4, 1 + random.below(60)).0;
        let cut = random.below(medium.events() as u64 + 1) as usize;
        let keep = Keep::ALL[random.below(5) as usize];
        let choice = random.word();
        image = medium.cut(cut, keep, choice);
        let outcome = check(&medium.after_cut(cut, keep, choice), &clients, cut)
            .unwrap_or_else(|why| panic!("life {life}, cut at {cut}, {keep:?}: {why}"));
        clients.iter_mut().zip(outcome).for_each(|(client, state)| client.go_on(state, cut));
    }
    assert!(reclaimed > 5 * lives, "{reclaimed} blocks in {lives} lives");
}

#[test]
fn recovery_can_be_cut_as_well_and_finds_the_same() {
    let (medium, clients) = one_client(CutKind::ALL[from_env("PANTILE_CUT_SEED", 7) as usize % 2], None, 16);
    let mut random = Random::new(clients[0].random.clone().word(), 0);
    let mut tried = 0;
    for _ in 0..14 {
        let cut = random.below(medium.events() as u64 + 1) as usize;
        let keep = Keep::ALL[random.below(5) as usize];
        let first = medium.after_cut(cut, keep, random.word());
        let outcome = check(&first, &clients, cut).unwrap_or_else(|why| panic!("{cut} {keep:?}: {why}"));
        let step = first.events() / 12 + 1;
        for again in (0..=first.events()).step_by(step) {
            let keep = Keep::ALL[(again / step) % 5];
            let second = first.after_cut(again, keep, random.word());
            let found = check(&second, &clients, cut);
            assert_eq!(found.as_ref(), Ok(&outcome), "cut at {cut}, in recovery at {again}, {keep:?}");
            tried += 1;
        }
    }
    println!("{tried} interrupted recoveries");
}

#[test]
fn one_life_after_the_other() {
    let seed = from_env("PANTILE_CUT_SEED", 11);
    let lives = from_env("PANTILE_CUT_LIVES", 12);
    println!("PANTILE_CUT_SEED={seed} PANTILE_CUT_LIVES={lives}");
    let mut random = Random::new(seed, 0);
    for _chain in 0..4 {
        let mut image = Image::default();
        let mut clients = [Client::new("a", random.word()), Client::new("b", random.word())];
        for life in 0..lives {
            let medium = CutMedium::new(&image, CutKind::ALL[life as usize % 2], None);
            work(&medium, &mut clients, 1, 6);
            let cut = random.below(medium.events() as u64 + 1) as usize;
            let keep = Keep::ALL[random.below(5) as usize];
            let choice = random.word();
            image = medium.cut(cut, keep, choice);
            let outcome = check(&medium.after_cut(cut, keep, choice), &clients, cut)
                .unwrap_or_else(|why| panic!("life {life}, cut at {cut}, {keep:?}: {why}"));
            clients.iter_mut().zip(outcome).for_each(|(client, state)| client.go_on(state, cut));
        }
    }
}

/// What fails first when a medium breaks its promises.
fn first_loss(kind: CutKind, broken: Option<Broken>) -> Option<String> {
    let (medium, clients) = one_client(kind, broken, 8);
    let cuts = (0..=medium.events()).rev().step_by(7);
    cuts.flat_map(|cut| [(cut, Keep::Nothing), (cut, Keep::Lines)])
        .find_map(|(cut, keep)| check(&medium.after_cut(cut, keep, cut as u64), &clients, cut).err())
}

#[test]
fn a_medium_that_breaks_its_promises_is_caught() {
    let broken = [
        (CutKind::Memory, Broken::Fence),
        (CutKind::Memory, Broken::FlushOfContents),
        (CutKind::Memory, Broken::FlushOfDescriptors),
        (CutKind::File, Broken::Sync),
    ];
    for (kind, broken) in broken {
        let loss = first_loss(kind, Some(broken));
        println!("{kind:?}, {broken:?}: {loss:?}");
        assert!(loss.is_some(), "{broken:?} was not noticed");
    }
    for kind in CutKind::ALL {
        assert_eq!(first_loss(kind, None), None);
    }
}
