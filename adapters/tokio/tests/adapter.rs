//! The adapter as programs use it. Gates, not times, decide when a sync ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use pantile::{Database, Error, MediumKind, Options, Range, Table, TableDef, TransactionOptions, Type};
use pantile_testkit::{GatedMedium, run_case};
use pantile_tokio::AsyncDatabase;

fn in_memory() -> Database {
    Options::new().medium(MediumKind::Dram).open("unused").expect("open")
}

fn table_of(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
    db.create_table(def).expect("create")
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("an id")).collect()
}

async fn insert(db: AsyncDatabase, table: Table, id: u64) -> pantile::Result<()> {
    db.run(move |txn| txn.insert(&table, &[id.into()])).await
}

/// Runs on a single worker: a call that blocked it would keep the gate closed for ever.
fn on_one_worker<F: Future<Output = ()>>(name: &str, case: impl FnOnce() -> F + Send + 'static) {
    run_case(name, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(case());
    });
}

async fn await_waiting(medium: &Arc<GatedMedium>, fences: usize) {
    let medium = Arc::clone(medium);
    tokio::task::spawn_blocking(move || medium.await_waiting(fences)).await.expect("they wait");
}

#[test]
fn timers_go_on_while_writers_wait_for_syncs() {
    on_one_worker("timers", || async {
        let medium = GatedMedium::new();
        let db = Options::new().on_medium(Arc::clone(&medium) as _).open("unused").expect("open");
        let table = table_of(&db);
        let db = AsyncDatabase::with_threads(db, 4);
        medium.close_gate();
        let writers: Vec<_> = (0..16).map(|id| tokio::spawn(insert(db.clone(), table.clone(), id))).collect();
        await_waiting(&medium, 1).await;
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(writers.iter().all(|writer| !writer.is_finished()), "nothing is durable yet");
        medium.open_gate(None);
        for writer in writers {
            writer.await.expect("no panic").expect("a commit");
        }
        assert_eq!(ids(db.database(), &table), Vec::from_iter(0..16));
    });
}

#[test]
fn one_task_has_many_commits_in_flight() {
    on_one_worker("in flight", || async {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().to_owned();
        let db = AsyncDatabase::open(move || Database::open(path)).await.expect("open");
        let table = db.call(table_of).await.expect("a call");
        let mut commits = Vec::new();
        for id in 0..64u64 {
            let table = table.clone();
            let published =
                db.publish(TransactionOptions::new(), move |txn| txn.insert(&table, &[id.into()])).await;
            commits.push(published.expect("visible").1);
        }
        assert_eq!(ids(db.database(), &table).len(), 64);
        let times = futures::future::try_join_all(commits).await.expect("durable");
        assert!(times.is_sorted());
        db.close().await.expect("close");
        let db = Database::open(dir.path()).expect("open again");
        assert_eq!(ids(&db, &db.table("t").expect("a table")).len(), 64);
    });
}

#[test]
fn a_failed_sync_reaches_the_task() {
    on_one_worker("failure", || async {
        let medium = GatedMedium::new();
        let db = Options::new().on_medium(Arc::clone(&medium) as _).open("unused").expect("open");
        let table = table_of(&db);
        let db = AsyncDatabase::new(db);
        medium.close_gate();
        let writer = tokio::spawn(insert(db.clone(), table, 1));
        await_waiting(&medium, 1).await;
        medium.open_gate(Some("the device is gone"));
        let error = writer.await.expect("no panic").expect_err("it is not durable");
        assert!(matches!(error, Error::MediumFailed { .. }), "{error}");
    });
}

/// Of a call that is dropped while it waits for a thread nothing happens; one that has begun ends whole.
#[test]
fn a_dropped_call_never_began_or_ends_whole() {
    on_one_worker("dropped", || async {
        let db = AsyncDatabase::with_threads(in_memory(), 1);
        let table = table_of(db.database());
        let go = Arc::new(AtomicBool::new(false));
        let (began, has_begun) = tokio::sync::oneshot::channel();
        let (first, gate) = (table.clone(), Arc::clone(&go));
        let (on, mut began) = (db.clone(), Some(began));
        let begun = tokio::spawn(async move {
            on.run(move |txn| {
                txn.insert(&first, &[1u64.into()])?;
                began.take().into_iter().for_each(|began| began.send(()).expect("the test waits"));
                pantile_testkit::await_that("the gate is open", || gate.load(Ordering::Acquire));
                txn.insert(&first, &[2u64.into()])
            })
            .await
        });
        has_begun.await.expect("it begins");
        let waiting = tokio::spawn(insert(db.clone(), table.clone(), 3));
        tokio::task::yield_now().await;
        begun.abort();
        waiting.abort();
        assert!(begun.await.is_err_and(|ended| ended.is_cancelled()));
        assert!(waiting.await.is_err_and(|ended| ended.is_cancelled()));
        go.store(true, Ordering::Release);
        // Comes after both.
        db.call(|_| ()).await.expect("a call");
        assert_eq!(ids(db.database(), &table), [1, 2]);
    });
}

