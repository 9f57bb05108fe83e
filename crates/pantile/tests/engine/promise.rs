//! The space target is a promise: within two seconds of any burst the database
//! takes no more than its target and 16 MB, whatever the transactions were like
//! and although nothing is committed any more. Time is simulated, so no result
//! depends on the machine.

use std::time::Duration;

use pantile::lab::medium_of;
use pantile::{
    ConflictPolicy, Database, GcOptions, Isolation, Options, SimulatedTime, Table, TableDef,
    TransactionOptions, Type, Value,
};
use pantile_testkit::exact_memory;

const MB: u64 = 1 << 20;
const ROWS: u64 = 100_000;
/// Simulated time that one write takes.
const WRITE_TIME: Duration = Duration::from_micros(2);
const TWO_SECONDS: Duration = Duration::from_secs(2);
/// Time for everything that is done when nothing happens.
const ALL: Duration = Duration::from_secs(10);

struct Bed {
    db: Database,
    table: Table,
    time: SimulatedTime,
    n: u64,
}

impl Bed {
    fn new() -> Self {
        Self::with(GcOptions::default())
    }

    fn with(gc: GcOptions) -> Self {
        let time = SimulatedTime::default();
        // What a medium finds ahead of use, in time that is not simulated, does not count.
        let options = Options::new().on_medium(exact_memory()).simulated_time(time.clone()).gc(gc).streams(2);
        let db = options.conflict(ConflictPolicy::Abort).open("unused").expect("open");
        let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(200));
        let table = db.create_table(def.primary_key(["id"])).expect("create");
        Self { db, table, time, n: 0 }
    }

    /// Writes rows of 90 bytes, `rows_each` in a transaction.
    fn put(&mut self, ids: impl IntoIterator<Item = u64>, rows_each: usize) {
        let ids: Vec<u64> = ids.into_iter().collect();
        for ids in ids.chunks(rows_each) {
            self.n += 1;
            let data = [self.n as u8; 90];
            let put = |txn: &mut pantile::Transaction| {
                ids.iter().try_for_each(|&id| {
                    txn.upsert(&self.table, &[id.into(), Value::Bytes(&data)]).map(|_| ())
                })
            };
            self.db.run(put).expect("a commit");
            self.time.advance(WRITE_TIME * ids.len() as u32);
        }
    }

    fn delete(&mut self, ids: impl IntoIterator<Item = u64>, rows_each: usize) {
        let ids: Vec<u64> = ids.into_iter().collect();
        for ids in ids.chunks(rows_each) {
            let delete = |txn: &mut pantile::Transaction| {
                ids.iter().try_for_each(|&id| txn.delete(&self.table, &[id.into()]).map(|_| ()))
            };
            self.db.run(delete).expect("a commit");
            self.time.advance(WRITE_TIME * ids.len() as u32);
        }
    }

    /// Lets this time pass, in which the worker works.
    fn rest(&self, time: Duration) {
        let until = self.time.now() + time;
        while self.time.now() < until
            && let Some(pause) = self.db.upkeep()
        {
            self.time.advance(pause.max(Duration::from_micros(100)).min(until - self.time.now()));
        }
        if self.time.now() < until {
            self.time.advance(until - self.time.now());
        }
    }

    /// The bytes beyond what is promised; below zero if it is kept.
    fn beyond(&self, target: f64) -> i64 {
        let stats = self.db.stats();
        stats.medium_bytes as i64 - (stats.live_bytes as f64 * target) as i64 - (16 * MB) as i64
    }

    #[track_caller]
    fn assert_kept(&self, what: &str) {
        let stats = self.db.stats();
        assert!(
            self.beyond(2.0) <= 0,
            "{what}: {} MB taken for {} MB live\n{stats:#?}\n{:#?}",
            stats.medium_bytes / MB,
            stats.live_bytes / MB,
            self.db.space_by_table(),
        );
    }
}

/// Each round visits all rows in an order of its own.
fn scattered(round: u64) -> impl Iterator<Item = u64> {
    (0..ROWS).map(move |n| (n * 61_441 + round * 7919) % ROWS)
}

/// Updates all rows five times, `rows_each` in a transaction.
fn updated(rows_each: usize) -> Bed {
    let mut bed = Bed::new();
    bed.put(0..ROWS, 1000);
    (0..5).for_each(|round| bed.put(scattered(round), rows_each));
    bed
}

