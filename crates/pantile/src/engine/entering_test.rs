//! How long one who enters waits, and what stands still meanwhile.

use std::cell::RefCell;

use pantile_base::sync::thread_local;

use super::*;
use crate::engine::alarm::Due;
use crate::{Database, MediumKind, Options, TableDef, Type};

/// A wait of this thread, and whether it is in a round of the worker meanwhile.
type Wait = (Duration, bool);

thread_local! {
    static WAITS: RefCell<Vec<Wait>> = const { RefCell::new(Vec::new()) };
    /// A slot for this thread once it begins again.
    static KEPT: RefCell<Option<Permit>> = const { RefCell::new(None) };
}

/// A thread is about to wait for a slot.
pub(super) fn note(core: &Core, limit: Duration) {
    let is_in_round = core.rounds.is_under_way();
    WAITS.with_borrow_mut(|waits| waits.push((limit, is_in_round)));
    if WAITS.with_borrow(|waits| waits.len() > ONCE.len())
        && let Some(permit) = KEPT.take()
    {
        core.leave(permit);
    }
}

fn waits<T>(work: impl FnOnce() -> T) -> (T, Vec<Wait>) {
    WAITS.take();
    let done = work();
    (done, WAITS.take())
}

const LIMIT: Duration = Duration::from_millis(3);
const ONCE: [Wait; 2] = [(LIMIT, false), (Duration::ZERO, true)];

/// A database without a thread of its own in which all slots are taken.
fn full() -> (Database, Vec<Entered>) {
    let options = Options::new().medium(MediumKind::Dram).worker(false).begin_wait(LIMIT);
    let db = options.retry_for(Duration::from_secs(600)).open("unused").expect("open");
    let taken = (0..TRANSACTION_SLOTS).map(|_| db.core.enter(Begin::LateWriter).expect("a slot")).collect();
    (db, taken)
}

#[test]
fn the_time_to_begin_is_waited_once_and_not_in_a_round() {
    let (db, mut taken) = full();
    let (begun, waited) = waits(|| db.begin());
    assert!(matches!(begun, Err(Error::TooManyTransactions { waited: LIMIT, .. })), "{begun:?}");
    assert_eq!(waited, ONCE);
    let def = TableDef::new("t").column("id", Type::U8).primary_key(["id"]);
    let (made, waited) = waits(|| db.create_table(def.clone()));
    assert!(matches!(made, Err(Error::TooManyTransactions { waited: LIMIT, .. })), "{made:?}");
    assert_eq!(waited, ONCE);
    KEPT.set(Some(taken.swap_remove(0).0));
    let (ran, waited) = waits(|| db.run(|_| Ok::<_, Error>(())));
    assert!(ran.is_ok() && waited.len() > ONCE.len(), "{ran:?} begins again: {waited:?}");
    db.create_table(def).expect("a slot is free");
    taken.into_iter().for_each(|(permit, _)| db.core.leave(permit));
}

/// Others look for a slot between rounds, and would wait for the round.
#[test]
fn the_worker_waits_for_a_slot_between_rounds() {
    let (db, mut taken) = full();
    let (due, waited) = waits(|| db.core.round());
    assert!(matches!(due, Due::AfterAWrite));
    assert_eq!(waited, [(Duration::ZERO, true), (LIMIT, false)]);
    let (left, waited) = waits(|| db.compact());
    assert!(matches!(left, Err(Error::TooManyTransactions { waited: LIMIT, .. })), "{left:?}");
    assert_eq!(waited, [(Duration::ZERO, true), (LIMIT, false)]);
    db.core.leave(taken.pop().expect("a permit").0);
    let (_, waited) = waits(|| db.core.round());
    assert_eq!(waited, [(Duration::ZERO, true); 2]);

    // The slot that it has waited for serves the round.
    let (seen, waited) = waits(|| {
        let looks = Cell::new(0);
        db.core.apart_with_slots(|enter| {
            looks.set(looks.get() + 1);
            let (permit, _) = if looks.get() == 1 {
                taken.push(db.core.enter_at_once(Begin::LateWriter)?);
                let full = enter().map(|(permit, _)| db.core.leave(permit));
                taken.pop().into_iter().for_each(|(permit, _)| db.core.leave(permit));
                full.map(|()| unreachable!("no slot is free"))?
            } else {
                enter()?
            };
            db.core.leave(permit);
            Ok(looks.get())
        })
    });
    assert_eq!(seen.expect("a slot"), 2);
    assert_eq!(waited, [(Duration::ZERO, true), (Duration::ZERO, true), (LIMIT, false)]);
    assert_eq!(db.core.registry.running(), taken.len());
    taken.into_iter().for_each(|(permit, _)| db.core.leave(permit));
}
