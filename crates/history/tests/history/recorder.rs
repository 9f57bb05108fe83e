//! Records from several threads.

use std::collections::BTreeSet;
use std::time::Instant;

use pantile_history::{Check, History, Op, Outcome, Recorder};

#[test]
fn threads_record_without_each_other() {
    let origin = Instant::now();
    let store = std::sync::Mutex::new((0, None));
    let clients: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|client| {
                let store = &store;
                scope.spawn(move || {
                    let mut recorder = Recorder::new(client, origin);
                    for _ in 0..100 {
                        recorder.begin();
                        let value = recorder.fresh();
                        let mut guard = store.lock().expect("not poisoned");
                        recorder.read(7, guard.1);
                        recorder.write(7, value);
                        *guard = (guard.0 + 1, Some(value));
                        let ts = guard.0;
                        drop(guard);
                        recorder.commit(ts);
                    }
                    recorder.finish()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let history = History::merge(clients);
    assert_eq!(history.transactions.len(), 400);
    let ids: BTreeSet<u64> = history.transactions.iter().map(|txn| txn.id).collect();
    assert_eq!(ids.len(), 400);
    let report = Check::new().real_time(true).run(&history);
    assert!(report.is_strictly_serializable(), "{report}");
}

#[test]
fn everything_is_recorded() {
    let mut recorder = Recorder::simulated(3);
    recorder.set_time(5);
    let id = recorder.begin();
    recorder.read(1, None);
    recorder.delete(2);
    recorder.scan(0, 9, vec![(4, 40)]);
    recorder.set_time(8);
    recorder.abort();
    recorder.begin();
    recorder.unknown();
    recorder.begin();
    let txns = recorder.finish();
    assert_eq!(txns.len(), 3);
    let first = &txns[0];
    assert_eq!((first.id, first.begin, first.end), (id, 5, 8));
    assert_eq!(first.outcome, Outcome::Aborted);
    assert_eq!(first.ops.len(), 3);
    assert!(matches!(first.ops[1], Op::Delete { key: 2, .. }));
    assert_eq!(txns[1].outcome, Outcome::Unknown);
    assert_eq!(txns[2].outcome, Outcome::Unknown);
}
