//! Histories of concurrent clients, recorded and searched for anomalies.
//!
//! The promises of each isolation level must hold in every history. A run
//! without isolation must be detected, or the search is worth nothing.

mod broken;
mod client;
mod protocols;
mod replay;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::support::{Beside, check_worth, read_for_long};
use client::{ITEMS, Load, NAMED, Recorded, Store, record};
use pantile::{Durability, Isolation};
use pantile_history::{AnomalyKind, Check, History};
use pantile_testkit::{Bed, Patience, SaysDone, SeedNote, from_env, seeds};

const SMALL: Load = Load {
    threads: 4,
    transactions: 60,
    levels: &[Isolation::Serializable],
    tables: &[ITEMS, NAMED],
    under_protocol: false,
};
const FULL: Load = Load {
    threads: 6,
    transactions: 250,
    levels: &[Isolation::Serializable],
    tables: &[ITEMS, NAMED],
    under_protocol: false,
};

const LONG: Load = Load { transactions: 500, ..FULL };

/// Runs a load on a new database for each seed, and passes on what was
/// recorded.
fn runs(bed: Bed, load: Load, first_seed: u64, count: u64, judge: impl FnMut(Recorded)) {
    runs_beside(Beside::Any, bed, load, first_seed, count, judge);
}

fn runs_beside(
    beside: Beside,
    bed: Bed,
    load: Load,
    first_seed: u64,
    count: u64,
    mut judge: impl FnMut(Recorded),
) {
    for seed in seeds(first_seed, count) {
        let _note = SeedNote(seed);
        let mut home = beside.home(bed, seed);
        let db = home.open();
        let store = Store::new(&db);
        let done = AtomicBool::new(false);
        let recorded = std::thread::scope(|scope| {
            let over = SaysDone(&done);
            if beside.is_eager() {
                scope.spawn(|| read_for_long(&db, &done, seed));
            }
            let recorded = record(&store, load, seed, Instant::now());
            drop(over);
            recorded
        });
        beside.note(&db);
        store.check_indexes();
        judge(recorded);
        drop(store);
        home.close(db);
        let db = home.open();
        Store::find(&db).check_indexes();
    }
}

fn is_strictly_serializable(recorded: Recorded) {
    let commits = recorded.commits();
    assert!(commits > recorded.history.transactions.len() / 10, "{commits} commits are too few to judge");
    replay::by_timestamp(&recorded);
    let report = Check::new().run(&recorded.history);
    assert!(report.is_strictly_serializable(), "{report}");
    // Safe snapshots lie in the past.
    let report = Check::new().real_time(true).run(&recorded.without_safe());
    assert!(report.is_strictly_serializable() && report.complete, "{report}");
}

#[test]
fn serializable_on_dram() {
    runs(Bed::Dram, FULL, 1, 6, is_strictly_serializable);
}

#[test]
fn serializable_on_file() {
    runs(Bed::File(Durability::None), SMALL, 101, 2, is_strictly_serializable);
    runs(Bed::File(Durability::Sync), SMALL, 201, 1, is_strictly_serializable);
}

#[test]
fn serializable_beside_a_cache_of_rows() {
    let runs = |seed, count| {
        runs_beside(Beside::RowCache, Bed::Dram, FULL, seed, count, is_strictly_serializable);
    };
    runs(1_601, 3);
    check_worth(|seed| runs(seed, 1));
}

#[test]
fn serializable_on_nvm() {
    runs(Bed::Nvm, SMALL, 301, 2, is_strictly_serializable);
}

#[test]
fn serializable_beside_an_eager_collector() {
    let runs = |bed, load, seed, count| {
        runs_beside(Beside::Eager, bed, load, seed, count, is_strictly_serializable);
    };
    runs(Bed::Dram, LONG, 1001, 6);
    runs(Bed::File(Durability::None), FULL, 1101, 1);
    runs(Bed::Nvm, FULL, 1201, 1);
    check_worth(|seed| runs(Bed::Dram, LONG, seed, 1));
}

#[test]
fn serializable_beside_every_collector() {
    let load = Load { transactions: 150, ..FULL };
    let runs = |collector, seed, count| {
        runs_beside(Beside::This(collector), Bed::Dram, load, seed, count, is_strictly_serializable);
    };
    for (n, &collector) in (0u64..).zip(pantile_rivals::all()) {
        println!("{collector}");
        runs(collector, 1401 + 10 * n, 2);
    }
    check_worth(|seed| runs(pantile_rivals::all()[0], seed, 1));
}

