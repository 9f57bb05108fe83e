//! Serializable writers that move behind readers, and readers that go past
//! them (I-21, I-22).

use pantile::{Error, IndexDef, Isolation, Result, Timestamp, Transaction, TransactionOptions};
use pantile_base::sync::model::explore;
use pantile_interleavings::Model;

use crate::support::{Small, all, at, change, get, join, put, unless_conflict};

pub const MODELS: &[Model] = &[
    Model { name: "readers_go_past_writers", rounds: 1000, scale: 9, run: readers_go_past_writers },
    Model { name: "moved_rows_are_read_again", rounds: 1000, scale: 9, run: moved_rows_are_read_again },
    Model { name: "moved_ranges_are_read_again", rounds: 1000, scale: 9, run: moved_ranges_are_read_again },
    Model { name: "fresh_writers_begin_again", rounds: 1000, scale: 9, run: fresh_writers_begin_again },
    Model { name: "rows_that_never_were", rounds: 1000, scale: 9, run: rows_that_never_were },
    Model { name: "keys_that_never_were", rounds: 4000, scale: 9, run: keys_that_never_were },
    Model { name: "names_that_never_were", rounds: 1000, scale: 9, run: names_that_never_were },
    Model { name: "what_was_read_holds_a_writer", rounds: 1000, scale: 9, run: what_was_read_holds_a_writer },
    Model {
        name: "unique_keys_of_writers_that_move",
        rounds: 1000,
        scale: 9,
        run: unique_keys_of_writers_that_move,
    },
];

fn fresh() -> TransactionOptions {
    at(Isolation::Serializable).read_only(true)
}

/// Runs a serializable transaction once; its timestamp, unless it conflicted.
fn once(small: &Small, work: impl FnOnce(&mut Transaction) -> Result<()>) -> Option<Timestamp> {
    let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
    unless_conflict(work(&mut txn).and_then(|()| txn.commit()))
}

