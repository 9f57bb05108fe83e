//! What opening takes: until the first row has been read, and until everything
//! can be used, with an index image and without. And what a row takes in memory
//! and in the image. Then the same after a kill: a process updates rows for two
//! seconds, and is killed.
//!
//!     cargo run --release -p pantile-bench --example opening -- DIRECTORY 100000 1000000

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pantile_bench::cpu::CpuTime;

use pantile::{
    Database, Durability, IndexDef, MediumKind, Options, Range, Result, Table, TableDef, Type, Value,
};

/// Rows of a transaction that loads.
const BATCH: u64 = 10_000;
/// Openings of one database.
const TIMES: usize = 5;
/// How long rows are updated before the kill.
const WRITING: Duration = Duration::from_secs(2);
/// The first argument of the process that is killed.
const WRITE: &str = "--write";

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a directory");
    if directory == WRITE {
        let [path, rows] = [arguments.next(), arguments.next()].map(|one| one.expect("a path and a number"));
        return write_on(Path::new(&path), rows.parse().expect("a number of rows"));
    }
    let sizes = arguments.map(|rows| rows.parse().expect("a number of rows"));
    // The first opening of a process also tests the clock.
    drop(Options::new().medium(MediumKind::Dram).open("unused")?);
    println!("medians of {TIMES}, in ms; bytes per row in anchors, in indexes, in the image");
    println!("rows, secondary indexes, image: open, first row, everything, a commit, close;");
    println!("  processor time until the first row and until everything; bytes");
    println!("and after a kill: first row, everything; processor time; MB scanned");
    for rows in sizes {
        for indexes in [0, 1] {
            let path = Path::new(&directory).join(format!("opening-{rows}-{indexes}"));
            if !path.exists() {
                load(&path, rows, indexes)?;
            }
            for image in [true, false] {
                measure(&path, rows, indexes, image)?;
            }
            for image in [true, false] {
                measure_killed(&path, rows, indexes, image)?;
            }
        }
    }
    Ok(())
}

fn options() -> Options {
    Options::new().durability(Durability::None)
}

/// Closes the database and leaves an image, for the next measurement.
fn leave_image(path: &Path, indexes: usize) -> Result<()> {
    let db = options().open(path)?;
    let table = db.table("rows")?;
    use_all(&db, &table, indexes)?;
    write_one(&db, &table, 0)?;
    db.close()
}

/// Keys in an order that is not theirs.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn load(path: &Path, rows: u64, indexes: usize) -> Result<()> {
    let db = options().open(path)?;
    let mut def = TableDef::new("rows")
        .column("id", Type::U64)
        .column("group", Type::U64)
        .column("data", Type::Bytes(100))
        .primary_key(["id"]);
    if indexes > 0 {
        def = def.index(IndexDef::new("by_group", ["group"]));
    }
    let table = db.create_table(def)?;
    for first in (0..rows).step_by(BATCH as usize) {
        db.run(|txn| {
            for n in first..(first + BATCH).min(rows) {
                txn.insert(&table, &[key(n).into(), (n % 1000).into(), (&[7u8; 84][..]).into()])?;
            }
            Ok(())
        })?;
    }
    let began = Instant::now();
    db.close()?;
    println!("loaded {rows} rows; closed in {:.1} ms", ms(began.elapsed()));
    Ok(())
}