#[test]
fn bursts_of_any_transactions() {
    for rows_each in [20, 1000, 10_000, ROWS as usize] {
        let bed = updated(rows_each);
        bed.rest(TWO_SECONDS);
        bed.assert_kept(&format!("{rows_each} rows in a transaction"));
    }
}

/// Negative control: without the worker an idle database keeps its garbage.
#[test]
fn only_the_worker_keeps_the_promise_of_an_idle_database() {
    let bed = updated(ROWS as usize);
    bed.time.advance(TWO_SECONDS);
    assert!(bed.beyond(2.0) > (8 * MB) as i64, "{:#?}", bed.db.stats());
}

#[test]
fn a_transaction_much_larger_than_the_data() {
    let mut bed = Bed::new();
    // One row of a thousand stays.
    bed.put(0..300_000, 300_000);
    bed.delete((0..300_000).filter(|id| id % 1000 > 0), 300_000);
    bed.rest(TWO_SECONDS);
    bed.assert_kept("deletes of nearly everything");
    bed.delete((0..300_000).step_by(1000), 300);
    bed.rest(TWO_SECONDS);
    bed.assert_kept("deletes of everything");
    assert!(bed.db.stats().medium_bytes < 16 * MB, "{:#?}", bed.db.stats());
}

#[test]
fn a_queue() {
    let mut bed = Bed::new();
    for first in (0..600_000u64).step_by(1000) {
        bed.put(first..first + 1000, 1000);
        if first >= 10_000 {
            bed.delete(first - 10_000..first - 9_000, 10);
        }
        if first % 50_000 == 0 {
            bed.rest(Duration::from_millis(40));
        }
    }
    bed.rest(TWO_SECONDS);
    bed.assert_kept("a queue");
}

/// Some rows are updated much more often than others, so what is dead lies
/// scattered among what is alive.
#[test]
fn skewed_updates() {
    let mut bed = Bed::new();
    bed.put(0..ROWS, 1000);
    for round in 0..60 {
        bed.put(scattered(round).filter(|id| id % 10 == 0 || id % 211 == round), 100);
    }
    bed.rest(TWO_SECONDS);
    bed.assert_kept("skewed updates");
}

/// Beside a long reader only what it sees is kept; once it has ended, nothing.
#[test]
fn a_reader_that_stays() {
    let mut bed = Bed::new();
    bed.put(0..ROWS, 1000);
    bed.rest(TWO_SECONDS);
    let before = bed.db.stats().medium_bytes;
    let reader = bed.db.begin_read().expect("begin");
    for round in 0..20 {
        bed.put(scattered(round), 1000);
        bed.rest(Duration::from_millis(500));
    }
    let stats = bed.db.stats();
    let [running] = &bed.db.transactions()[..] else { panic!("one transaction runs") };
    assert!(
        running.transaction.age > Duration::from_secs(10) && running.transaction.read_only,
        "{running:?}"
    );
    assert!(running.held_bytes > 8 * MB && running.held_bytes < before, "{running:?}");
    assert_eq!(running.freed_bytes, running.held_bytes);
    let seen = before as i64;
    assert!(bed.beyond(2.0) <= seen, "{} MB for {stats:#?}", stats.medium_bytes / MB);
    assert_eq!(
        reader.get(&bed.table, &[7u64.into()]).expect("read").expect("a row").get::<&[u8]>(1).expect("data")
            [0],
        1
    );
    drop(reader);
    bed.rest(TWO_SECONDS);
    bed.assert_kept("after the reader");
    let stats = bed.db.stats();
    assert_eq!(stats.collector.kept_tiles, 0, "{stats:#?}");
}

/// Chunks that were emptied while a reader runs go back to the system while it
/// runs, although links of their blocks are kept for it.
#[test]
fn chunks_go_back_beside_a_reader() {
    let mut bed = Bed::new();
    bed.put(0..ROWS, 1000);
    bed.rest(TWO_SECONDS);
    let reader = bed.db.begin_read().expect("begin");
    for round in 0..30 {
        bed.put(scattered(round), 1000);
        bed.rest(Duration::from_millis(80));
    }
    bed.rest(TWO_SECONDS);
    let (stats, running) = (bed.db.stats(), bed.db.transactions());
    assert!(stats.collector.kept_tiles > 0, "{stats:#?}");
    assert!(bed.beyond(2.0) <= running[0].held_bytes as i64, "{stats:#?} {running:#?}");
    assert!(stats.free_bytes < 16 * MB, "{stats:#?}");
    drop(reader);
}

