//! Nothing touches the medium after the record that says closed (I-20).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use pantile_media::{DramMedium, Facts, MapOptions, MediumError, MediumStatus};

use pantile::{Database, Error, Medium, Options, Table, TableDef, Type, Value};
use pantile_testkit::await_that;

/// Counts what is done to it after it was expected to be left alone, and what
/// one thread has synced.
#[derive(Debug)]
struct Watched {
    inner: Arc<DramMedium>,
    is_closed: AtomicBool,
    late: AtomicU64,
    /// Whose syncs count, and their number.
    watched: Mutex<Option<ThreadId>>,
    syncs: AtomicU64,
}

impl Watched {
    fn touch(&self) {
        self.late.fetch_add(u64::from(self.is_closed.load(Ordering::SeqCst)), Ordering::SeqCst);
    }
}

// SAFETY: all bytes are those of another medium that nobody else has, and this
// one is used in its place.
#[allow(unsafe_code, reason = "it is a medium")]
unsafe impl Medium for Watched {
    fn facts(&self) -> &Facts {
        self.inner.facts()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.inner.grow(len)
    }
    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.touch();
        // SAFETY: as the caller promises.
        unsafe { self.inner.write(offset, bytes) }
    }
    fn flush(&self, offset: u64, len: u64) {
        self.inner.flush(offset, len);
    }
    fn fence(&self) -> Result<(), MediumError> {
        self.inner.fence()
    }
    fn sync_all(&self) -> Result<(), MediumError> {
        self.touch();
        if *self.watched.lock().expect("no panic") == Some(thread::current().id()) {
            self.syncs.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.sync_all()
    }
    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.touch();
        // SAFETY: as the caller promises.
        unsafe { self.inner.discard(offset, len) }
    }
    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.restore(offset, len) }
    }
    fn status(&self) -> MediumStatus {
        self.inner.status()
    }
}

fn put(db: &Database, table: &Table, ids: std::ops::Range<u64>, byte: u8) -> pantile::Result<()> {
    let mut txn = db.begin()?;
    for id in ids {
        txn.upsert(table, &[id.into(), Value::Bytes(&[byte; 500])])?;
    }
    txn.commit().map(|_| ())
}

/// A commit finds no space and goes on making some, beside a thread that closes
/// the database.
#[test]
fn a_thread_that_makes_room_does_not_go_on_after_the_database_is_closed() {
    let map = MapOptions { max_bytes: Some(32 << 20), ..MapOptions::default() };
    let medium = Arc::new(Watched {
        inner: DramMedium::new(map).expect("memory"),
        is_closed: AtomicBool::new(false),
        late: AtomicU64::new(0),
        watched: Mutex::default(),
        syncs: AtomicU64::new(0),
    });
    let open =
        || Options::new().on_medium(Arc::clone(&medium) as Arc<dyn Medium>).worker(false).open("unused");
    let db = open().expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    // Everything is alive, so there is no space to be found.
    let mut rows = 0;
    while put(&db, &table, rows..rows + 500, 1).is_ok() {
        rows += 500;
    }
    let writer = {
        let (db, table, medium) = (db.clone(), table.clone(), Arc::clone(&medium));
        thread::spawn(move || {
            loop {
                medium.syncs.store(0, Ordering::SeqCst);
                *medium.watched.lock().expect("no panic") = Some(thread::current().id());
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
    await_that("the writer makes room", || medium.syncs.load(Ordering::SeqCst) > 3);
    let expected = db.stats().tuples;
    db.clone().close().expect("close");
    medium.is_closed.store(true, Ordering::SeqCst);
    writer.join().expect("the writer ends");
    drop((table, db));
    assert_eq!(medium.late.load(Ordering::SeqCst), 0, "writes and syncs after the database was closed");
    medium.is_closed.store(false, Ordering::SeqCst);
    let db = open().expect("a database that was closed");
    assert!(db.recovery().was_closed);
    assert_eq!(db.stats().tuples, expected);
}
