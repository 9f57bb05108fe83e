//! Nothing touches the medium after the record that says closed (I-20).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use pantile_media::{DramMedium, FileMedium, FileOptions, MapOptions};

use pantile::{Database, Error, Medium, Options, Table, TableDef, Type, Value};
use pantile_testkit::{Heard, HeardMedium, ScratchDir, await_that};

/// Counts what is done to a medium after it was expected to be left alone, and
/// what one thread has synced.
#[derive(Debug, Default)]
struct Watch {
    is_closed: AtomicBool,
    late: AtomicU64,
    /// Whose syncs count, and their number.
    watched: Mutex<Option<ThreadId>>,
    syncs: AtomicU64,
}

impl Watch {
    fn hear(&self, call: Heard) {
        if matches!(call, Heard::Write { .. } | Heard::Sync | Heard::Discard { .. }) {
            self.late.fetch_add(u64::from(self.is_closed.load(Ordering::SeqCst)), Ordering::SeqCst);
        }
        if call == Heard::Sync && *self.watched.lock().expect("no panic") == Some(thread::current().id()) {
            self.syncs.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn put(db: &Database, table: &Table, ids: std::ops::Range<u64>, byte: u8) -> pantile::Result<()> {
    let mut txn = db.begin()?;
    for id in ids {
        txn.upsert(table, &[id.into(), Value::Bytes(&[byte; 500])])?;
    }
    txn.commit().map(|_| ())
}

/// A process that was killed while it closed the database may have left the record that says so in the page cache only.
/// The first write of the next one takes the place of the record before it, which is all that a power cut would leave.
#[test]
fn the_first_write_syncs_before_it_gives_up_a_record() {
    let place = ScratchDir::new();
    let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let take = || std::mem::take(&mut *heard.lock().expect("no panic"));
    let open = || {
        let file = FileMedium::open(place.path(), FileOptions::default()).expect("a file");
        let listener = Arc::clone(&heard);
        let hear = move |call| listener.lock().expect("no panic").push(call);
        let medium: Arc<dyn Medium> = Arc::new(HeardMedium::over(file, hear));
        Options::new().on_medium(medium).worker(false).open("unused").expect("open")
    };
    let db = open();
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    put(&db, &table, 0..100, 1).expect("rows");
    drop(table);
    db.close().expect("close");
    take();
    let db = open();
    let table = db.table("t").expect("the table");
    let is_write = |call: &Heard| matches!(call, Heard::Write { .. });
    assert!(!take().iter().any(is_write), "opening writes nothing");
    put(&db, &table, 0..1, 2).expect("a row");
    let first = take().into_iter().find(|call| is_write(call) || *call == Heard::Sync);
    assert_eq!(first, Some(Heard::Sync));
}

/// A commit finds no space and goes on making some, beside a thread that closes
/// the database.
#[test]
fn a_thread_that_makes_room_does_not_go_on_after_the_database_is_closed() {
    let map = MapOptions { max_bytes: Some(32 << 20), ..MapOptions::default() };
    let watch: Arc<Watch> = Arc::default();
    let heard = Arc::clone(&watch);
    let medium: Arc<dyn Medium> =
        Arc::new(HeardMedium::over(DramMedium::new(map).expect("memory"), move |call| heard.hear(call)));
    let open = || Options::new().on_medium(Arc::clone(&medium)).worker(false).open("unused");
    let db = open().expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    // Everything is alive, so there is no space to be found.
    let mut rows = 0;
    while put(&db, &table, rows..rows + 500, 1).is_ok() {
        rows += 500;
    }
    let writer = {
        let (db, table, watch) = (db.clone(), table.clone(), Arc::clone(&watch));
        thread::spawn(move || {
            loop {
                watch.syncs.store(0, Ordering::SeqCst);
                *watch.watched.lock().expect("no panic") = Some(thread::current().id());
                match put(&db, &table, rows..rows + 500, 2) {
                    Err(Error::StorageFull { .. }) => {}
                    Err(Error::Closed) => return,
                    other => panic!("{other:?}"),
                }
            }
        })
    };
    // State records are written with two syncs each, and a commit writes one
    // at most.
    await_that("the writer makes room", || watch.syncs.load(Ordering::SeqCst) > 3);
    let expected = db.stats().tuples;
    db.clone().close().expect("close");
    watch.is_closed.store(true, Ordering::SeqCst);
    writer.join().expect("the writer ends");
    drop((table, db));
    assert_eq!(watch.late.load(Ordering::SeqCst), 0, "writes and syncs after the database was closed");
    watch.is_closed.store(false, Ordering::SeqCst);
    let db = open().expect("a database that was closed");
    assert!(db.recovery().was_closed);
    assert_eq!(db.stats().tuples, expected);
}
