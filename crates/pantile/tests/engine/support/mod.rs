//! What the tests share: long readers, commits that let a collector work, and
//! short names.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::lab::Protocol;
use pantile::{
    Collector, ConflictPolicy, Database, Error, Isolation, Range, Table, Transaction, TransactionOptions,
    Value,
};
use pantile_testkit::{Bed, Home, Patience, Random};

/// Which collector a test runs beside.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Beside {
    /// One collector with its default options, a different one for each seed.
    Any,
    /// One collector that is as eager as possible, and long readers.
    Eager,
    /// This collector, as eager as possible, and long readers.
    This(Collector),
    /// The eager one, and rows are read through a cache.
    RowCache,
    /// The eager one, under a protocol of the laboratory.
    Under(Protocol),
}

impl Beside {
    /// Whether long readers run as well.
    pub fn is_eager(self) -> bool {
        matches!(self, Beside::Eager | Beside::RowCache | Beside::This(_))
    }

    pub fn home(self, bed: Bed, seed: u64) -> Home {
        match self {
            // In some, writers stay where they began.
            Beside::Any => Home::new(bed).collect_by_seed(seed).writers_move(seed % 4 != 3),
            Beside::Eager => Home::new(bed).eager(seed),
            Beside::RowCache => Home::new(bed).eager(seed).row_cache(1 << 20),
            Beside::Under(protocol) => Home::new(bed).eager(seed).under(protocol),
            Beside::This(collector) => Home::new(bed).eager_with(collector, seed),
        }
    }

    /// Records what the collector has done in a run.
    pub fn note(self, db: &Database) {
        if self.is_eager() {
            let done = db.stats().collector;
            let (freed, over) = (done.blocks_reclaimed, done.blocks_bypassed);
            let versions = done.versions_reclaimed;
            println!("{freed} blocks, {over} bypassed, {versions} versions");
            FREED.set(FREED.get() + versions);
        }
    }
}

thread_local! {
    /// Versions freed in the runs of this test, which all begin in its thread.
    static FREED: Cell<u64> = const { Cell::new(0) };
}

/// Makes `more` runs of this test until the eager collector has freed something in
/// them. On a fast machine a reader may stay for a whole run, and keep everything.
pub fn check_worth(mut more: impl FnMut(u64)) {
    let (is_given, patience) = (std::env::var_os("PANTILE_SEED").is_some(), Patience::new());
    for seed in 900_001.. {
        if FREED.get() > 0 || is_given {
            break;
        }
        patience.check(|| "nothing was collected".into());
        more(seed);
    }
    FREED.set(0);
}

/// All rows of a database, by every index.
type Everything = Vec<Vec<String>>;

fn everything(db: &Database, txn: &Transaction) -> pantile::Result<Everything> {
    let text = |row: pantile::Result<pantile::Row<'_>>| {
        row.and_then(|row| row.to_values().map(|values| format!("{values:?}")))
    };
    let mut all = Vec::new();
    for name in db.tables() {
        let Ok(table) = db.table(&name) else { continue };
        let rows: Vec<String> = txn.scan(&table, Range::all())?.map(text).collect::<pantile::Result<_>>()?;
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        for def in &table.definition().indexes {
            let Ok(index) = table.index(&def.name) else { continue };
            let mut found: Vec<String> =
                txn.scan_index(&index, Range::all())?.map(text).collect::<pantile::Result<_>>()?;
            found.sort_unstable();
            let by_statement = txn.isolation() == Isolation::ReadCommitted && !txn.is_read_only();
            assert!(
                by_statement || found == sorted,
                "{} of {name} for {txn:?}: {found:?} {sorted:?}",
                def.name
            );
        }
        all.push(rows);
    }
    Ok(all)
}

/// Opens readers of all kinds, keeps each for a while, and checks that readers
/// of one moment always read the same. Tables must not be created or dropped
/// meanwhile.
pub fn read_for_long(db: &Database, done: &AtomicBool, seed: u64) {
    let mut rng = Random::new(seed ^ 0x10_46, 0);
    let mut readers: Vec<(Transaction, Everything)> = Vec::new();
    let kinds = [
        abort_at(Isolation::Serializable).read_only(true),
        TransactionOptions::new().safe_snapshot(),
        abort_at(Isolation::Snapshot),
        abort_at(Isolation::ReadCommitted),
    ];
    while !done.load(Ordering::Relaxed) {
        if readers.len() < 3 && rng.percent(40) {
            let txn = db.begin_with(*rng.pick(&kinds)).expect("a transaction");
            match everything(db, &txn) {
                Ok(seen) => readers.push((txn, seen)),
                Err(error) => assert!(is_conflict(&error) && !txn.is_read_only(), "{error}"),
            }
        }
        for (txn, seen) in &readers {
            match everything(db, txn) {
                Ok(_) if txn.isolation() == Isolation::ReadCommitted => {}
                Ok(now) => assert_eq!(&now, seen, "{txn:?}"),
                Err(error) => assert!(is_conflict(&error) && !txn.is_read_only(), "{error}"),
            }
        }
        if rng.percent(15) {
            readers.pop();
        } else if rng.percent(8) {
            // Survivors leave their blocks only when no transaction has been
            // reading for long.
            readers.clear();
            std::thread::sleep(Duration::from_millis(rng.below(8)));
        }
        std::thread::sleep(Duration::from_micros(rng.below(3_000)));
    }
}

/// The table whose commits let the collector work.
pub const PULSE: &str = "pulse";

const PULSE_ROWS: u64 = 37;

/// Empty commits, for the time of some epochs: committing threads do the
/// collector's work.
pub fn let_collect(db: &Database, pulse: &Table, time: Duration) {
    let until = std::time::Instant::now() + time;
    let mut n = 0u64;
    // Work for the whole database is done once in 64 commits.
    while n < 192 || std::time::Instant::now() < until {
        // Some rows rarely change: they survive in blocks with rows that often
        // do.
        let id = if n.is_multiple_of(5) { 3 + n / 5 % PULSE_ROWS } else { n % 3 };
        let row = [Value::UInt(id), Value::UInt(n)];
        db.run(|txn| txn.upsert(pulse, &row)).expect("no conflict");
        n += 1;
    }
}

/// A database in memory.
pub fn in_memory() -> Database {
    Home::new(Bed::Dram).open()
}

/// All isolation levels.
pub const LEVELS: [Isolation; 3] = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

/// Read-write at a level; fails at once on conflicts.
pub fn abort_at(isolation: Isolation) -> TransactionOptions {
    TransactionOptions::new().isolation(isolation).conflict(ConflictPolicy::Abort)
}

/// Read-write at a level; waits on conflicts.
pub fn wait_at(isolation: Isolation, limit: Duration) -> TransactionOptions {
    TransactionOptions::new().isolation(isolation).conflict(ConflictPolicy::Wait(limit))
}

pub fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Conflict { .. })
}

pub fn is_duplicate(error: &Error) -> bool {
    matches!(error, Error::DuplicateKey { .. })
}
