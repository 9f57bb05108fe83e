//! T12: the power fails while survivors move and blocks are freed, at every
//! fence and between fences, and again in the recovery that follows.

use pantile::lab::medium_of;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pantile::{Collector, Database, GcOptions, Medium, Options};
use pantile_testkit::{Patience, Random, copy_of, from_env};

use super::rows::{Rows, collect_until, delete, gc, let_epochs_pass, open, options, put, settle};
use pantile_testkit::cut::{CutKind, CutMedium, Image, Keep};

type State = BTreeMap<u64, u64>;

/// A run: what had been acknowledged at each moment of the medium.
struct Run {
    medium: Arc<CutMedium>,
    /// For each transaction, when it began and was acknowledged, and the rows
    /// after it.
    steps: Vec<(usize, usize, State)>,
    /// The rows before all transactions.
    start: State,
}

fn kind_of(seed: u64) -> CutKind {
    CutKind::ALL[seed as usize % 2]
}

fn options_of(seed: u64) -> Options {
    let eager = seed.is_multiple_of(3);
    let collector = if eager { Collector::TB_COLLECT_EAGER } else { Collector::TB_COLLECT };
    Options::new()
        .worker(false)
        .gc(GcOptions { epoch: Duration::from_micros(300), ..gc() })
        .collector(collector)
        .block_slots(4)
        .streams(1)
        .recovery_threads(1)
}

fn open_cut(medium: &Arc<CutMedium>, seed: u64) -> Database {
    let medium = Arc::clone(medium) as Arc<dyn Medium>;
    open(options_of(seed).on_medium(medium))
}

/// Transactions of updates and deletes, with an eager collector beside them.
fn run(image: &Image, seed: u64, reclaimed: u64) -> Run {
    let medium = CutMedium::new(image, kind_of(seed), None);
    let db = open_cut(&medium, seed);
    let mut rows = Rows::new(&db);
    let mut run = Run { medium: Arc::clone(&medium), steps: Vec::new(), start: rows.expected.clone() };
    let mut random = Random::new(seed, 0);
    let mut n = 1 + rows.expected.values().max().copied().unwrap_or(0);
    let patience = Patience::new();
    while run.steps.len() < 20 || db.stats().collector.blocks_reclaimed < reclaimed {
        patience.check(|| format!("nothing is reclaimed: {:#?}", db.stats()));
        let mut state = rows.expected.clone();
        let began = medium.events();
        let work = random.clone();
        db.run(|txn| {
            state.clone_from(&rows.expected);
            let mut random = work.clone();
            for _ in 0..1 + random.below(5) {
                let key = random.below(24);
                if random.below(4) == 0 {
                    delete(txn, &rows.table, key)?;
                    state.remove(&key);
                } else {
                    put(txn, &rows.table, key, n)?;
                    state.insert(key, n);
                }
            }
            Ok::<_, pantile::Error>(())
        })
        .expect("a commit");
        random.word();
        n += 1;
        rows.expected.clone_from(&state);
        run.steps.push((began, medium.events(), state));
        if run.steps.len().is_multiple_of(4) {
            // Wait for an epoch or two.
            std::thread::sleep(Duration::from_micros(500));
            let_epochs_pass(&db);
        }
    }
    run
}

impl Run {
    /// Checks that the state after a cut is one that may be found.
    fn expected(&self, cut: usize) -> Vec<&State> {
        let done = self.steps.iter().take_while(|(_, ended, _)| *ended <= cut).count();
        let least = done.checked_sub(1).map_or(&self.start, |last| &self.steps[last].2);
        let next = self.steps.get(done).filter(|(began, ..)| *began < cut).map(|(.., state)| state);
        std::iter::once(least).chain(next).collect()
    }

    fn check(&self, found: &State, cut: usize, how: &str) {
        assert!(
            self.expected(cut).contains(&found),
            "{how}: {found:?} is not one of {:?}",
            self.expected(cut)
        );
    }
}

/// Blocks are frozen, released and freed between fences as well, so any moment
/// counts as much as any other.
#[test]
fn t12_every_moment_of_the_collectors_work_can_be_the_last() {
    let seed = from_env("PANTILE_CUT_SEED", 5);
    println!("PANTILE_CUT_SEED={seed}");
    for seed in [seed, seed + 1] {
        let run = run(&Image::default(), seed, 60);
        let mut random = Random::new(seed, 0);
        // Before the table exists, nothing can be expected.
        let first = run.steps[0].0;
        for n in 0..150 {
            let cut = first + random.below((run.medium.events() + 1 - first) as u64) as usize;
            let keep = Keep::ALL[n % Keep::ALL.len()];
            let how = format!("seed {seed}, cut at {cut} of {}, {keep:?}", run.medium.events());
            let cut_off = run.medium.after_cut(cut, keep, random.word());
            let db = open_cut(&cut_off, seed);
            let found = Rows::new(&db);
            run.check(&found.expected, cut, &how);
            if n % 10 == 0 {
                // What was being emptied is soon gone, and no row with it.
                settle(&db);
                found.check();
            }
            drop((found, db));
            if n % 5 == 0 {
                recover_cut(&run, &cut_off, cut, seed, &how);
            }
        }
    }
}

