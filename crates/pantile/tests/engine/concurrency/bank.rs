//! Money is moved and never created, and what one thread has committed another
//! sees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use pantile::{Database, Durability, Isolation, Result, Transaction, TransactionOptions};
use pantile_testkit::{Bed, Random, SaysDone, SeedNote, seeds};

use super::table::Things;
use crate::support::{Beside, LEVELS, check_worth, in_memory, is_conflict, read_for_long};

const ACCOUNTS: u64 = 40;
const EACH: i64 = 100;

fn bank(db: &Database) -> Things {
    let bank = Things::new(db, &[]);
    bank.fill((0..ACCOUNTS).map(|n| (n, 0, EACH)));
    bank
}

fn total(bank: &Things, txn: &Transaction) -> Result<i64> {
    Ok(bank.all(txn)?.iter().map(|account| account.2).sum())
}

/// Moves an amount, in some transactions depending on what was read before.
fn transfer(bank: &Things, txn: &mut Transaction, rng: &mut Random) -> Result<()> {
    let (from, amount) = (rng.below(ACCOUNTS), rng.below(20) as i64);
    let to = (from + 1 + rng.below(ACCOUNTS - 1)) % ACCOUNTS;
    let mut add = |id: u64, by: i64| {
        txn.modify(&bank.table, &[id.into()], |row| {
            let size: i64 = row.get(2)?;
            row.set(2, (size + by).into()).map(|()| true)
        })
    };
    add(from, -amount)?;
    add(to, amount).map(|_| ())
}

fn run(bed: Bed, beside: Beside, threads: u64, transfers: u64, seed: u64) {
    let _note = SeedNote(seed);
    let mut home = beside.home(bed, seed);
    let db = home.open();
    let accounts = bank(&db);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = SaysDone(&done);
        let tellers: Vec<_> = (0..threads)
            .map(|n| {
                let bank = &accounts;
                let mut rng = Random::new(seed << 8 | n, 0);
                scope.spawn(move || {
                    for _ in 0..transfers {
                        let program = rng.clone();
                        bank.db
                            .run(|txn| {
                                rng = program.clone();
                                transfer(bank, txn, &mut rng)
                            })
                            .expect("it succeeds in the end");
                    }
                })
            })
            .collect();
        let (bank, done) = (&accounts, &done);
        if beside == Beside::Eager {
            scope.spawn(move || read_for_long(&bank.db, done, seed));
        }
        scope.spawn(move || {
            let mut last = None;
            let mut ends = false;
            while !ends {
                ends = done.load(Ordering::Relaxed);
                let safe = bank.db.begin_safe_snapshot().expect("a snapshot");
                assert_eq!(total(bank, &safe).expect("no conflict"), EACH * ACCOUNTS as i64);
                assert!(last <= Some(safe.timestamp()), "snapshots never go back");
                last = Some(safe.timestamp());
                safe.commit().expect("no conflict");
                let fresh = bank.db.begin_read().expect("a transaction");
                match total(bank, &fresh) {
                    Ok(total) => assert_eq!(total, EACH * ACCOUNTS as i64),
                    Err(error) => assert!(is_conflict(&error), "{error}"),
                }
            }
        });
        tellers.into_iter().for_each(|t| t.join().expect("the teller ends"));
        drop(over);
    });
    beside.note(&db);
    drop(accounts);
    home.kill(db, Vec::new());
    let db = home.open();
    let bank = Things { table: db.table("things").expect("the table"), db: db.clone() };
    let txn = db.begin().expect("a transaction");
    assert_eq!(total(&bank, &txn).expect("no conflict"), EACH * ACCOUNTS as i64);
}

#[test]
fn transfers_of_16_threads_on_synced_file() {
    seeds(1, 1).into_iter().for_each(|seed| run(Bed::File(Durability::Sync), Beside::Any, 16, 25, seed));
    seeds(2, 1).into_iter().for_each(|seed| run(Bed::File(Durability::Group), Beside::Any, 16, 10, seed));
}

#[test]
fn transfers_on_dram_and_nvm() {
    seeds(11, 2).into_iter().for_each(|seed| run(Bed::Dram, Beside::Any, 4, 600, seed));
    seeds(21, 1).into_iter().for_each(|seed| run(Bed::Nvm, Beside::Any, 4, 150, seed));
}

#[test]
fn transfers_beside_an_eager_collector() {
    seeds(31, 3).into_iter().for_each(|seed| run(Bed::Dram, Beside::Eager, 4, 3_000, seed));
    seeds(41, 1).into_iter().for_each(|seed| run(Bed::Nvm, Beside::Eager, 4, 600, seed));
    seeds(51, 1).into_iter().for_each(|seed| run(Bed::File(Durability::Group), Beside::Eager, 8, 150, seed));
    check_worth(|seed| run(Bed::Dram, Beside::Eager, 4, 3_000, seed));
}

