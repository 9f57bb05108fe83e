//! The measurements.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pantile_bench::memory::Failure;
use pantile_testkit::Random;

use super::store::{How, Peer, Row, Store, VALUE_BYTES};

/// How much is done.
pub struct Load<'l> {
    pub rows: u64,
    pub time: Duration,
    /// What is measured has this in its name.
    pub only: &'l str,
}

/// A figure of one store.
#[derive(Clone)]
pub struct Figure {
    pub what: &'static str,
    pub value: f64,
    /// Whether less is better.
    pub is_cost: bool,
}

/// Rows in a transaction of a load.
const BATCH: u64 = 10_000;
/// Rows of the database whose commits are durable.
const FEW: u64 = 10_000;
/// Rows in the queue, and where its keys begin.
const QUEUE: u64 = 1_000;
const QUEUE_FROM: u64 = 1 << 40;
/// Keys of rows that are inserted at random are above these.
const INSERTED_FROM: u64 = 1 << 62;
/// Updates of each row before the space is measured, and rows in a transaction.
const TIMES: u64 = 5;
const UPDATES: usize = 100;
/// The stores may clean up after the updates.
const PAUSE: Duration = Duration::from_secs(3);

const AFTER_UPDATES: &str = "MB on disk after 5 updates of each row";
const WITH_INDEX: &str = "load with an index, rows";
const INSERTS: &str = "10 inserts at random keys, 1 thread";
const WHOLE: &str = "scan of the whole table, rows, 1 thread";
/// Values that are larger than a row: their bytes, and what is measured.
const LARGE: [(usize, &str, &str); 3] = [
    (1 << 10, "values of 1 KB, loaded, MB", "values of 1 KB, read, MB, 1 thread"),
    (16 << 10, "values of 16 KB, loaded, MB", "values of 16 KB, read, MB, 1 thread"),
    (1 << 20, "values of 1 MB, loaded, MB", "values of 1 MB, read, MB, 1 thread"),
];
/// Bytes of all values of one size, and of those of a transaction.
const ALL_LARGE: usize = 128 << 20;
const LARGE_BATCH: usize = 1 << 20;
const QUEUE_TURNS: &str = "queue: a row in, a row out, 1 thread";
/// Clients, and what they do.
const DURABLE: [(u64, &str); 2] =
    [(1, "durable updates of a row, 1 client"), (16, "durable updates of a row, 16 clients")];

/// What clients do over and over.
type Act<'a> = dyn Fn(&mut Random) -> Result<(), Failure> + Sync + 'a;

const PLAIN: How = How { durable: false, indexed: false };

/// Measures a store in an empty directory.
pub fn measure(peer: &dyn Peer, dir: &Path, load: &Load<'_>, seed: u64) -> Result<Vec<Figure>, Failure> {
    let mut figures = Figures { only: load.only, all: Vec::new() };
    let plain = made(dir, "plain")?;
    let store = peer.open(&plain, PLAIN)?;
    figures.rate("load in order, rows", fill(&*store, &plain, load.rows)?);
    if peer.keeps() {
        figures.cost("MB on disk after the load", megabytes(&plain)?);
    }
    loads(&*store, load, seed, &mut figures)?;
    if peer.keeps() && figures.wants(AFTER_UPDATES) {
        rewrite(&*store, load.rows, seed)?;
        store.settle()?;
        thread::sleep(PAUSE);
        figures.cost(AFTER_UPDATES, megabytes(&plain)?);
    }
    drop(store);
    if peer.keeps() {
        let began = Instant::now();
        peer.open(&plain, PLAIN)?.work(&[load.rows / 2], &[])?;
        figures.cost("opening and a first read, ms", began.elapsed().as_secs_f64() * 1e3);
    }
    fs::remove_dir_all(&plain)?;
    if figures.wants(WITH_INDEX) {
        let indexed = made(dir, "indexed")?;
        let store = peer.open(&indexed, How { durable: false, indexed: true })?;
        figures.rate(WITH_INDEX, fill(&*store, &indexed, load.rows)?);
        drop(store);
        fs::remove_dir_all(&indexed)?;
    }
    if figures.wants(INSERTS) {
        let dir = made(dir, "inserts")?;
        let store = peer.open(&dir, PLAIN)?;
        fill(&*store, &dir, load.rows)?;
        let insert = |random: &mut Random| {
            let rows: Vec<_> = (0..10).map(|_| row(INSERTED_FROM | random.word() >> 2, random)).collect();
            store.load(&rows, false)
        };
        figures.rate(INSERTS, clients_do(1, load.time, seed, &insert)?);
        drop(store);
        fs::remove_dir_all(&dir)?;
    }
    large(peer, dir, load, seed, &mut figures)?;
    let durable =
        DURABLE.into_iter().filter(|(_, what)| peer.keeps() && figures.wants(what)).collect::<Vec<_>>();
    if !durable.is_empty() {
        let store = peer.open(&made(dir, "durable")?, How { durable: true, indexed: false })?;
        fill(&*store, dir, FEW)?;
        for (clients, what) in durable {
            let update = |random: &mut Random| store.work(&[], &[row(random.below(FEW), random)]).map(drop);
            figures.rate(what, clients_do(clients, load.time, seed, &update)?);
        }
    }
    Ok(figures.all)
}

