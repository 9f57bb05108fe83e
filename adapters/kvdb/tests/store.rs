//! The tests that `kvdb` publishes for stores, and what they do not look at.

use std::io;

use kvdb::{DBTransaction, IoStatsKind, KeyValueDB};
use kvdb_shared_tests as shared;
use pantile::{Database, MediumKind, Options};
use pantile_kvdb::{MAX_KEY, PantileKv};

fn store(columns: u32) -> PantileKv {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    PantileKv::new(db, columns).expect("a store")
}

macro_rules! published {
    ($($test:ident: $columns:expr;)*) => {
        $(#[test]
        fn $test() -> io::Result<()> {
            shared::$test(&store($columns))
        })*
    };
}

published! {
    test_put_and_get: 1;
    test_delete_and_get: 1;
    test_get_fails_with_non_existing_column: 1;
    test_write_clears_buffered_ops: 1;
    test_iter: 1;
    test_iter_with_prefix: 1;
    test_io_stats: shared::IO_STATS_NUM_COLUMNS;
    test_delete_prefix: shared::DELETE_PREFIX_NUM_COLUMNS;
    test_complex: 1;
}

fn batch(fill: impl FnOnce(&mut DBTransaction)) -> DBTransaction {
    let mut batch = DBTransaction::new();
    fill(&mut batch);
    batch
}

fn keys(store: &PantileKv, column: u32) -> Vec<Vec<u8>> {
    store.iter(column).map(|pair| pair.expect("a pair").0.to_vec()).collect()
}

#[test]
fn everything_is_there_when_it_is_opened_again() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let open = |columns| PantileKv::new(Database::open(dir.path()).expect("open"), columns).expect("a store");
    let large = vec![7; 200_000];
    let first = open(2);
    first.write(batch(|batch| {
        batch.put(0, b"", b"the empty key");
        batch.put(0, b"large", &large);
        batch.put(1, b"other", b"");
    }))?;
    drop(first);
    let again = open(3);
    assert_eq!(again.get(0, b"")?.as_deref(), Some(&b"the empty key"[..]));
    assert_eq!(again.get(0, b"large")?, Some(large));
    assert_eq!(again.get_by_prefix(1, b"oth")?, Some(Vec::new()));
    assert!(keys(&again, 2).is_empty());
    Ok(())
}

#[test]
fn operations_of_a_batch_follow_each_other() -> io::Result<()> {
    let store = store(1);
    store.write(batch(|batch| {
        batch.put(0, b"a1", b"");
        batch.delete_prefix(0, b"a");
        batch.put(0, b"a2", b"");
        batch.put(0, b"b", b"");
        batch.delete(0, b"b");
    }))?;
    assert_eq!(keys(&store, 0), [b"a2"]);
    Ok(())
}

#[test]
fn a_batch_that_fails_changes_nothing() -> io::Result<()> {
    let store = store(1);
    let longest = vec![0; MAX_KEY as usize];
    let longer = [&longest[..], &[0]].concat();
    store.write(batch(|batch| batch.put(0, &longest, b"it fits")))?;
    assert_eq!(store.get(0, &longest)?.as_deref(), Some(&b"it fits"[..]));

    let error = store.write(batch(|batch| {
        batch.put(0, b"before", b"");
        batch.put(0, &longer, b"");
    }));
    let message = error.expect_err("the key is too long").to_string();
    assert!(message.contains(&MAX_KEY.to_string()), "{message}");
    let error = store.write(batch(|batch| {
        batch.put(0, b"before", b"");
        batch.put(1, b"there is no such column", b"");
    }));
    assert_eq!(error.expect_err("no column").kind(), io::ErrorKind::InvalidInput);
    assert_eq!(keys(&store, 0), [&longest[..]]);

    // No such key can be there.
    assert_eq!(store.get(0, &longer)?, None);
    assert_eq!(store.get_by_prefix(0, &longer)?, None);
    assert_eq!(store.iter_with_prefix(0, &longer).count(), 0);
    store.write(batch(|batch| batch.delete(0, &longer)))?;
    store.write(batch(|batch| batch.delete_prefix(0, &longer)))?;
    assert_eq!(keys(&store, 0), [&longest[..]]);
    assert!(store.iter(1).next().is_some_and(|pair| pair.is_err()));
    Ok(())
}

#[test]
fn an_iterator_reads_one_state_while_others_write() -> io::Result<()> {
    let store = store(1);
    store.write(batch(|batch| (0..100u8).for_each(|n| batch.put(0, &[n], &[0]))))?;
    let mut pairs = store.iter(0);
    assert!(pairs.next().is_some());
    store.write(batch(|batch| {
        batch.delete_prefix(0, b"");
        batch.put(0, b"new", b"");
    }))?;
    assert_eq!(pairs.map(|pair| pair.expect("a pair").1).collect::<Vec<_>>(), vec![[0]; 99]);
    assert_eq!(keys(&store, 0), [b"new"]);
    Ok(())
}

#[test]
fn threads_write_and_meet() -> io::Result<()> {
    let store = store(1);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..50u8 {
                    let both = batch(|batch| {
                        batch.put(0, b"newest", &[thread, n]);
                        batch.put(0, &[thread, n], b"");
                    });
                    store.write(both).expect("it starts again");
                }
            });
        }
    });
    assert_eq!(keys(&store, 0).len(), 201);
    Ok(())
}

#[test]
fn threads_that_ask_for_counts_share_what_was_counted() -> io::Result<()> {
    let store = store(1);
    let counted: u64 = std::thread::scope(|scope| {
        let count = || {
            let mut counted = 0;
            for _ in 0..20_000 {
                store.get(0, b"").expect("a read");
                counted += store.io_stats(IoStatsKind::SincePrevious).reads;
            }
            counted
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(counted, 80_000);
    Ok(())
}