/// A safe snapshot is older than every running writer, so the writers can still
/// commit whatever it has read. A fresh reader comes after them.
#[test]
fn safe_snapshots_leave_no_marks() {
    let bank = bank(&in_memory());
    let mut writer = bank.db.begin().expect("a transaction");
    bank.resize(&mut writer, 0, EACH + 1).expect("no conflict");
    let safe = bank.db.begin_safe_snapshot().expect("a snapshot");
    assert!(safe.timestamp() < writer.timestamp() && safe.is_read_only());
    assert_eq!(total(&bank, &safe).expect("it does not wait for the writer"), EACH * ACCOUNTS as i64);
    assert_eq!(bank.size(&safe, 999).expect("no conflict"), None);
    bank.resize(&mut writer, 1, EACH - 1).expect("the snapshot has left no read mark on the row");
    bank.insert(&mut writer, 999, 0, 0).expect("nor on the gap");
    let began = writer.timestamp();
    assert_eq!(writer.commit().expect("nor anywhere else"), began, "so it need not move");
    assert_eq!(bank.size(&safe, 0).expect("no conflict"), Some(EACH), "the snapshot stays as it was");

    let mut writer = bank.db.begin().expect("a transaction");
    let fresh = bank.db.begin_read().expect("a transaction");
    assert_eq!(total(&bank, &fresh).expect("no conflict"), EACH * ACCOUNTS as i64);
    bank.resize(&mut writer, 1, 0).expect("it can move behind the reader");
    assert!(writer.commit().expect("no conflict") > fresh.timestamp(), "the reader has left a read mark");
}

/// When a reader begins, its place in the order is settled, but not all that stands before it: a serializable writer that
/// was open may still commit there, whole, unless the reader has read what it writes.
#[test]
fn a_reader_may_show_the_later_commit_of_an_older_writer() {
    let bank = bank(&in_memory());
    let both = |txn: &Transaction| [0, 1].map(|id| bank.size(txn, id).expect("no conflict").expect("a row"));
    let mut size = EACH;
    let mut write = |mut writer: Transaction| {
        size += 1;
        (0..2).for_each(|id| assert!(bank.resize(&mut writer, id, size).expect("no conflict")));
        writer.commit().expect("no conflict");
        [size; 2]
    };
    for level in [Isolation::Serializable, Isolation::Snapshot] {
        for is_read_only in [true, false] {
            let options = TransactionOptions::new().isolation(level).read_only(is_read_only);
            let begin = |options: TransactionOptions| bank.db.begin_with(options).expect("a transaction");
            let before = write(bank.begin(Isolation::Serializable));
            // It was open.
            let writer = bank.begin(Isolation::Serializable);
            let (reader, safe) = (begin(options), begin(options.safe_snapshot()));
            let after = write(writer);
            assert_eq!((both(&reader), both(&safe)), (after, before), "{level:?}");
            // It was open, and the reader has read a row that it writes.
            let writer = bank.begin(Isolation::Serializable);
            let reader = begin(options);
            assert_eq!(bank.size(&reader, 1).expect("no conflict"), Some(after[1]));
            write(writer);
            assert_eq!(both(&reader), after, "{level:?}");
            // It begins later, or its place is settled when it commits.
            for late in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
                let before = both(&begin(options));
                let open = (late != Isolation::Serializable).then(|| bank.begin(late));
                let reader = begin(options);
                write(open.unwrap_or_else(|| bank.begin(late)));
                assert_eq!(both(&reader), before, "{level:?} beside {late:?}");
            }
        }
    }
}

/// A thread that learns of a commit sees it, on whichever core it runs.
#[test]
fn what_is_told_is_seen() {
    let bank = bank(&in_memory());
    for level in LEVELS {
        let (tell, hear) = mpsc::channel::<i64>();
        let (answer, answered) = mpsc::channel::<i64>();
        std::thread::scope(|scope| {
            let bank = &bank;
            let listener = scope.spawn(move || {
                for size in hear {
                    let mut txn = bank.begin(level);
                    assert_eq!(bank.size(&txn, 0).expect("no conflict"), Some(size), "{level:?}");
                    bank.resize(&mut txn, 1, size).expect("no conflict");
                    txn.commit().expect("no conflict");
                    answer.send(size).expect("the other thread listens");
                }
            });
            for n in 0..1_500 {
                let mut txn = bank.begin(Isolation::Serializable);
                bank.resize(&mut txn, 0, n).expect("no conflict");
                let ts = txn.commit().expect("no conflict");
                tell.send(n).expect("the other thread listens");
                let n = answered.recv().expect("an answer");
                let txn = bank.db.begin_read().expect("a transaction");
                assert!(txn.timestamp() > ts);
                assert_eq!(bank.size(&txn, 1).expect("no conflict"), Some(n));
            }
            drop(tell);
            listener.join().expect("it has heard everything");
        });
    }
}