#[test]
fn mixed_levels_beside_an_eager_collector() {
    let load = Load { levels: &crate::support::LEVELS, ..LONG };
    let runs = |seed, count| {
        runs_beside(Beside::Eager, Bed::Dram, load, seed, count, |recorded| {
            replay::by_timestamp(&recorded);
            found(&recorded.history);
        });
    };
    runs(1301, 4);
    check_worth(|seed| runs(seed, 1));
}

fn found(history: &History) -> BTreeSet<AnomalyKind> {
    let report = Check::new().run(history);

    let kinds = report.kinds();
    for anomaly in &report.anomalies {
        let never = anomaly.kind <= AnomalyKind::Internal
            || (AnomalyKind::G0..=AnomalyKind::G1c).contains(&anomaly.kind);
        assert!(!never, "{anomaly}");
    }
    kinds
}

/// Makes more runs until they have shown what they must: how often clients meet is up to the machine. A seed that is
/// given is the only one to run.
fn until_shown(
    mut kinds: BTreeSet<AnomalyKind>,
    run: impl Fn(u64, u64) -> BTreeSet<AnomalyKind>,
    is_shown: impl Fn(&BTreeSet<AnomalyKind>) -> bool,
) {
    let (is_given, patience) = (std::env::var_os("PANTILE_SEED").is_some(), Patience::new());
    for seed in 910_001.. {
        if is_given || is_shown(&kinds) {
            return;
        }
        patience.check(|| format!("only {kinds:?}"));
        kinds.extend(run(seed, 1));
    }
}

#[test]
fn snapshot_gives_write_skew_at_most() {
    // The first committer wins by row, not by unique key. Of two inserts of a
    // name, the second may find that the first has already been deleted again.
    let load = Load { levels: &[Isolation::Snapshot], tables: &[ITEMS], ..FULL };
    let allowed = [AnomalyKind::G2Item, AnomalyKind::G2].into();
    let run = |seed: u64, count: u64| {
        let mut kinds = BTreeSet::new();
        runs(Bed::Dram, load, seed, count, |recorded| {
            let found = found(&recorded.history);
            assert!(found.is_subset(&allowed), "{}", Check::new().run(&recorded.history));
            kinds.extend(found);
        });
        kinds
    };
    until_shown(run(401, 4), run, |kinds| !kinds.is_empty());
}

#[test]
fn snapshot_keeps_names_unique() {
    let load = Load { levels: &[Isolation::Snapshot], ..FULL };
    runs(Bed::Dram, load, 451, 4, |recorded| {
        found(&recorded.history);
    });
}

#[test]
fn read_committed_gives_no_dirty_reads_or_writes() {
    let load = Load { levels: &[Isolation::ReadCommitted], ..FULL };
    let run = |seed: u64, count: u64| {
        let mut kinds = BTreeSet::new();
        runs(Bed::Dram, load, seed, count, |recorded| kinds.extend(found(&recorded.history)));
        kinds
    };
    until_shown(run(501, 4), run, |kinds| kinds.contains(&AnomalyKind::GSingle));
}

#[test]
fn mixed_levels_leave_the_serializable_ones_serializable() {
    for (bed, seed, count) in [(Bed::Dram, 601, 6), (Bed::File(Durability::None), 701, 2)] {
        let load = Load { levels: &crate::support::LEVELS, ..FULL };
        runs(bed, load, seed, count, |recorded| {
            replay::by_timestamp(&recorded);
            found(&recorded.history);
        });
    }
}

#[test]
fn transactions_in_pieces_are_found_out() {
    let wanted: BTreeSet<AnomalyKind> = [
        AnomalyKind::G0,
        AnomalyKind::G1a,
        AnomalyKind::G1b,
        AnomalyKind::G1c,
        AnomalyKind::LostUpdate,
        AnomalyKind::GSingle,
        AnomalyKind::G2Item,
        AnomalyKind::G2,
    ]
    .into();
    for bed in [Bed::Dram, Bed::File(Durability::None), Bed::Nvm] {
        println!("{bed:?}");
        let run = |seed: u64, _: u64| broken::kinds(bed, seed);
        until_shown(run(from_env("PANTILE_SEED", 801), 1), run, |kinds| kinds.is_superset(&wanted));
    }
}