/// Loads and reads larger values, each size in a database of its own.
fn large(
    peer: &dyn Peer,
    dir: &Path,
    load: &Load<'_>,
    seed: u64,
    figures: &mut Figures<'_>,
) -> Result<(), Failure> {
    for (bytes, loaded, read) in LARGE {
        if !figures.wants(loaded) && !figures.wants(read) {
            continue;
        }
        let dir = made(dir, "large")?;
        let store = peer.open(&dir, PLAIN)?;
        let mut random = Random::new(seed, 3);
        let (count, mut taken) = (ALL_LARGE / bytes, Duration::ZERO);
        for keys in (0..count as u64).collect::<Vec<_>>().chunks(LARGE_BATCH / bytes) {
            let value =
                |key: &u64| (*key, (0..bytes / 8).flat_map(|_| random.word().to_le_bytes()).collect());
            let values: Vec<(u64, Vec<u8>)> = keys.iter().map(value).collect();
            let began = Instant::now();
            store.put_large(&values)?;
            taken += began.elapsed();
        }
        taken += synced(&*store, &dir)?;
        figures.rate(loaded, ALL_LARGE as f64 / 1e6 / taken.as_secs_f64());
        let get = |random: &mut Random| store.get_large(random.below(count as u64)).map(drop);
        figures.rate(read, clients_do(1, load.time, seed, &get)? * bytes as f64 / 1e6);
        drop(store);
        fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// What is measured for a time.
fn loads(store: &dyn Store, load: &Load<'_>, seed: u64, figures: &mut Figures<'_>) -> Result<(), Failure> {
    let mixed = |random: &mut Random| {
        let writes: Vec<_> = (0..5).map(|_| row(random.below(load.rows), random)).collect();
        store.work(&keys::<5>(random, load.rows), &writes).map(drop)
    };
    let updates = |random: &mut Random| {
        let writes: Vec<_> = (0..10).map(|_| row(random.below(load.rows), random)).collect();
        store.work(&[], &writes).map(drop)
    };
    let reads = |random: &mut Random| store.work(&keys::<10>(random, load.rows), &[]).map(drop);
    let scans = |random: &mut Random| store.scan(random.below(load.rows), 100).map(drop);
    let acts: [(_, _, &Act<'_>); 5] = [
        ("10 reads, 2 threads", 2, &reads),
        ("scans of 100 rows, 2 threads", 2, &scans),
        ("5 reads and 5 updates, 1 thread", 1, &mixed),
        ("5 reads and 5 updates, 2 threads", 2, &mixed),
        ("10 updates, 1 thread", 1, &updates),
    ];
    if figures.wants(WHOLE) {
        let rows = load.rows as usize;
        let scan = |_: &mut Random| store.scan(0, rows).map(drop);
        figures.rate(WHOLE, clients_do(1, load.time, seed, &scan)? * load.rows as f64);
    }
    for (what, clients, act) in acts {
        if figures.wants(what) {
            figures.rate(what, clients_do(clients, load.time, seed, act)?);
        }
    }
    if !figures.wants(QUEUE_TURNS) {
        return Ok(());
    }
    let mut random = Random::new(seed, 9);
    let waiting: Vec<_> = (QUEUE_FROM..QUEUE_FROM + QUEUE).map(|key| row(key, &mut random)).collect();
    store.load(&waiting, true)?;
    let head = AtomicU64::new(QUEUE_FROM);
    let turn = |random: &mut Random| {
        let head = head.fetch_add(1, Ordering::Relaxed);
        store.turn(&row(head + QUEUE, random), head)
    };
    figures.rate(QUEUE_TURNS, clients_do(1, load.time, seed, &turn)?);
    Ok(())
}

struct Figures<'f> {
    only: &'f str,
    all: Vec<Figure>,
}

impl Figures<'_> {
    fn wants(&self, what: &str) -> bool {
        what.contains(self.only)
    }

    fn rate(&mut self, what: &'static str, value: f64) {
        self.add(Figure { what, value, is_cost: false });
    }

    fn cost(&mut self, what: &'static str, value: f64) {
        self.add(Figure { what, value, is_cost: true });
    }

    fn add(&mut self, figure: Figure) {
        if self.wants(figure.what) {
            self.all.push(figure);
        }
    }
}

fn made(dir: &Path, name: &str) -> Result<std::path::PathBuf, Failure> {
    let dir = dir.join(name);
    fs::create_dir(&dir)?;
    Ok(dir)
}

fn row(key: u64, random: &mut Random) -> Row {
    let mut value = [0; VALUE_BYTES];
    for part in value.chunks_mut(8) {
        let word = random.word().to_le_bytes();
        part.copy_from_slice(&word[..part.len()]);
    }
    Row { key, owner: pantile_testkit::mix(key) % 100_000, value }
}

fn keys<const N: usize>(random: &mut Random, rows: u64) -> [u64; N] {
    std::array::from_fn(|_| random.below(rows))
}

/// Adds rows in the order of their keys, and waits until they are on the disk.
/// Returns rows a second.
fn fill(store: &dyn Store, dir: &Path, rows: u64) -> Result<f64, Failure> {
    let mut random = Random::new(rows, 1);
    let mut taken = Duration::ZERO;
    for first in (0..rows).step_by(BATCH as usize) {
        let batch: Vec<_> = (first..rows.min(first + BATCH)).map(|key| row(key, &mut random)).collect();
        let began = Instant::now();
        store.load(&batch, true)?;
        taken += began.elapsed();
    }
    Ok(rows as f64 / (taken + synced(store, dir)?).as_secs_f64())
}

/// Brings everything to the disk. Returns how long that takes.
fn synced(store: &dyn Store, dir: &Path) -> Result<Duration, Failure> {
    let began = Instant::now();
    store.settle()?;
    for file in files(dir)? {
        match File::open(file) {
            Ok(file) => file.sync_all()?,
            // A store that cleans up meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(began.elapsed())
}

/// Gives each row a new value, several times, in an order of its own.
fn rewrite(store: &dyn Store, rows: u64, seed: u64) -> Result<(), Failure> {
    let mut random = Random::new(seed, 2);
    let mut order: Vec<_> = (0..rows).collect();
    for _ in 0..TIMES {
        random.shuffle(&mut order);
        for keys in order.chunks(UPDATES) {
            let writes: Vec<_> = keys.iter().map(|&key| row(key, &mut random)).collect();
            store.work(&[], &writes)?;
        }
    }
    Ok(())
}

/// Lets so many threads do something for a time. Returns how often they did it a
/// second.
fn clients_do(clients: u64, time: Duration, seed: u64, act: &Act<'_>) -> Result<f64, Failure> {
    let began = Instant::now();
    let done = thread::scope(|scope| {
        let client = |n| {
            let mut random = Random::new(seed, 100 + n);
            let mut done = 0u64;
            while began.elapsed() < time {
                act(&mut random)?;
                done += 1;
            }
            Ok::<_, Failure>(done)
        };
        let threads: Vec<_> = (0..clients).map(|n| scope.spawn(move || client(n))).collect();
        let done = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        done.sum::<Result<u64, Failure>>()
    })?;
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

/// The files of a directory and of those in it.
fn files(dir: &Path) -> Result<Vec<std::path::PathBuf>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

/// What the files take on the disk.
fn megabytes(dir: &Path) -> Result<f64, Failure> {
    let mut blocks = 0;
    for file in files(dir)? {
        blocks += fs::metadata(file)?.blocks();
    }
    Ok(blocks as f64 * 512.0 / 1e6)
}
