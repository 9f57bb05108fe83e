//! Random options, many of them at or beyond the edge of what makes sense: a
//! database opens and works with them, or says which one it does not take.

use std::time::Duration;

use pantile::lab::medium_of;
use pantile::{
    Collector, ConflictPolicy, Database, Durability, Error, GcOptions, Isolation, MediumKind, Options,
    Pacing, Range, Table, TableDef, Transaction, TransactionOptions, Type,
};
use pantile_testkit::{Random, ScratchDir, SeedNote, run_case, seeds};

/// A chance in this many that an option is set at all.
const SET: u64 = 6;

fn random_number(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.below(4),
        1 => u64::MAX - random.below(2),
        2 => 1 << random.below(64),
        _ => random.below(3_000),
    }
}

fn random_time(random: &mut Random) -> Duration {
    let number = random_number(random);
    match random.below(5) {
        0 => Duration::MAX,
        1 => Duration::ZERO,
        2 => Duration::from_nanos(number),
        3 => Duration::from_micros(number),
        _ => Duration::from_secs(number),
    }
}

fn random_share(random: &mut Random) -> f64 {
    let edges =
        [f64::NAN, f64::INFINITY, -1.0, -0.0, 0.0, 0.5, 1.0, 1.5, 1000.0, f64::MAX, f64::MIN_POSITIVE];
    if random.one_in(2) { *random.pick(&edges) } else { random.fraction() }
}

fn random_gc(random: &mut Random) -> GcOptions {
    let mut gc = GcOptions::default();
    match random.below(8) {
        0 => gc.theta = random_share(random),
        1 => gc.queue_share = random_share(random),
        2 => gc.space_target = random_share(random),
        3 => gc.epoch = random_time(random),
        4 => gc.interval = random_time(random),
        5 => gc.epoch_commits = Some(random_number(random)),
        6 => gc.pacing = *random.pick(Pacing::ALL),
        _ => gc.bypass = false,
    }
    gc
}

fn random_policy(random: &mut Random) -> ConflictPolicy {
    if random.one_in(4) { ConflictPolicy::Abort } else { ConflictPolicy::Wait(random_time(random)) }
}

/// The system's memory bounds what is preallocated, not the option.
fn random_preallocation(random: &mut Random) -> u64 {
    match random_number(random) {
        much @ 0x400_0000..=0x1_0000_0000_0000 => much & 0x3ff_ffff,
        other => other,
    }
}

fn random_options(random: &mut Random) -> Options {
    let mut options = Options::new().medium(MediumKind::Dram);
    let changes: [fn(Options, &mut Random) -> Options; 15] = [
        |o, r| o.streams(random_number(r) as usize),
        |o, r| o.recovery_threads(random_number(r) as usize),
        |o, r| o.block_slots(random_number(r) as u32),
        |o, r| o.max_bytes(random_number(r)),
        |o, r| o.preallocate(random_preallocation(r)),
        |o, r| o.row_cache(random_number(r)),
        |o, r| o.begin_wait(random_time(r)),
        |o, r| o.retry_for(random_time(r)),
        |o, r| o.conflict(random_policy(r)),
        |o, r| o.gc(random_gc(r)),
        |o, r| o.worker(r.one_in(2)),
        |o, r| o.persistent_caches(r.one_in(2)),
        |o, r| o.explain_bus_errors(r.one_in(2)),
        |o, r| o.durability(*r.pick(&[Durability::None, Durability::Sync])),
        |o, r| o.collector(*r.pick(&[Collector::NONE, Collector::TB_COLLECT, Collector::TB_COLLECT_EAGER])),
    ];
    for change in changes {
        if random.one_in(SET) {
            options = change(options, random);
        }
    }
    options
}

fn add(txn: &mut Transaction, table: &Table) -> pantile::Result<()> {
    txn.modify(table, &[1u64.into()], |row| {
        let n: u64 = row.get(1)?;
        row.set(1, (n + 1).into()).map(|()| true)
    })
    .map(drop)
}

/// Two threads in each other's way. Returns how many of their transactions
/// have committed.
fn work(db: &Database, table: &Table, seed: u64) -> u64 {
    let work = |stream| {
        let mut random = Random::new(seed, stream);
        let mut done = 0;
        for _ in 0..8 {
            let levels = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];
            let mut options = TransactionOptions::new().isolation(*random.pick(&levels));
            if random.one_in(2) {
                options = options.conflict(random_policy(&mut random));
            }
            let outcome = db.run_with(options, |txn| {
                add(txn, table)?;
                std::thread::sleep(Duration::from_micros(random.below(300)));
                Ok(())
            });
            match outcome {
                Ok(()) => done += 1,
                Err(error) => assert!(is_excused(&error), "{error}"),
            }
        }
        done
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        work(2) + other.join().expect("no panic")
    })
}

/// What a short time to wait and a small medium may lead to.
fn is_excused(error: &Error) -> bool {
    matches!(error, Error::Conflict { .. } | Error::StorageFull { .. })
}

fn count(db: &Database) -> pantile::Result<u64> {
    let table = db.table("t")?;
    let txn = db.begin_with(TransactionOptions::new().safe_snapshot())?;
    let mut rows = txn.scan(&table, Range::all())?;
    rows.next().expect("a row")?.get(1)
}

fn define(db: &Database) -> pantile::Result<Table> {
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def)?;
    db.run(|txn| txn.insert(&table, &[1u64.into(), 0u64.into()]))?;
    Ok(table)
}

/// Returns whether the options were taken.
fn check(seed: u64) -> bool {
    let random = &mut Random::new(seed, 0);
    let place = random.one_in(2).then(ScratchDir::new);
    let open = |options: Options| match &place {
        Some(place) => options.medium(MediumKind::File).open(place.path()),
        None => options.open("unused"),
    };
    let db = match open(random_options(random)) {
        Ok(db) => db,
        Err(Error::InvalidOption(_)) => return false,
        Err(Error::StorageFull { .. }) => return true,
        Err(error) => panic!("{error}"),
    };
    let table = match define(&db) {
        Ok(table) => table,
        Err(error) => {
            assert!(is_excused(&error), "{error}");
            return true;
        }
    };
    let done = work(&db, &table, seed);
    drop(table);
    let medium = place.is_none().then(|| medium_of(&db));
    db.close().expect("close");
    let reopened = loop {
        let mut options = random_options(random);
        if let Some(medium) = &medium {
            options = options.on_medium(medium.clone());
        }
        match open(options) {
            Ok(db) => break db,
            Err(Error::InvalidOption(_)) => {}
            Err(error) => panic!("reopened: {error}"),
        }
    };
    // A safe snapshot right after opening shows everything.
    assert_eq!(count(&reopened).expect("read"), done);
    true
}

#[test]
fn options_work_or_are_named() {
    let seeds = seeds(1, 300);
    let all = seeds.len();
    let taken = run_case("random options", move || {
        seeds
            .into_iter()
            .filter(|&seed| {
                let _note = SeedNote(seed);
                check(seed)
            })
            .count()
    });
    println!("{taken} of {all} taken");
    assert!(taken > 0, "all were refused");
}
