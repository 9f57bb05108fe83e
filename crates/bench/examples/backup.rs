//! What a backup takes beside writers, and how much of their rate they keep.
//! In each round the device, a backup alone, writers alone, writers beside a
//! backup and beside one with a rate, and writers alone again are measured one
//! after the other.
//!
//!     cargo run --release -p pantile-bench --example backup -- DIRECTORY 1000 3

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pantile::tools::BackupReport;
use pantile::{BackupOptions, Database, Durability, Options, Result, Table, TableDef, Type, Value};
use pantile_bench::cpu::CpuTime;

/// Rows of a transaction that loads.
const BATCH: u64 = 5_000;
/// How long writers work alone.
const ALONE: Duration = Duration::from_secs(2);
const WRITERS: u64 = 2;
/// Bytes a second of the backups that are held back.
const RATE: u64 = 100_000_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a directory");
    let mut number = |default| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (megabytes, rounds) = (number(1000), number(3));
    println!("{megabytes} MB of rows, {WRITERS} writers of one row a transaction; rounds of:");
    println!("the device and a backup alone, MB/s; its processor seconds;");
    println!("writers alone before and after, commits/s; a backup beside them, MB/s; writers beside it;");
    println!("the same with a backup that copies at most {} MB/s", RATE / 1_000_000);
    for (row_bytes, durability) in [1000, 100]
        .into_iter()
        .flat_map(|bytes| [Durability::Sync, Durability::None].map(|durability| (bytes, durability)))
    {
        let place = Path::new(&directory).join("measured");
        let db = Options::new().durability(durability).open(place.join("db"))?;
        let rows = megabytes * 1_000_000 / (row_bytes + 24);
        let table = load(&db, rows, row_bytes)?;
        println!("rows of {row_bytes} bytes, {durability:?}");
        for _ in 0..rounds {
            round(&db, &table, rows, row_bytes, &place, megabytes)?;
        }
        drop(table);
        db.close()?;
        fs::remove_dir_all(&place).expect("it is there");
    }
    Ok(())
}

fn round(
    db: &Database,
    table: &Table,
    rows: u64,
    row_bytes: u64,
    place: &Path,
    megabytes: u64,
) -> Result<()> {
    let device = write_to_device(place, megabytes);
    let before = CpuTime::now();
    let alone = back_up(db, place, BackupOptions::new())?;
    let took = CpuTime::now().since(&before);
    let worked = took.user_seconds + took.system_seconds;
    let wait = || -> Result<Option<BackupReport>> {
        std::thread::sleep(ALONE);
        Ok(None)
    };
    let (first, _) = beside_writers(db, table, rows, row_bytes, wait)?;
    let [fast, slow] = [BackupOptions::new(), BackupOptions::new().rate(RATE)]
        .map(|options| beside_writers(db, table, rows, row_bytes, || back_up(db, place, options).map(Some)));
    let (last, _) = beside_writers(db, table, rows, row_bytes, wait)?;
    print!(
        "  {device:.0}, {:.0} ({:.0} %); {worked:.1}; {first:.0}, {last:.0}",
        rate(&alone),
        rate(&alone) / device * 100.0
    );
    for measured in [fast, slow] {
        let (beside, report) = measured?;
        let rate = rate(&report.expect("a backup was made"));
        let kept = beside / ((first + last) / 2.0) * 100.0;
        print!("; {rate:.0} ({:.0} %), {beside:.0} ({kept:.0} %)", rate / device * 100.0);
    }
    println!();
    Ok(())
}

/// Megabytes of rows a second.
fn rate(report: &BackupReport) -> f64 {
    report.bytes as f64 / 1e6 / report.seconds
}

/// Writes as many bytes to a file, and syncs it once, as `dd conv=fdatasync` does.
fn write_to_device(place: &Path, megabytes: u64) -> f64 {
    let path = place.join("written");
    let piece: Vec<u8> = (0..1_000_000u64).map(|n| (key(n) >> 56) as u8).collect();
    let began = Instant::now();
    let mut file = File::create(&path).expect("a file");
    (0..megabytes).for_each(|_| file.write_all(&piece).expect("written"));
    file.sync_data().expect("synced");
    let seconds = began.elapsed().as_secs_f64();
    fs::remove_file(&path).expect("it is there");
    megabytes as f64 / seconds
}

fn back_up(db: &Database, place: &Path, options: BackupOptions) -> Result<BackupReport> {
    let path = place.join("backup");
    let report = db.backup_to(&path, &options)?;
    assert!(report.is_current);
    fs::remove_dir_all(&path).expect("it is there");
    Ok(report)
}

/// Commits a second of writers beside what `work` does.
fn beside_writers<T>(
    db: &Database,
    table: &Table,
    rows: u64,
    row_bytes: u64,
    work: impl FnOnce() -> Result<T>,
) -> Result<(f64, T)> {
    let (done, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (done, commits) = (&done, &commits);
            scope.spawn(move || {
                let data = vec![writer as u8; row_bytes as usize - 8];
                let mut n = writer;
                while !done.load(Ordering::Relaxed) {
                    n = key(n).rotate_left(17) + 1;
                    let row = [key(n % rows).into(), Value::Bytes(&data)];
                    db.run(|txn| txn.upsert(table, &row)).expect("a commit");
                    commits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_millis(500));
        let (began, before) = (Instant::now(), commits.load(Ordering::Relaxed));
        let worked = work();
        let made = commits.load(Ordering::Relaxed) - before;
        let seconds = began.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        Ok((made as f64 / seconds, worked?))
    })
}

/// Keys in an order that is not theirs.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn load(db: &Database, rows: u64, row_bytes: u64) -> Result<Table> {
    let def = TableDef::new("rows").column("id", Type::U64).column("data", Type::Bytes(1000));
    let table = db.create_table(def.primary_key(["id"]))?;
    let data = vec![7; row_bytes as usize - 8];
    for first in (0..rows).step_by(BATCH as usize) {
        db.run(|txn| {
            let mut some = first..(first + BATCH).min(rows);
            some.try_for_each(|n| txn.insert(&table, &[key(n).into(), Value::Bytes(&data)]))
        })?;
    }
    Ok(table)
}
