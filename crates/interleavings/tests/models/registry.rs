//! Transactions begin and end while others ask which transactions run.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::limits::{TRANSACTION_SLOTS, WRITER_SLOTS};
use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_base::sync::model::explore;
use pantile_base::sync::{hint, plain_access, thread};
use pantile_cc::{Begin, Clock, ClockSource, Registry, RunningSet};
use pantile_interleavings::Model;

/// As often a transaction looks before it announces that it waits. It lets the other threads run meanwhile.
const LOOKS: u64 = 64;

pub const MODELS: &[Model] = &[
    Model { name: "begin_against_watermark", rounds: 4_000, scale: 8, run: begin_against_watermark },
    Model { name: "begin_against_running_set", rounds: 4_000, scale: 8, run: begin_against_running_set },
    Model {
        name: "statements_against_running_set",
        rounds: 2_000,
        scale: 8,
        run: statements_against_running_set,
    },
    Model { name: "pauses_against_running_set", rounds: 4_000, scale: 8, run: pauses_against_running_set },
    Model {
        name: "safe_snapshots_against_writers",
        rounds: 4_000,
        scale: 8,
        run: safe_snapshots_against_writers,
    },
    Model {
        name: "safe_snapshots_show_what_was_acknowledged",
        rounds: 4_000,
        scale: 8,
        run: safe_snapshots_show_what_was_acknowledged,
    },
    Model {
        name: "prepared_writers_against_watermark",
        rounds: 4_000,
        scale: 8,
        run: prepared_writers_against_watermark,
    },
    Model {
        name: "prepared_writers_against_records",
        rounds: 2_000,
        scale: 8,
        run: prepared_writers_against_records,
    },
    Model { name: "readers_against_records", rounds: 4_000, scale: 8, run: readers_against_records },
    Model { name: "circles_have_one_victim", rounds: 2_000, scale: 8, run: circles_have_one_victim },
    Model {
        name: "released_locks_close_no_circle",
        rounds: 10_000,
        scale: 8,
        run: released_locks_close_no_circle,
    },
    Model { name: "ended_waiters_are_woken", rounds: 2_000, scale: 8, run: ended_waiters_are_woken },
    Model { name: "newer_tables_against_drops", rounds: 4_000, scale: 8, run: newer_tables_against_drops },
    Model { name: "slots_are_waited_for", rounds: 500, scale: 8, run: slots_are_waited_for },
    Model { name: "readers_wait_beside_writers", rounds: 500, scale: 8, run: readers_wait_beside_writers },
];

