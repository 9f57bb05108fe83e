//! Taking orders from two threads beside backups, until somebody kills the process.

use std::io::Write;
use std::path::Path;
use std::thread;

use pantile::Database;
use pantile::tools::BackupOptions;

use crate::orders::{ITEMS, Shop, ShopError};

const THREADS: u64 = 2;

/// Orders of one thread have numbers of their own.
const FIRST: u64 = 1 << 40;

/// Writes a line for each order once it is durable, and one for each backup.
pub fn work(db: &Database, backup: &Path) -> Result<(), ShopError> {
    let shop = Shop::open(db)?;
    thread::scope(|scope| {
        let takers: Vec<_> = (0..THREADS)
            .map(|n| {
                scope.spawn({
                    let shop = shop.clone();
                    move || take(&shop, n)
                })
            })
            .collect();
        for round in 0u32.. {
            let place = |round: u32| backup.join(round.to_string());
            // After the first one, only what has changed.
            let options = match round {
                0 => BackupOptions::new(),
                _ => BackupOptions::new().since(place(round - 1)),
            };
            let report = db.backup_to(place(round), &options)?;
            say(&format!("backup {round} {}", report.rows));
            if takers.iter().any(thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        takers.into_iter().try_for_each(|taker| taker.join().expect("no panic"))
    })
}

fn take(shop: &Shop, thread: u64) -> Result<(), ShopError> {
    let first = FIRST + (thread << 32);
    // A number is not used again, whatever became of its order.
    let taken = pantile::Range::all();
    let (low, high) = ([first.into()], [(first + (1 << 32)).into()]);
    let taken = taken.from(std::ops::Bound::Included(&low)).to(std::ops::Bound::Excluded(&high));
    let next = first + shop.db.begin_read()?.count(shop.orders.table(), taken)?;
    for id in next.. {
        let item = (id.wrapping_mul(7919) % u64::from(ITEMS)) as u32;
        shop.order(id, item, 1 + (id % 10) as u32)?;
        say(&format!("order {id}"));
    }
    Ok(())
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody may be listening any more.
    let _ = writeln!(out, "{line}");
}