/// What a long reader costs follows what it sees and the number of rows,
/// however long it runs and whatever is done meanwhile.
fn beside_a_reader(what: &str, work: impl Fn(&mut Bed, u64)) {
    let mut bed = Bed::new();
    bed.put(0..ROWS, 1000);
    bed.rest(TWO_SECONDS);
    let seen = bed.db.stats().live_bytes;
    let reader = bed.db.begin_read().expect("begin");
    let mut dram = 0;
    for round in 0..40 {
        work(&mut bed, round);
        bed.rest(Duration::from_millis(500));
        let stats = bed.db.stats();
        assert!(bed.beyond(2.0) <= seen as i64, "{what}, round {round}: {stats:#?}");
        // A link takes 16 bytes in a tile, and at most four times as much in one
        // that is partly needed.
        assert!(stats.tile_bytes < ROWS * 64, "{what}, round {round}: {stats:#?}");
        if round == 9 {
            dram = stats.dram_bytes;
        }
        assert!(dram == 0 || stats.dram_bytes < dram + 2 * MB, "{what}, {dram} bytes before: {stats:#?}");
    }
    for id in (0..ROWS).step_by(97) {
        let row = reader.get(&bed.table, &[id.into()]).expect("read").expect("a row");
        assert_eq!(row.get::<&[u8]>(1).expect("data")[0] as u64, 1 + id / 1000, "row {id}, {what}");
    }
    let count = reader.scan(&bed.table, pantile::Range::all()).expect("scan").count();
    assert_eq!(count as u64, ROWS, "{what}");
    drop(reader);
    bed.rest(TWO_SECONDS);
    bed.assert_kept(what);
    let stats = bed.db.stats();
    assert_eq!(stats.collector.kept_tiles, 0, "{what}: {stats:#?}");
}

#[test]
fn a_reader_beside_updates_of_all_rows() {
    beside_a_reader("all rows", |bed, round| bed.put(scattered(round), 1000));
}

#[test]
fn a_reader_beside_skewed_updates() {
    beside_a_reader("some rows", |bed, round| {
        for round in round * 6..round * 6 + 6 {
            bed.put(scattered(round).filter(|id| id % 10 == 0 || id % 211 == round % 211), 100);
        }
    });
}

/// Ids and tombstones of rows that came and went while the reader ran are not
/// kept for it.
#[test]
fn a_reader_beside_a_queue() {
    beside_a_reader("a queue", |bed, round| {
        for first in (0..20_000).step_by(1000).map(|n| ROWS + round * 20_000 + n) {
            bed.put(first..first + 1000, 1000);
            bed.put(first..first + 1000, 1000);
            bed.delete(first..first + 1000, 10);
        }
    });
}

/// The worker sleeps once everything is done, whether or not a transaction
/// runs that holds something up.
#[test]
fn the_worker_has_an_end() {
    let mut bed = updated(1000);
    bed.rest(ALL);
    assert_eq!(bed.db.upkeep(), None, "{:#?}", bed.db.stats());
    let reader = bed.db.begin_read().expect("begin");
    bed.put(scattered(9), 1000);
    bed.rest(ALL);
    assert_eq!(bed.db.upkeep(), None, "{:#?}", bed.db.stats());
    drop(reader);
    assert!(bed.db.upkeep().is_some());
    bed.rest(ALL);
    assert_eq!(bed.db.upkeep(), None, "{:#?}", bed.db.stats());
    bed.assert_kept("after all");
}

/// A prepared transaction keeps the rows that it has locked, and the database rests beside it.
#[test]
fn the_worker_has_an_end_beside_a_prepared_transaction() {
    for isolation in [Isolation::Serializable, Isolation::ReadCommitted] {
        let mut bed = updated(1000);
        let mut txn = bed.db.begin_with(TransactionOptions::new().isolation(isolation)).expect("begin");
        for id in (0..ROWS).step_by(1_000) {
            assert!(txn.update(&bed.table, &[id.into()], &[("data", Value::Bytes(b"x"))]).expect("a row"));
        }
        let prepared = bed.db.prepare(txn, b"x").expect("it is prepared");
        bed.put(scattered(9).filter(|id| id % 1_000 != 0), 1000);
        for _ in 0..20 {
            bed.rest(ALL);
        }
        assert_eq!(bed.db.upkeep(), None, "{isolation:?}: {:#?}", bed.db.stats());
        prepared.rollback().expect("a rollback");
        bed.rest(ALL);
        assert_eq!(bed.db.upkeep(), None, "{isolation:?}: {:#?}", bed.db.stats());
        bed.assert_kept("after all");
    }
}