/// What a model's threads record. Recording is not part of the model.
struct Notes<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Notes<T> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn add(&self, note: T) {
        self.0.lock().expect("no panic").push(note);
    }

    fn len(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    fn each(&self, look: impl FnMut(&T)) {
        self.0.lock().expect("no panic").iter().for_each(look);
    }

    fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

fn registry() -> Arc<Registry> {
    Arc::new(Registry::new(Clock::with_source(1_000, ClockSource::SharedCounter)))
}

const KINDS: [Begin; 4] = [Begin::WriterAtBegin, Begin::LateWriter, Begin::ByStatement, Begin::SafeReader];

/// I-4: no transaction that runs reads below `watermark - 1`.
///
/// Found by seed 1359: a safe reader began behind a scan of the slots. It took
/// its snapshot from the watermark before the result of the scan was stored
/// there.
fn begin_against_watermark() {
    let registry = registry();
    let (writer, _) = registry.begin(Begin::WriterAtBegin).expect("a slot");
    let begun = Notes::new();
    explore(|| {
        let threads: Vec<_> = [&KINDS[..2], &KINDS[2..]]
            .into_iter()
            .map(|kinds| {
                let (registry, begun) = (Arc::clone(&registry), begun.clone());
                thread::spawn(move || {
                    for &kind in kinds {
                        let (_, ts) = registry.begin(kind).expect("a slot");
                        begun.add((kind, ts));
                        let watermark = registry.watermark();
                        assert!(
                            ts.get() >= watermark.get() - 1,
                            "{kind:?} reads at {ts:?} below {watermark:?}"
                        );
                    }
                })
            })
            .collect();
        registry.refresh_watermark(Duration::ZERO);
        registry.release(writer);
        registry.refresh_watermark(Duration::ZERO);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
    let watermark = registry.refresh_watermark(Duration::ZERO);
    for (kind, ts) in begun.take() {
        assert!(ts.get() >= watermark.get() - 1, "{kind:?} reads at {ts:?} below {watermark:?}");
    }
}

/// I-37: a dropped table goes only if each transaction that is older than the table finds it dropped.
fn newer_tables_against_drops() {
    let registry = registry();
    let users = [Begin::Reader, Begin::LateWriter].map(|kind| registry.begin(kind).expect("a slot").0);
    // What follows is later by any clock.
    (0..100).for_each(|_| _ = registry.now());
    let from = registry.before_all();
    let (is_dropped, is_gone) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    explore(|| {
        let threads = users.map(|slot| {
            let (registry, is_dropped) = (Arc::clone(&registry), Arc::clone(&is_dropped));
            let is_gone = Arc::clone(&is_gone);
            thread::spawn(move || {
                registry.use_newer_tables(slot);
                if !is_dropped.load(Ordering::SeqCst) {
                    assert!(!is_gone.load(Ordering::SeqCst), "it is used by a transaction that runs");
                    thread::yield_now();
                    assert!(!is_gone.load(Ordering::SeqCst), "it is used by a transaction that runs");
                }
                registry.release(slot);
            })
        });
        is_dropped.store(true, Ordering::SeqCst);
        let until = registry.after_all();
        while registry.running_set().is_none_or(|running| running.may_use_table(from, until)) {
            thread::yield_now();
        }
        is_gone.store(true, Ordering::SeqCst);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

/// I-11: a running set covers every transaction that reads, now or later,
/// between two timestamps.
fn check_sets(sets: Vec<RunningSet>, reads: &[(Begin, Timestamp)]) {
    for set in sets {
        for &(kind, ts) in reads {
            let next = Timestamp::from_raw(ts.get() + 1);
            assert!(set.may_see(ts, next), "{kind:?} reads at {ts:?}, which {set:?} does not cover");
            assert!(set.min() <= ts, "{kind:?} reads at {ts:?}, below the minimum of {set:?}");
        }
    }
}

/// Found by seed 124: a safe reader took the time of the scan as its snapshot
/// and read just below it, where the set claimed that no transaction would
/// read.
fn begin_against_running_set() {
    let registry = registry();
    let (writer, _) = registry.begin(Begin::WriterAtBegin).expect("a slot");
    let (begun, sets) = (Notes::new(), Notes::new());
    explore(|| {
        let starting = {
            let (registry, begun) = (Arc::clone(&registry), begun.clone());
            thread::spawn(move || {
                for kind in [Begin::SafeReader, Begin::WriterAtBegin, Begin::SafeReader] {
                    let (_, ts) = registry.begin(kind).expect("a slot");
                    begun.add((kind, ts));
                }
            })
        };
        let ending = {
            let (registry, begun) = (Arc::clone(&registry), begun.clone());
            thread::spawn(move || {
                registry.release(writer);
                let (_, ts) = registry.begin(Begin::LateWriter).expect("a slot");
                begun.add((Begin::LateWriter, ts));
            })
        };
        (0..3).for_each(|_| registry.running_set().into_iter().for_each(|set| sets.add(set)));
        starting.join().expect("no panic");
        ending.join().expect("no panic");
    });
    check_sets(sets.take(), &begun.take());
}

/// A transaction that reads by statement may read anywhere from its begin on.
fn statements_against_running_set() {
    let registry = registry();
    let (reads, sets) = (Notes::new(), Notes::new());
    explore(|| {
        let reader = {
            let (registry, reads) = (Arc::clone(&registry), reads.clone());
            thread::spawn(move || {
                let (slot, ts) = registry.begin(Begin::ByStatement).expect("a slot");
                reads.add((Begin::ByStatement, ts));
                (0..2).for_each(|_| reads.add((Begin::ByStatement, registry.draw(slot))));
            })
        };
        (0..3).for_each(|_| registry.running_set().into_iter().for_each(|set| sets.add(set)));
        reader.join().expect("no panic");
    });
    check_sets(sets.take(), &reads.take());
}

/// Between its statements it reads nowhere, and from each of them on as if it began there. In the end it reads at one
/// moment. Tables that were there when it began are kept for it all the time.
fn pauses_against_running_set() {
    let registry = registry();
    let (slot, began) = registry.begin(Begin::ByStatement).expect("a slot");
    let (reads, sets) = (Notes::new(), Notes::new());
    explore(|| {
        let reader = {
            let (registry, reads) = (Arc::clone(&registry), reads.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    registry.read_nothing_for_now(slot);
                    reads.add((Begin::ByStatement, registry.read_again(slot)));
                    reads.add((Begin::ByStatement, registry.draw(slot)));
                }
                let snapshot = registry.draw(slot);
                registry.read_at(slot, snapshot);
                reads.add((Begin::ByStatement, snapshot));
                snapshot
            })
        };
        for _ in 0..4 {
            registry.running_set().into_iter().for_each(|set| sets.add((set, reads.len())));
        }
        let snapshot = reader.join().expect("no panic");
        // What follows is later by any clock.
        (0..100).for_each(|_| _ = registry.now());
        let last = registry.running_set().expect("nobody is just beginning");
        assert!(!last.may_see(began, snapshot), "{last:?}");
    });
    let reads = reads.take();
    for (set, before) in sets.take() {
        assert!(set.may_use_table(began, began), "{set:?} does not cover its tables");
        check_sets(vec![set], &reads[before..]);
    }
}

/// No transaction publishes at or below a safe snapshot that was handed out,
/// and safe snapshots never fall (I-6).
fn safe_snapshots_against_writers() {
    let registry = registry();
    let snapshots = Notes::new();
    explore(|| {
        let writers = [Begin::WriterAtBegin, Begin::LateWriter].map(|kind| {
            let (registry, snapshots) = (Arc::clone(&registry), snapshots.clone());
            thread::spawn(move || {
                let (slot, begun) = registry.begin(kind).expect("a slot");
                registry.set_committing(slot);
                let ts = if kind == Begin::WriterAtBegin {
                    begun
                } else {
                    registry.draw_commit(slot, Timestamp::ZERO)
                };
                plain_access();
                // This is the moment of publication.
                snapshots
                    .each(|&at| assert!(at < ts, "{kind:?} publishes at {ts:?}, below the snapshot {at:?}"));
                registry.release(slot);
            })
        });
        let mut last = Timestamp::ZERO;
        for _ in 0..3 {
            let (slot, ts) = registry.begin(Begin::SafeReader).expect("a slot");
            snapshots.add(ts);
            assert!(ts >= last, "snapshot {ts:?} follows snapshot {last:?}");
            last = ts;
            registry.release(slot);
        }
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    });
}

/// A safe snapshot shows each commit that was acknowledged before it began, also while others are just beginning, unless a
/// running transaction may yet write below.
fn safe_snapshots_show_what_was_acknowledged() {
    let registry = registry();
    let acknowledged = Arc::new(AtomicU64::new(0));
    explore(|| {
        let writer = {
            let (registry, acknowledged) = (Arc::clone(&registry), Arc::clone(&acknowledged));
            thread::spawn(move || {
                for _ in 0..2 {
                    let (slot, _) = registry.begin(Begin::LateWriter).expect("a slot");
                    registry.set_committing(slot);
                    let ts = registry.draw_commit(slot, Timestamp::ZERO);
                    registry.await_passed(ts);
                    registry.release(slot);
                    acknowledged.store(ts.get(), Ordering::SeqCst);
                }
            })
        };
        let beginning = {
            let registry = Arc::clone(&registry);
            thread::spawn(move || {
                for how in [Begin::Reader, Begin::SafeReader, Begin::ByStatement] {
                    let (slot, _) = registry.begin(how).expect("a slot");
                    registry.release(slot);
                }
            })
        };
        for _ in 0..2 {
            let before = acknowledged.load(Ordering::SeqCst);
            let (slot, ts) = registry.begin(Begin::SafeReader).expect("a slot");
            assert!(ts.get() >= before, "the snapshot {ts:?} misses a commit at {before}");
            registry.release(slot);
        }
        writer.join().expect("no panic");
        beginning.join().expect("no panic");
    });
}

/// A writer that reads no more holds up no watermark, and yet publishes above every
/// safe snapshot that was handed out. Sets and watermarks cover those who read there.
fn prepared_writers_against_watermark() {
    let registry = registry();
    let (writer, _) = registry.begin(Begin::LateWriter).expect("a slot");
    let (begun, sets, snapshots) = (Notes::new(), Notes::new(), Notes::new());
    explore(|| {
        let committing = {
            let (registry, snapshots) = (Arc::clone(&registry), snapshots.clone());
            thread::spawn(move || {
                registry.reads_no_more(writer);
                registry.set_committing(writer);
                let ts = registry.draw_commit(writer, Timestamp::ZERO);
                plain_access();
                // This is the moment of publication.
                snapshots.each(|&at| assert!(at < ts, "it publishes at {ts:?}, below the snapshot {at:?}"));
                registry.release(writer);
            })
        };
        let beginning = {
            let (registry, begun, snapshots) = (Arc::clone(&registry), begun.clone(), snapshots.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    let (_, ts) = registry.begin(Begin::SafeReader).expect("a slot");
                    begun.add((Begin::SafeReader, ts));
                    snapshots.add(ts);
                    let watermark = registry.watermark();
                    assert!(ts.get() >= watermark.get() - 1, "it reads at {ts:?} below {watermark:?}");
                }
            })
        };
        for _ in 0..3 {
            registry.refresh_watermark(Duration::ZERO);
            registry.running_set().into_iter().for_each(|set| sets.add(set));
        }
        committing.join().expect("no panic");
        beginning.join().expect("no panic");
    });
    check_sets(sets.take(), &begun.take());
}

/// A state record that covers the timestamp of a transaction that has been prepared lists exactly that as
/// undecided, or the transaction has published before the record was written.
///
/// Found by a reader: the list was made before it was known that nothing is under way, and then had
/// the lower bound that the transaction had announced before its timestamp was settled.
fn prepared_writers_against_records() {
    let registry = registry();
    let (writer, _) = registry.begin(Begin::WriterAtBegin).expect("a slot");
    let published = Arc::new(AtomicBool::new(false));
    explore(|| {
        let preparing = {
            let (registry, published) = (Arc::clone(&registry), Arc::clone(&published));
            thread::spawn(move || {
                registry.set_deciding(writer);
                registry.set_moving(writer);
                let ts = registry.draw_commit(writer, Timestamp::ZERO);
                registry.await_passed(ts);
                registry.settle_at(writer, ts);
                registry.set_prepared(writer);
                registry.reads_no_more(writer);
                registry.set_told_to_commit(writer);
                published.store(true, Ordering::SeqCst);
                registry.release(writer);
                ts
            })
        };
        let mut records = Vec::new();
        for _ in 0..3 {
            let at = registry.now();
            let commits = registry.commits_under_way();
            if let Some(undecided) = registry.undecided(at, &commits) {
                records.push((at, undecided, published.load(Ordering::SeqCst)));
            }
            hint::spin_loop();
        }
        let ts = preparing.join().expect("no panic");
        for (at, undecided, published) in records.into_iter().filter(|(at, ..)| *at >= ts) {
            assert!(
                published || undecided.contains(&ts),
                "a record of {at:?} lists {undecided:?}, not {ts:?}"
            );
        }
    });
}

/// No state record lists a transaction as undecided from which one has read that has ended by then.
///
/// Found by a reader: the list had transactions that had published and not ended yet.
fn readers_against_records() {
    let registry = registry();
    let [writer, reader] = [0; 2].map(|_| registry.begin(Begin::WriterAtBegin).expect("a slot"));
    let (is_published, has_read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    explore(|| {
        let writing = {
            let (registry, is_published) = (Arc::clone(&registry), Arc::clone(&is_published));
            thread::spawn(move || {
                registry.set_committing(writer.0);
                is_published.store(true, Ordering::SeqCst);
                hint::spin_loop();
                registry.release(writer.0);
            })
        };
        let reading = {
            let registry = Arc::clone(&registry);
            let (is_published, has_read) = (Arc::clone(&is_published), Arc::clone(&has_read));
            thread::spawn(move || {
                registry.set_committing(reader.0);
                has_read.store(is_published.load(Ordering::SeqCst), Ordering::SeqCst);
                registry.release(reader.0);
            })
        };
        let mut records = Vec::new();
        for _ in 0..3 {
            let at = registry.now();
            let commits = registry.commits_under_way();
            records.extend(registry.undecided(at, &commits));
            hint::spin_loop();
        }
        writing.join().expect("no panic");
        reading.join().expect("no panic");
        if has_read.load(Ordering::SeqCst) {
            for undecided in records {
                let is_half = undecided.contains(&writer.1) && !undecided.contains(&reader.1);
                assert!(
                    !is_half,
                    "{undecided:?} lists {:?}, and not what has read from it, {:?}",
                    writer.1, reader.1
                );
            }
        }
    });
}

/// Of three transactions that wait for each other in a circle, exactly one is
/// refused, although each wakes the one that waits for it in vain. It ends, and then the others do.
fn circles_have_one_victim() {
    let registry = registry();
    let slots = [0; 3].map(|_| registry.begin(Begin::ByStatement).expect("a slot").0);
    let bounds = slots.map(|slot| registry.pending(slot));
    let ended = Arc::new([const { AtomicBool::new(false) }; 3]);
    let refused = Notes::new();
    explore(|| {
        let threads = [0, 1, 2].map(|n| {
            let (registry, ended, refused) = (Arc::clone(&registry), Arc::clone(&ended), refused.clone());
            thread::spawn(move || {
                let other = (n + 1) % 3;
                let looks = Cell::new(0);
                let over = || {
                    // It releases something else. The one that waits for it may have announced that by now.
                    if looks.replace(looks.get() + 1) == LOOKS - 1 {
                        registry.wake(slots[n]);
                    }
                    ended[other].load(Ordering::SeqCst)
                };
                if registry.wait(slots[n], slots[other], bounds[other], Duration::MAX, over).is_none() {
                    refused.add(n);
                }
                ended[n].store(true, Ordering::SeqCst);
                registry.release(slots[n]);
            })
        });
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
    assert_eq!(refused.take().len(), 1);
}

/// A transaction waits for another, which unlocks what it waits for and goes on, and then waits for it.
fn released_locks_close_no_circle() {
    let registry = registry();
    let [waiter, holder] = [(); 2].map(|()| registry.begin(Begin::ByStatement).expect("a slot").0);
    let bounds = [waiter, holder].map(|slot| registry.pending(slot));
    let [is_free, has_ended] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    explore(|| {
        let waiting = {
            let (registry, is_free, has_ended) =
                (Arc::clone(&registry), Arc::clone(&is_free), Arc::clone(&has_ended));
            thread::spawn(move || {
                let over = || is_free.load(Ordering::SeqCst);
                assert_eq!(registry.wait(waiter, holder, bounds[1], Duration::MAX, over), Some(true));
                has_ended.store(true, Ordering::SeqCst);
                registry.release(waiter);
            })
        };
        let looks = Cell::new(0);
        let over = || {
            // Not before it looks: the looks would give the waiter the time to notice.
            if looks.replace(looks.get() + 1) == LOOKS - 1 {
                is_free.store(true, Ordering::SeqCst);
                registry.wake(holder);
            }
            has_ended.load(Ordering::SeqCst)
        };
        assert_eq!(registry.wait(holder, waiter, bounds[0], Duration::MAX, over), Some(true));
        waiting.join().expect("no panic");
    });
    registry.release(holder);
}

/// I-28: a transaction that is asked to end, while it waits for another or just
/// before, waits no longer; and one that waits for the same other one goes on
/// waiting until that has ended.
fn ended_waiters_are_woken() {
    let registry = registry();
    let [holder, ended, patient] = [(); 3].map(|()| registry.begin(Begin::ByStatement).expect("a slot").0);
    let bound = registry.pending(holder);
    let is_over = Arc::new(AtomicBool::new(false));
    let looks = Arc::new(AtomicU64::new(0));
    explore(|| {
        let first = {
            let (registry, looks) = (Arc::clone(&registry), Arc::clone(&looks));
            thread::spawn(move || {
                let asked = || {
                    looks.fetch_add(1, Ordering::Relaxed);
                    registry.is_asked_to_end(ended)
                };
                assert_eq!(registry.wait(ended, holder, bound, Duration::MAX, asked), Some(true));
                registry.has_ended(ended);
                registry.release(ended);
            })
        };
        let second = {
            let (registry, is_over) = (Arc::clone(&registry), Arc::clone(&is_over));
            thread::spawn(move || {
                let over = || is_over.load(Ordering::SeqCst);
                assert_eq!(registry.wait(patient, holder, bound, Duration::MAX, over), Some(true));
                registry.release(patient);
            })
        };
        // Without this nearly every round would ask it before it announces that it waits.
        while looks.load(Ordering::Relaxed) < LOOKS {
            hint::spin_loop();
        }
        registry.ask_to_end(ended);
        first.join().expect("no panic");
        is_over.store(true, Ordering::SeqCst);
        registry.release(holder);
        second.join().expect("no panic");
    });
    assert_eq!(registry.running(), 0);
}

/// Two transactions wait for the slots that two others free, and none is left
/// asleep.
fn slots_are_waited_for() {
    let registry = registry();
    let begin = || registry.begin(Begin::ByStatement).map(|(slot, _)| slot);
    let mut slots: Vec<_> = std::iter::from_fn(|| begin().ok()).collect();
    explore(|| {
        let waiting = [(); 2].map(|()| {
            let registry = Arc::clone(&registry);
            thread::spawn(move || {
                let begun = registry.begin_within(Begin::ByStatement, TRANSACTION_SLOTS, Duration::MAX);
                registry.release(begun.expect("a slot").0);
            })
        });
        registry.release(slots.pop().expect("a slot"));
        waiting.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

/// A writer waits for a slot that writers can have, and a reader for any. Whichever
/// comes free wakes those who can have it.
fn readers_wait_beside_writers() {
    let registry = registry();
    let begin = || registry.begin(Begin::Reader).map(|(slot, _)| slot);
    let mut slots: Vec<_> = std::iter::from_fn(|| begin().ok()).collect();
    explore(|| {
        let wait = |slots| {
            let registry = Arc::clone(&registry);
            thread::spawn(move || {
                let begun = registry.begin_within(Begin::LateWriter, slots, Duration::MAX);
                registry.release(begun.expect("a slot").0);
            })
        };
        let (writer, reader) = (wait(WRITER_SLOTS), wait(TRANSACTION_SLOTS));
        registry.release(slots.pop().expect("a slot that writers cannot have"));
        reader.join().expect("no panic");
        registry.release(slots.pop().expect("one that they can have"));
        writer.join().expect("no panic");
    });
}
