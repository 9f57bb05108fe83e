//! What index images that are made while a database is open cost in throughput: two
//! threads update rows, with images and without, in turns.
//!
//!     cargo run --release -p pantile-bench --example image_cost -- DIRECTORY

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pantile::{Database, Durability, Options, Result, Table, TableDef, Type, Value};
use pantile_testkit::Random;

const ROWS: u64 = 500_000;
const THREADS: u64 = 2;
/// Updates of a transaction.
const UPDATES: u64 = 5;
/// Of one measurement. Several images are made in it.
const TIME: Duration = Duration::from_secs(12);
/// Measurements with images, and without.
const TIMES: usize = 5;

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).expect("a directory");
    let path = Path::new(&directory).join("image-cost");
    let mut rates: [Vec<f64>; 2] = Default::default();
    for turn in 0..2 * TIMES {
        // With and without, without and with.
        let image = turn % 4 == 0 || turn % 4 == 3;
        let rate = measure(&path, image, turn as u64)?;
        println!("{} images: {rate:.0} updates a second", if image { "with" } else { "without" });
        rates[usize::from(image)].push(rate);
    }
    let [without, with] = rates.map(median);
    println!("medians: {with:.0} and {without:.0}, {:+.1} %", (with / without - 1.0) * 100.0);
    Ok(())
}

fn measure(path: &Path, image: bool, seed: u64) -> Result<f64> {
    let db = Options::new().durability(Durability::None).index_image(image).open(path)?;
    let table = load(&db)?;
    let (began, updates) = (Instant::now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            let (db, table, updates) = (&db, &table, &updates);
            let mut random = Random::new(seed, thread);
            scope.spawn(move || {
                while began.elapsed() < TIME {
                    db.run(|txn| {
                        (0..UPDATES).try_for_each(|_| {
                            let key = [random.below(ROWS).into()];
                            txn.update(table, &key, &[("data", Value::Bytes(&[8; 100]))]).map(drop)
                        })
                    })?;
                    updates.fetch_add(UPDATES, Ordering::Relaxed);
                }
                Ok(())
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let rate = updates.into_inner() as f64 / began.elapsed().as_secs_f64();
    db.close()?;
    std::fs::remove_dir_all(path).expect("its own directory");
    Ok(rate)
}

fn load(db: &Database) -> Result<Table> {
    let def = TableDef::new("rows").column("id", Type::U64).column("data", Type::Bytes(100));
    let table = db.create_table(def.primary_key(["id"]))?;
    for first in (0..ROWS).step_by(10_000) {
        let rows = (first..first + 10_000).map(|id| [id.into(), Value::Bytes(&[7; 100])]);
        db.run(|txn| txn.insert_many(&table, rows.clone()))?;
    }
    Ok(table)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
