//! Measures an index with a million entries: millions of operations per second
//! in one thread, and bytes per key. Run with `cargo bench -p pantile-index`.
//! An argument selects the cases whose name contains it.

use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use pantile_index::{Batch, Direction, Index, NodeArena, SIDE_BY_SIDE, Scan};
use pantile_testkit::mix;

const KEYS: usize = 1 << 20;
const SCANS: usize = KEYS / 8;
const SCAN_LENGTH: usize = 20;

/// The numbers below `KEYS`, shuffled.
fn shuffled() -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..KEYS as u64).collect();
    (1..KEYS).for_each(|i| numbers.swap(i, (mix(i as u64) % (i as u64 + 1)) as usize));
    numbers
}

/// Runs `work` and returns millions of operations a second.
fn rate(operations: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    operations as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// A set of keys of `N` words. Even numbers are present, odd numbers are
/// absent.
struct Case<const N: usize> {
    name: &'static str,
    key: fn(u64) -> [u64; N],
    ordered: bool,
}

impl<const N: usize> Case<N> {
    fn run(&self) {
        let order = if self.ordered { (0..KEYS as u64).collect() } else { shuffled() };
        let (lookups, arena) = (shuffled(), Arc::new(NodeArena::new()));
        let index = Index::new(N, &arena);
        let insert = rate(KEYS, || {
            for &i in &order {
                index.insert(&(self.key)(2 * i), i, 1);
            }
        });
        let per_key = index.bytes() as f64 / KEYS as f64;
        let lookup = |offset: u64, mark| {
            rate(KEYS, || {
                for &i in &lookups {
                    black_box(index.get(&(self.key)(2 * i + offset), mark));
                }
            })
        };
        let (hit, miss, marked) = (lookup(0, None), lookup(1, None), lookup(1, Some(1)));
        let together = self.together(&index, &lookups);
        let forward = self.scans(&index, &lookups, Direction::Forward);
        let backward = self.scans(&index, &lookups, Direction::Backward);
        let remove = rate(KEYS, || {
            for &i in &lookups {
                assert!(index.remove(&(self.key)(2 * i), i, || 0));
            }
        });
        println!(
            "{:<18}{insert:>8.1}{hit:>8.1}{together:>8.1}{miss:>8.1}{marked:>8.1}{forward:>8.2}{backward:>8.2}{remove:>8.1}{per_key:>8.1}",
            self.name
        );
    }

    /// Look-ups of present keys, [`SIDE_BY_SIDE`] in one call.
    fn together(&self, index: &Index, lookups: &[u64]) -> f64 {
        let mut found = [None; SIDE_BY_SIDE];
        rate(KEYS, || {
            for chunk in lookups.chunks(SIDE_BY_SIDE) {
                let keys: [[u64; N]; SIDE_BY_SIDE] =
                    std::array::from_fn(|i| (self.key)(2 * chunk[i % chunk.len()]));
                let keys = keys.each_ref().map(<[u64; N]>::as_slice);
                index.get_many(&keys[..chunk.len()], &mut found[..chunk.len()]);
                assert_eq!(black_box(found[0]), Some(chunk[0]));
            }
        })
    }

    fn scans(&self, index: &Index, lookups: &[u64], direction: Direction) -> f64 {
        let (mut scan, mut batch) = (Scan::default(), Batch::new());
        rate(SCANS, || {
            for &i in &lookups[..SCANS] {
                let key = (self.key)(2 * i);
                match direction {
                    Direction::Forward => scan.reset(Bound::Included(&key), Bound::Unbounded, direction),
                    Direction::Backward => scan.reset(Bound::Unbounded, Bound::Included(&key), direction),
                }
                let mut left = SCAN_LENGTH;
                while left > 0 {
                    batch.set_limit(left);
                    if !scan.next_batch(index, None, &mut batch) {
                        break;
                    }
                    black_box(batch.iter().fold(0, |sum, (key, value)| sum ^ key[0] ^ value));
                    left -= batch.len();
                }
            }
        })
    }
}

fn bulk() {
    let arena = Arc::new(NodeArena::new());
    let load = rate(KEYS, || {
        let keys = (0..KEYS as u64).map(|i| ([i], i));
        black_box(Index::bulk_load(1, &arena, keys, 0.9).expect("sorted")).len();
    });
    println!("bulk load, one word: {load:.1}");
}

fn two_threads() {
    let (order, index) = (shuffled(), Index::new(1, &Arc::new(NodeArena::new())));
    let each = |work: &(dyn Fn(u64) + Sync)| {
        rate(KEYS, || {
            std::thread::scope(|scope| {
                for half in order.chunks(KEYS / 2) {
                    scope.spawn(move || half.iter().for_each(|&i| work(i)));
                }
            });
        })
    };
    let insert = each(&|i| _ = index.insert(&[mix(i)], i, 1));
    let hit = each(&|i| _ = black_box(index.get(&[mix(i)], None)));
    println!("two threads, sparse: insert {insert:.1}, hit {hit:.1}");
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    if cfg!(debug_assertions) {
        eprintln!("warning: not optimised");
    }
    println!(
        "{:<18}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}",
        "keys", "insert", "hit", "many", "miss", "marked", "scan", "back", "remove", "B/key"
    );
    let wanted = |name: &str| name.contains(&filter);
    let narrow = |name, key, ordered| {
        if wanted(name) {
            Case::<1> { name, key, ordered }.run();
        }
    };
    narrow("dense", |i| [i], false);
    narrow("sparse", |i| [mix(i)], false);
    narrow("clustered", |i| [mix(i / 40) & !0xff | (i % 40)], false);
    narrow("ordered", |i| [i], true);
    let wide = |name, key, ordered| {
        if wanted(name) {
            Case::<3> { name, key, ordered }.run();
        }
    };
    wide("24 bytes", |i| [mix(i), mix(i + 1), i], false);
    wide("24 bytes shared", |i| [i >> 16, 0x2020_2020, i], false);
    wide("24 bytes ordered", |i| [i >> 16, 0x2020_2020, i], true);
    if wanted("bulk") {
        bulk();
    }
    if wanted("threads") {
        two_threads();
    }
}