/// The thread is one of tokio's here, which other work has.
#[test]
fn a_call_that_is_dropped_before_tokio_has_a_thread_never_begins() {
    run_case("no thread", || {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build();
        runtime.expect("a runtime").block_on(async {
            let db = AsyncDatabase::new(in_memory());
            let table = table_of(db.database());
            let (go, gate) = std::sync::mpsc::channel::<()>();
            let other = tokio::task::spawn_blocking(move || gate.recv());
            let waiting = tokio::spawn(insert(db.clone(), table.clone(), 1));
            tokio::task::yield_now().await;
            waiting.abort();
            assert!(waiting.await.is_err_and(|ended| ended.is_cancelled()));
            go.send(()).expect("it waits");
            other.await.expect("no panic").expect("it may go on");
            // Comes after both.
            db.call(|_| ()).await.expect("a call");
            assert_eq!(ids(db.database(), &table), []);
        });
    });
}

/// With one thread: a stream that held it would keep the writers between its rows waiting for ever.
#[test]
fn a_stream_reads_one_state_and_leaves_the_thread_to_others() {
    on_one_worker("stream", || async {
        let db = AsyncDatabase::with_threads(in_memory(), 1);
        let table = table_of(db.database());
        let fill =
            |txn: &mut pantile::Transaction| txn.insert_many(&table, (0..1000u64).map(|id| [id.into()]));
        db.database().run(fill).expect("rows");
        let read = table.clone();
        let options = TransactionOptions::new().isolation(pantile::Isolation::Snapshot).read_only(true);
        let mut rows =
            db.scan(options, move |txn| txn.cursor(&read, Range::all()), |row| row.get::<u64>("id"));
        let mut seen = Vec::new();
        while let Some(id) = rows.next().await {
            let id = id.expect("a row");
            seen.push(id);
            if id % 100 == 0 {
                insert(db.clone(), table.clone(), 10_000 + id).await.expect("a commit");
            }
        }
        assert_eq!(seen, Vec::from_iter(0..1000));
        assert_eq!(ids(db.database(), &table).len(), 1010);
    });
}

/// A batch is read when the one before has been taken, and not before.
#[test]
fn a_stream_reads_no_further_than_it_is_asked() {
    on_one_worker("back-pressure", || async {
        let db = AsyncDatabase::new(in_memory());
        let table = table_of(db.database());
        let fill =
            |txn: &mut pantile::Transaction| txn.insert_many(&table, (0..1000u64).map(|id| [id.into()]));
        db.database().run(fill).expect("rows");
        let options = TransactionOptions::new().read_only(true);
        let converted = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = Arc::clone(&converted);
        let mut rows = db.scan(
            options,
            move |txn| txn.cursor(&table, Range::all()),
            move |row| {
                count.fetch_add(1, Ordering::Relaxed);
                row.get::<u64>("id")
            },
        );
        assert_eq!(converted.load(Ordering::Relaxed), 0);
        rows.next().await.expect("a row").expect("an id");
        // Comes after whatever the stream has begun.
        db.call(|_| ()).await.expect("a call");
        let ahead = converted.load(Ordering::Relaxed);
        assert!(0 < ahead && ahead < 1000, "{ahead} rows");
        assert_eq!(rows.try_collect::<Vec<_>>().await.expect("rows").len(), 999);
    });
}

#[test]
fn an_error_ends_a_stream() {
    on_one_worker("stream error", || async {
        let db = AsyncDatabase::new(in_memory());
        let table = table_of(db.database());
        db.database().run(|txn| txn.insert(&table, &[1u64.into()])).expect("a row");
        let options = TransactionOptions::new().read_only(true);
        let mut rows =
            db.scan(options, move |txn| txn.cursor(&table, Range::all()), |row| row.get::<u64>("no such"));
        assert!(matches!(rows.next().await, Some(Err(Error::UnknownColumn { .. }))));
        assert!(rows.next().await.is_none());
    });
}

#[test]
fn a_panic_reaches_the_task_and_leaves_the_thread_free() {
    on_one_worker("panic", || async {
        let db = AsyncDatabase::with_threads(in_memory(), 1);
        let table = table_of(db.database());
        let on = db.clone();
        let body = async move { on.run(|_| -> pantile::Result<()> { panic!("of the body") }).await };
        let ended = tokio::spawn(body).await.expect_err("it panics");
        assert_eq!(*ended.into_panic().downcast::<&str>().expect("a message"), "of the body");
        insert(db.clone(), table.clone(), 1).await.expect("a commit");
        assert_eq!(ids(db.database(), &table), [1]);
    });
}

#[test]
fn closing_waits_for_calls_and_ends_later_ones() {
    on_one_worker("closing", || async {
        let db = AsyncDatabase::with_threads(in_memory(), 2);
        let table = table_of(db.database());
        let writers: Vec<_> = (0..16).map(|id| tokio::spawn(insert(db.clone(), table.clone(), id))).collect();
        tokio::task::yield_now().await;
        db.clone().close().await.expect("close");
        for writer in writers {
            writer.await.expect("no panic").expect("it came before");
        }
        assert!(matches!(insert(db, table, 99).await, Err(Error::Closed)));
    });
}
