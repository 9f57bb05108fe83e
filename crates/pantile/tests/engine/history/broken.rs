//! Transactions in which every operation commits on its own: they are not
//! isolated, and what they roll back stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::time::Instant;

use pantile_history::{AnomalyKind, Check, History, Op, Recorder, Txn};
use pantile_testkit::{Bed, Home, Random};

use super::client::Store;

const THREADS: u64 = 3;
const KEYS: u64 = 3;

/// Timestamp, transaction and operation of a write, in one client.
type Install = (u64, usize, usize);

/// The kinds of anomalies in the history of a run.
pub fn kinds(bed: Bed, seed: u64) -> BTreeSet<AnomalyKind> {
    let mut home = Home::new(bed);
    let db = home.open();
    let store = Store::new(&db);
    let start = Barrier::new(THREADS as usize);
    let origin = Instant::now();
    let clients: Vec<(Vec<Txn>, Vec<Install>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|n| {
                let (store, start) = (&store, &start);
                let client = (Recorder::new(n + 1, origin), Random::new(seed << 8 | n, 0));
                scope.spawn(move || {
                    start.wait();
                    run(store, client.0, client.1)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("the client ends")).collect()
    });
    let check = real_order(&clients).into_iter().fold(Check::new(), |c, (key, v)| c.version_order(key, v));
    check.run(&History::merge(clients.into_iter().map(|c| c.0))).kinds()
}

/// The order in which the values of each key were actually installed.
fn real_order(clients: &[(Vec<Txn>, Vec<Install>)]) -> BTreeMap<u64, Vec<u64>> {
    let mut installed: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (transactions, installs) in clients {
        for (ts, txn, op) in installs {
            match transactions[*txn].ops[*op] {
                Op::Write { key, value } | Op::Delete { key, value } => {
                    installed.entry(key).or_default().push((*ts, value));
                }
                Op::Read { .. } | Op::Scan { .. } => unreachable!("only writes are installed"),
            }
        }
    }
    let sorted = installed.into_iter().map(|(key, mut versions)| {
        versions.sort_unstable();
        (key, versions.into_iter().map(|v| v.1).collect())
    });
    sorted.collect()
}

fn run(store: &Store, mut recorder: Recorder, mut rng: Random) -> (Vec<Txn>, Vec<Install>) {
    let mut installs = Vec::new();
    for n in 0..5 {
        recorder.begin();
        let mut last = 0;
        let mut ops = 0;
        for _ in 0..=rng.below(5) {
            let key = rng.below(KEYS);
            let (ts, wrote, recorded) = piece(store, &mut recorder, &mut rng, key);
            last = ts;
            if wrote {
                installs.push((ts, n, ops));
            }
            ops += usize::from(recorded);
            std::thread::yield_now();
        }
        if rng.percent(25) { recorder.abort() } else { recorder.commit(last) }
    }
    (recorder.finish(), installs)
}

/// One operation, in a transaction of its own: its timestamp, whether it
/// wrote, and whether it was recorded.
fn piece(store: &Store, recorder: &mut Recorder, rng: &mut Random, key: u64) -> (u64, bool, bool) {
    let dice = rng.below(100);
    let value = recorder.fresh();
    let run = || {
        let mut rng = rng.clone();
        loop {
            let outcome = store.db.begin().and_then(|mut txn| {
                let (mut read, mut found, mut gone) = (None, Vec::new(), false);
                match dice {
                    0..35 => {
                        read = txn.get(&store.items, &[key.into()])?.map(|row| row.get(1)).transpose()?
                    }
                    35..50 => found = store.scan(&txn, 0, KEYS, &mut rng)?,
                    50..92 => {
                        txn.upsert(&store.items, &[key.into(), value.into(), key.into()])?;
                    }
                    _ => gone = txn.delete(&store.items, &[key.into()])?,
                }
                Ok((txn.commit()?.get(), read, found, gone))
            });
            match outcome {
                Err(error) if error.is_retryable() => std::thread::yield_now(),
                other => break other.expect("conflicts only"),
            }
        }
    };
    let (ts, read, found, gone) = run();
    match dice {
        0..35 => recorder.read(key, read),
        35..50 => recorder.scan(0, KEYS, found),
        50..92 => recorder.write(key, value),
        _ if gone => recorder.delete(key),
        _ => return (ts, false, false),
    }
    (ts, dice >= 50, true)
}