/// Updates rows until the process is killed.
fn write_on(path: &Path, rows: u64) -> Result<()> {
    let db = options().open(path)?;
    let table = db.table("rows")?;
    write_one(&db, &table, 0)?;
    println!("begun");
    let began = Instant::now();
    let mut n = began.elapsed().as_nanos() as u64;
    // Nobody kills it if its parent has been killed.
    while began.elapsed() < WRITING * 10 {
        db.run(|txn| {
            for _ in 0..20 {
                n = key(n).rotate_left(17) + 1;
                txn.upsert(&table, &row(n % rows))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn measure_killed(path: &Path, rows: u64, indexes: usize, image: bool) -> Result<()> {
    let (mut times, mut work, mut scanned): ([Vec<Duration>; 2], _, _) = (Default::default(), [0.0; 2], 0);
    leave_image(path, indexes)?;
    for turn in 0..TIMES as u64 {
        let program = std::env::current_exe().expect("this program");
        let (path_of, rows_of) = (path.as_os_str(), rows.to_string());
        let mut command = Command::new(program);
        let mut child =
            command.arg(WRITE).arg(path_of).arg(rows_of).stdout(Stdio::piped()).spawn().expect("a process");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("it begins");
        std::thread::sleep(WRITING);
        child.kill().and_then(|()| child.wait()).expect("it is killed");
        let (began, before) = (Instant::now(), CpuTime::now());
        let db = options().index_image(image).open(path)?;
        let table = db.table("rows")?;
        read(&db, &table, key(turn * 7 % rows))?;
        times[0].push(began.elapsed());
        work[0] = worked(&before);
        use_all(&db, &table, indexes)?;
        times[1].push(began.elapsed());
        work[1] = worked(&before);
        scanned = db.recovery().bytes_scanned >> 20;
        db.close()?;
    }
    let [first, all] = times.map(median);
    println!(
        "{rows}, {indexes}, {image}, killed: {first:.2}, {all:.2}; {:.1}, {:.1}; {scanned}",
        work[0], work[1]
    );
    Ok(())
}

fn measure(path: &Path, rows: u64, indexes: usize, image: bool) -> Result<()> {
    let mut times: [Vec<Duration>; 5] = Default::default();
    let (mut bytes, mut work) = ([0.0; 2], [0.0; 2]);
    leave_image(path, indexes)?;
    let in_image = std::fs::metadata(path.join("pantile.image")).map_or(0, |file| file.len());
    for turn in 0..TIMES as u64 {
        let (began, before) = (Instant::now(), CpuTime::now());
        let db = options().index_image(image).open(path)?;
        times[0].push(began.elapsed());
        let table = db.table("rows")?;
        read(&db, &table, key(turn * 7 % rows))?;
        times[1].push(began.elapsed());
        work[0] = worked(&before);
        use_all(&db, &table, indexes)?;
        times[2].push(began.elapsed());
        work[1] = worked(&before);
        write_one(&db, &table, turn * 7 % rows)?;
        times[3].push(began.elapsed());
        let stats = db.stats();
        bytes = [stats.anchor_bytes, stats.index_bytes].map(|bytes| bytes as f64 / rows as f64);
        let began = Instant::now();
        db.close()?;
        times[4].push(began.elapsed());
    }
    let [open, first, all, commit, close] = times.map(median);
    let [anchors, trees] = bytes;
    let in_image = in_image as f64 / rows as f64;
    println!(
        "{rows}, {indexes}, {image}: {open:.2}, {first:.2}, {all:.2}, {commit:.2}, {close:.2}; \
         {:.1}, {:.1}; {anchors:.1}, {trees:.1}, {in_image:.1}",
        work[0], work[1]
    );
    Ok(())
}

/// Processor time of all threads since then, in milliseconds.
fn worked(since: &CpuTime) -> f64 {
    let took = CpuTime::now().since(since);
    (took.user_seconds + took.system_seconds) * 1e3
}

/// A row as it is after an update.
fn row(n: u64) -> [Value<'static>; 3] {
    [key(n).into(), (n % 1000).into(), (&[8u8; 84][..]).into()]
}

fn write_one(db: &Database, table: &Table, n: u64) -> Result<()> {
    db.run(|txn| txn.upsert(table, &row(n)).map(drop))
}

fn read(db: &Database, table: &Table, key: u64) -> Result<()> {
    let txn = db.begin_read()?;
    assert!(txn.get(table, &[key.into()])?.is_some(), "a row that was loaded");
    Ok(())
}

/// Uses each index.
fn use_all(db: &Database, table: &Table, indexes: usize) -> Result<()> {
    let txn = db.begin_read()?;
    txn.scan(table, Range::all())?.next().transpose()?;
    if indexes > 0 {
        txn.scan_index(&table.index("by_group")?, Range::all())?.next().transpose()?;
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    ms(times[times.len() / 2])
}
