//! A job queue for several workers.
//!
//! Every job is done at least once. A job that fails is tried again later, and a job that always
//! fails is put aside.
//!
//! A worker takes a job with a lease. If the worker dies, the lease expires and another worker
//! takes the job.
//!
//! Keep readers of the database short: beside a long one, taking a job steps over the entries of
//! all jobs that were done since it began (docs/guide/space.md).
//!
//! `cargo run -p pantile --example job_queue`

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pantile::{
    Database, Index, IndexDef, Isolation, Range, Result, Table, TableDef, TransactionOptions, Type,
};

const JOBS: u64 = 60;
const TRIES: u32 = 3;
const LEASE: u64 = 200;

struct Queue {
    db: Database,
    jobs: Table,
    by_due: Index,
    dead: Table,
}

impl Queue {
    fn open(db: Database) -> Result<Self> {
        let jobs = db.open_or_create(
            TableDef::new("jobs")
                .column("id", Type::U64)
                .column("due", Type::U64) // milliseconds since 1970
                .column("tries", Type::U32)
                .column("task", Type::String(200))
                .primary_key(["id"])
                .index(IndexDef::new("by_due", ["due"])),
        )?;
        let dead = TableDef::new("dead").column("id", Type::U64).column("task", Type::String(200));
        let dead = db.open_or_create(dead.primary_key(["id"]))?;
        Ok(Self { by_due: jobs.index("by_due")?, db, jobs, dead })
    }

    /// By the clock of the system: due times are stored, and must mean the same when the process
    /// has started again. A clock that is set back makes jobs wait longer, and loses none.
    fn now() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock shows a time after 1970");
        since.as_millis() as u64
    }

    /// Takes the job that has been due for longest. Jobs that other workers are
    /// just taking are skipped, so workers do not wait for each other.
    fn take(&self) -> Result<Option<(u64, u32, String)>> {
        let now = Self::now();
        let until = [now.into()];
        self.db.run_with(TransactionOptions::new().isolation(Isolation::ReadCommitted), |txn| {
            let due = Range::all().to(std::ops::Bound::Included(&until));
            let mut cursor = txn.index_cursor(&self.by_due, due)?;
            let Some(row) = cursor.next_for_update(txn, true)? else { return Ok(None) };
            let (id, tries) = (row.get::<u64>("id")?, row.get::<u32>("tries")? + 1);
            let task = row.get::<&str>("task")?.to_owned();
            // The job is due again when the lease has run out.
            txn.update(&self.jobs, &[id.into()], &[(1, (now + LEASE).into()), (2, tries.into())])?;
            Ok(Some((id, tries, task)))
        })
    }

    fn done(&self, id: u64) -> Result<bool> {
        self.db.run(|txn| txn.delete(&self.jobs, &[id.into()]))
    }

    /// Tries again in a moment, a longer one each time, or gives up.
    fn failed(&self, id: u64, tries: u32, task: &str) -> Result<()> {
        self.db.run(|txn| {
            if tries < TRIES {
                let due = Self::now() + 10 * u64::from(tries);
                return txn.update(&self.jobs, &[id.into()], &[(1, due.into())]).map(|_| ());
            }
            txn.delete(&self.jobs, &[id.into()])?;
            txn.upsert(&self.dead, &[id.into(), task.into()]).map(|_| ())
        })
    }

    fn is_empty(&self) -> Result<bool> {
        self.db.begin_read()?.is_empty(&self.jobs, Range::all())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let queue = Queue::open(Database::open(dir.path())?)?;
    queue.db.run(|txn| {
        (0..JOBS).try_for_each(|id| {
            let task = if id % 20 == 7 { "broken" } else { "mail" };
            txn.insert(&queue.jobs, &[id.into(), 0u64.into(), 0u32.into(), task.into()])
        })
    })?;

    // This worker takes a job and dies with it, and its process does.
    let before = Queue::now();
    let abandoned = queue.take()?.expect("a job is due").0;
    drop(queue);

    // The next process finds the lease as it was.
    let queue = Queue::open(Database::open(dir.path())?)?;
    let lease = {
        let txn = queue.db.begin_read()?;
        let job = txn.get(&queue.jobs, &[abandoned.into()])?.expect("it is not done");
        job.get::<u64>("due")?
    };
    assert!((before + LEASE..=Queue::now() + LEASE).contains(&lease), "it has not been renewed");
    let done: Vec<AtomicU32> = (0..JOBS).map(|_| AtomicU32::new(0)).collect();
    let work = || -> Result<()> {
        while !queue.is_empty()? {
            match queue.take()? {
                Some((id, tries, task)) if task == "broken" => queue.failed(id, tries, &task)?,
                Some((id, ..)) => {
                    done[id as usize].fetch_add(1, Ordering::Relaxed);
                    queue.done(id)?;
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker"))
    })?;

    let dead = queue.db.begin_read()?.count(&queue.dead, Range::all())?;
    let worked = done.iter().filter(|done| done.load(Ordering::Relaxed) > 0).count() as u64;
    assert_eq!((dead, worked), (3, JOBS - 3));
    assert!(done[abandoned as usize].load(Ordering::Relaxed) > 0, "the lease has run out");
    println!("{worked} jobs are done, job {abandoned} of a dead worker among them; {dead} were put aside");
    Ok(())
}