/// Readers of all that was acknowledged see all of a transfer or nothing, the
/// same twice, and never fail. Of a writer that they have gone past they see
/// nothing later either.
fn readers_go_past_writers() {
    let small = Small::new(4);
    small.put(&[1, 2], 10);
    explore(|| {
        let transfer = |small: &Small, from: u64, to: u64| {
            once(small, |txn| {
                let a = get(txn, &small.table, from)?.expect("a row");
                let b = get(txn, &small.table, to)?.expect("a row");
                put(txn, &small.table, from, a - 1)?;
                put(txn, &small.table, to, b + 1)
            })
        };
        let reading = small.spawn(|small| {
            for _ in 0..2 {
                let reader = small.db.begin_with(fresh()).expect("begin");
                let read = || [1, 2].map(|key| get(&reader, &small.table, key).expect("it never fails"));
                let seen = read();
                assert_eq!(seen.iter().flatten().sum::<u64>(), 20, "{seen:?}");
                assert_eq!(read(), seen);
            }
        });
        let writing = small.spawn(move |small| {
            transfer(&small, 1, 2);
        });
        if transfer(&small, 2, 1).is_some() {
            let reader = small.db.begin_with(fresh()).expect("begin");
            let now = get(&reader, &small.table, 1).expect("it never fails");
            assert_ne!(now, Some(9), "what was acknowledged is seen");
        }
        join([reading, writing]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert_eq!(rows[0].1 + rows[1].1, 20);
    small.check(&rows);
}

/// A reader comes before both of two transactions that each read what the other
/// writes. They move, and one fails.
fn moved_rows_are_read_again() {
    let small = Small::new(4);
    small.put(&[1, 2], 1);
    let clear = |small: &Small, mine: u64, other: u64| {
        once(small, |txn| match get(txn, &small.table, other)? {
            Some(1) => put(txn, &small.table, mine, 0),
            _ => Ok(()),
        });
    };
    explore(|| {
        let other = small.spawn(move |small| clear(&small, 1, 2));
        let reading = small.spawn(|small| {
            let reader = small.db.begin_with(fresh()).expect("begin");
            let seen = [1, 2].map(|key| get(&reader, &small.table, key).expect("it never fails"));
            assert_ne!(seen, [Some(0), Some(0)]);
        });
        clear(&small, 2, 1);
        join([other, reading]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert!(rows.iter().any(|&(_, n)| n == 1), "{rows:?}");
    small.check(&rows);
}

/// The same with rows that each finds absent, by key or in a range.
fn moved_ranges_are_read_again() {
    let small = Small::new(4);
    small.put(&[5], 1);
    let enter = |small: &Small, mine: u64, other: u64, by_key: bool| {
        once(small, |txn| {
            let is_absent = match by_key {
                true => get(txn, &small.table, other)?.is_none(),
                false => all(txn, &small.table)?.iter().all(|&(key, _)| key != other),
            };
            if is_absent { put(txn, &small.table, mine, 1) } else { Ok(()) }
        });
    };
    explore(|| {
        let other = small.spawn(move |small| enter(&small, 3, 7, false));
        let reading = small.spawn(|small| {
            let reader = small.db.begin_with(fresh()).expect("begin");
            assert!(all(&reader, &small.table).expect("it never fails").len() <= 2);
        });
        enter(&small, 7, 3, true);
        join([other, reading]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert!(rows.len() <= 2, "{rows:?}");
    small.check(&rows);
}

/// A row gets a key back that it had before, so its entry is there already,
/// while another row gets the same key.
fn unique_keys_of_writers_that_move() {
    let small = Small::new(4);
    small.put(&[1], 7);
    small.put(&[2], 6);
    small.db.create_index(&small.table, IndexDef::unique("by_n", ["n"])).expect("an index");
    small.put(&[1], 8);
    let take = |small: &Small, key: u64| {
        let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
        match put(&mut txn, &small.table, key, 7).and_then(|()| txn.commit()) {
            Ok(_) | Err(Error::Conflict { .. } | Error::DuplicateKey { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    explore(|| {
        let other = small.spawn(move |small| take(&small, 2));
        take(&small, 1);
        join([other]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert!(rows.iter().filter(|(_, n)| *n == 7).count() <= 1, "{rows:?}");
    small.check(&rows);
}

/// Adds one to a row, which is the first thing that the transaction does.
fn add(small: &Small, key: u64) -> Timestamp {
    let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
    assert!(change(&mut txn, &small.table, key, |n| n + 1).expect("a fresh writer never comes too late"));
    txn.commit().expect("commit")
}

/// Transactions whose first step is to change one row follow each other, whichever
/// began first, beside readers and the collector.
fn fresh_writers_begin_again() {
    let small = Small::new(4);
    small.put(&[1], 0);
    explore(|| {
        let adding = small.spawn(|small| {
            let [first, second] = [(); 2].map(|()| add(&small, 1));
            assert!(first < second);
        });
        let reading = small.spawn(|small| {
            let mut last = 0;
            for _ in 0..3 {
                let reader = small.db.begin_with(fresh()).expect("begin");
                let n = get(&reader, &small.table, 1).expect("it never fails").expect("a row");
                assert_eq!(get(&reader, &small.table, 1).expect("it never fails"), Some(n));
                assert!(n >= last);
                last = n;
            }
        });
        for _ in 0..2 {
            let at = add(&small, 1);
            let reader = small.db.begin_with(fresh()).expect("begin");
            assert!(reader.timestamp() > at);
            assert!(get(&reader, &small.table, 1).expect("it never fails") >= Some(1));
        }
        join([adding, reading]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert_eq!(rows, [(1, 4)]);
    small.check(&rows);
}

/// Each of two transactions looks for a row that the other one enters, finds none,
/// and changes a row that both change. One comes too late, and must not begin again:
/// it would keep what it has found.
fn what_was_read_holds_a_writer() {
    let small = Small::new(4);
    small.put(&[1], 0);
    let enter = |small: &Small, mine: u64, other: u64| {
        once(small, |txn| {
            if get(txn, &small.table, other)?.is_none() {
                change(txn, &small.table, 1, |_| mine)?;
                put(txn, &small.table, mine, 1)?;
            }
            Ok(())
        });
    };
    explore(|| {
        let entering = small.spawn(move |small| enter(&small, 3, 7));
        enter(&small, 7, 3);
        join([entering]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert!(rows.len() <= 2, "{rows:?}");
    small.check(&rows);
}

/// A reader finds a key absent. One writer enters the key and takes it back, another
/// one, which has begun before the reader, finds its entry and uses it.
fn rows_that_never_were() {
    let small = Small::new(4);
    explore(|| {
        let coming = small.spawn(|small| {
            once(&small, |txn| {
                put(txn, &small.table, 1, 7)?;
                txn.delete(&small.table, &[1u64.into()]).map(|_| ())
            });
        });
        let staying = small.spawn(|small| {
            once(&small, |txn| put(txn, &small.table, 1, 5));
        });
        let reader = small.db.begin_with(fresh()).expect("begin");
        let read = || all(&reader, &small.table).expect("it never fails");
        let seen = read();
        join([coming, staying]);
        assert_eq!(read(), seen);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    small.check(&rows);
}

/// The same for a reader that has looked the key up before it reads the row: a writer takes the
/// row back in between, and another one with an older timestamp adds it again.
fn keys_that_never_were() {
    let small = Small::new(4);
    small.put(&[2], 1);
    explore(|| {
        let coming = small.spawn(|small| {
            let mut txn = small.db.begin().expect("begin");
            unless_conflict(put(&mut txn, &small.table, 1, 7));
            txn.rollback();
        });
        let staying = small.spawn(|small| {
            once(&small, |txn| put(txn, &small.table, 1, 5));
        });
        let reader = small.db.begin_with(fresh()).expect("begin");
        let read = || {
            let rows =
                reader.get_many(&small.table, &[[2u64.into()], [1u64.into()]]).expect("it never fails");
            let numbers = rows.iter().map(|row| row.as_ref().map(|row| row.get(1).expect("a number")));
            numbers.collect::<Vec<Option<u64>>>()
        };
        let seen = read();
        join([coming, staying]);
        assert_eq!(read(), seen);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    small.check(&rows);
}

/// The same with a name that one writer gives a row and takes back.
fn names_that_never_were() {
    let small = Small::new(4);
    small.put(&[1], 1);
    let by_n = small.db.create_index(&small.table, IndexDef::new("by_n", ["n"])).expect("an index");
    explore(|| {
        let coming = small.spawn(|small| {
            once(&small, |txn| {
                let before = txn.savepoint();
                change(txn, &small.table, 1, |_| 7)?;
                txn.rollback_to(before)
            });
        });
        let staying = small.spawn(|small| {
            once(&small, |txn| change(txn, &small.table, 1, |_| 7).map(|_| ()));
        });
        let reader = small.db.begin_with(fresh()).expect("begin");
        let read = || {
            let found = reader.get_by_index(&by_n, &[7u64.into()]).expect("it never fails");
            found.map(|row| row.get::<u64>(0).expect("a key"))
        };
        let seen = read();
        join([coming, staying]);
        assert_eq!(read(), seen);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    small.check(&rows);
}