/// The recovery and the work after it are cut as well.
fn recover_cut(run: &Run, first: &Arc<CutMedium>, cut: usize, seed: u64, how: &str) {
    let mut random = Random::new(cut as u64, 0);
    for _ in 0..4 {
        let again = random.below(first.events() as u64 + 1) as usize;
        let keep = Keep::ALL[random.below(Keep::ALL.len() as u64) as usize];
        let second = first.after_cut(again, keep, random.word());
        let db = open_cut(&second, seed);
        let found = Rows::new(&db);
        run.check(&found.expected, cut, &format!("{how}, again at {again}, {keep:?}"));
    }
}

/// One power cut after another: they do not lose a little space each time.
#[test]
fn t12_space_comes_back_life_after_life() {
    let seed = from_env("PANTILE_CUT_SEED", 9);
    println!("PANTILE_CUT_SEED={seed}");
    let mut random = Random::new(seed, 0);
    let mut image = Image::default();
    let mut held = Vec::new();
    for life in 0..10 {
        let run = run(&image, random.below(1 << 40) * 3 + 1, 15);
        let first = run.steps[0].0;
        let cut = first + random.below((run.medium.events() + 1 - first) as u64) as usize;
        let keep = Keep::ALL[random.below(Keep::ALL.len() as u64) as usize];
        let choice = random.word();
        image = run.medium.cut(cut, keep, choice);
        let db = open_cut(&run.medium.after_cut(cut, keep, choice), 1);
        let rows = Rows::new(&db);
        run.check(&rows.expected, cut, &format!("life {life}, cut at {cut}, {keep:?}"));
        let space = settle(&db);
        held.push((rows.blocks(), space.medium_bytes >> 21));
    }
    // A few rows, which take at worst a block each, partly filled blocks, and
    // tombstones.
    assert!(held.iter().all(|&(blocks, chunks)| blocks < 60 && chunks < 16), "blocks and chunks {held:?}");
}

/// Copies of a medium in memory, made when blocks are half emptied.
#[test]
fn t12_frozen_blocks_are_resumed_first() {
    let big = || options().block_slots(1920).gc(GcOptions { theta: 0.5, ..gc() });
    let db = open(big());
    let mut rows = Rows::filled(&db, 0..8 * 1920);
    let (mut resumed, patience) = (0, Patience::new());
    for round in 0u64.. {
        if round >= 6 && resumed > 0 {
            break;
        }
        patience.check(|| "no copy had a frozen block".into());
        // Just above theta: a block has some nine hundred survivors, which move
        // a few at a time.
        rows.put((0..8 * 1920).filter(|key| (key + round) % 20 < 11));
        let mut frozen = None;
        collect_until(&db, "a block is half empty", |s| {
            if s.collector.frozen_blocks > 0 {
                frozen = Some(copy_of(&*medium_of(&db)));
            }
            frozen.is_some()
        });
        // With no reason to reclaim anything but what has been begun.
        let lazy = GcOptions { theta: 1.0, queue_share: 1.0, ..gc() };
        let again = open(big().gc(lazy).on_medium(frozen.expect("a copy")));
        let waiting = again.stats().collector.frozen_blocks;
        let found = Rows::new(&again);
        assert_eq!(found.expected, rows.expected, "round {round}");
        if waiting > 0 {
            resumed += 1;
            let stats = collect_until(&again, "resumed", |s| s.collector.frozen_blocks == 0);
            assert!(stats.collector.blocks_reclaimed >= waiting);
            found.check();
            found.check_after_crash(big());
        }
    }
}

/// Random work on four threads' worth of keys, and a copy at random moments.
#[test]
fn t12_nothing_is_lost_or_doubled_at_random_moments() {
    let mut random = Random::new(from_env("PANTILE_CUT_SEED", 21), 0);
    for collector in [Collector::TB_COLLECT, Collector::TB_COLLECT_EAGER] {
        let options = || options().collector(collector).block_slots(8);
        let db = open(options());
        let mut rows = Rows::filled(&db, 0..300);
        let mut reclaimed = 0;
        for _ in 0..25 {
            for _ in 0..random.below(12) {
                let from = random.below(300);
                if random.below(4) == 0 {
                    rows.delete((0..random.below(20)).map(|n| (from + n) % 300));
                } else {
                    rows.put((0..random.below(60)).map(|n| (from + n * 7) % 300));
                }
            }
            let found = rows.check_after_crash(options());
            settle(&found.db);
            found.check();
            reclaimed += found.db.stats().collector.blocks_reclaimed;
        }
        let stats = settle(&db);
        assert!(reclaimed > 50 && stats.collector.blocks_reclaimed > 50, "{reclaimed}, {stats:#?}");
        rows.check();
    }
}