/// Closing pays what nobody has paid.
#[test]
fn closing_keeps_the_promise() {
    let bed = updated(ROWS as usize);
    let (medium, live) = (medium_of(&bed.db), bed.db.stats().live_bytes);
    bed.db.close().expect("close");
    drop(bed.table);
    let db = Options::new().on_medium(medium).open("unused").expect("open");
    let stats = db.stats();
    assert!(stats.medium_bytes <= 2 * live + 16 * MB, "{} MB for {} MB", stats.medium_bytes / MB, live / MB);
}

/// A process that opens the database for a few commits, again and again.
#[test]
fn short_lives_leave_little() {
    let mut bed = Bed::new();
    bed.put(0..1000, 1000);
    for life in 0..800 {
        let medium = medium_of(&bed.db);
        bed.db.close().expect("close");
        drop(bed.table);
        let options = Options::new().simulated_time(bed.time.clone()).streams(2);
        let db = options.on_medium(medium).open("unused").expect("open");
        let table = db.table("t").expect("there");
        bed = Bed { db, table, ..bed };
        bed.put((0..20).map(|n| (life * 7 + n) % 1000), 1);
    }
    let stats = bed.db.stats();
    assert!(stats.medium_bytes < 3 * MB, "{stats:#?}");
}

/// With the published policy, which has no target, closing moves nothing.
#[test]
fn closing_keeps_to_the_published_policy() {
    let scanned = |gc| {
        let mut bed = Bed::with(gc);
        bed.put(0..40_000, 1000);
        bed.put((0..40_000).step_by(2), 1000);
        let medium = medium_of(&bed.db);
        bed.db.close().expect("close");
        drop(bed.table);
        let db = Options::new().on_medium(medium).open("unused").expect("open");
        db.recovery().contents_scanned
    };
    assert!(scanned(GcOptions { space_target: 1.1, ..GcOptions::default() }) < 45_000);
    assert!(scanned(GcOptions { space_target: 1.1, ..GcOptions::published() }) >= 60_000);
}

#[test]
fn a_lower_target_is_kept_too() {
    let mut bed = Bed::with(GcOptions { space_target: 1.25, ..GcOptions::default() });
    bed.put(0..ROWS, 1000);
    (0..5).for_each(|round| bed.put(scattered(round), 100));
    bed.rest(TWO_SECONDS);
    assert!(bed.beyond(1.25) <= 0, "{:#?}", bed.db.stats());
}

/// The least that the layout allows, and a constant: the reserve, a few free
/// chunks and open blocks.
#[test]
fn compacting_leaves_little_beside_what_is_alive() {
    let bed = updated(100);
    let mut calls = 0;
    let left = bed.db.compact_with(|_| {
        calls += 1;
        std::ops::ControlFlow::Continue(())
    });
    assert!(left.expect("compact").is_done());
    assert!(calls > 0);
    let stats = bed.db.stats();
    let least = (stats.live_bytes as f64 * 1.15) as u64 + 16 * MB;
    assert!(stats.medium_bytes <= least, "{stats:#?} {:#?}", bed.db.space_by_table());
    assert!(stats.obsolete_bytes < MB / 2, "{stats:#?}");
}

#[test]
fn compacting_can_be_stopped_and_a_reader_holds_up_no_more_than_it_sees() {
    let mut bed = Bed::new();
    bed.put(0..ROWS, 1000);
    let reader = bed.db.begin_read().expect("begin");
    (0..3).for_each(|round| bed.put(scattered(round), 1000));
    let stopped = bed.db.compact_with(|_| std::ops::ControlFlow::Break(())).expect("compact");
    assert!(!stopped.is_done());
    let left = bed.db.compact().expect("compact");
    assert!(left.is_held, "{left:?}");
    drop(reader);
    assert!(bed.db.compact().expect("compact").is_done());
}
