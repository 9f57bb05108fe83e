//! The exclusive stage.

use std::time::Duration;

use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_base::sync::thread::{self, ThreadId};
use pantile_base::sync::{Condvar, Instant, Mutex};

/// How long a transaction waits at most for one that has the stage, to have it
/// next or to begin at all.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// How long a transaction has the stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Play {
    /// Others wait for one turn, and go on.
    Turn,
    /// Others wait until it has ended.
    Whole,
}

/// The exclusive stage (Zen+ 4.1.2). Without it transactions could invalidate
/// each other's reads for ever (T20). While a transaction has the stage, no other
/// begins that may write, and those that run soon end.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    /// Whether a thread has the stage, or all who begin are to wait.
    is_taken: AtomicBool,
    holder: Mutex<Holder>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Holder {
    thread: Option<(ThreadId, Play)>,
    /// There is little space left, and a long transaction keeps some.
    is_cleared: bool,
}

impl Holder {
    /// How long this thread waits for the one on stage; `None` if it need not.
    fn wait_of(&self, longest: Duration) -> Option<Duration> {
        match self.thread {
            Some((thread, _)) if thread == thread::current().id() => None,
            Some((_, Play::Whole)) => Some(longest),
            Some((_, Play::Turn)) => Some(TURN),
            None => self.is_cleared.then_some(TURN),
        }
    }
}

impl Stage {
    /// Waits while another thread has the stage: for a turn, or if it has it until
    /// its transaction has ended, for at most `longest`.
    #[inline]
    pub fn pass(&self, longest: Duration) {
        if self.is_taken.load(Ordering::Relaxed) {
            self.wait(longest);
        }
    }

    /// Whether this thread has the stage.
    pub fn is_mine(&self) -> bool {
        let is_mine = |by: Option<(ThreadId, Play)>| by.is_some_and(|(by, _)| by == thread::current().id());
        self.is_taken.load(Ordering::Relaxed) && is_mine(self.holder.lock().thread)
    }

    #[cold]
    fn wait(&self, longest: Duration) {
        let mut holder = self.holder.lock();
        let began = Instant::now();
        while let Some(limit) = holder.wait_of(longest) {
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            self.changed.wait_for(&mut holder, left);
        }
    }

    /// Takes the stage for this thread, unless it has it, or others hold it for
    /// all of `limit`, or for a turn if it is to have it for one. Returns whether it took it.
    pub fn take(&self, play: Play, limit: Duration) -> bool {
        let limit = if play == Play::Turn { limit.min(TURN) } else { limit };
        let mut holder = self.holder.lock();
        let (me, began) = (thread::current().id(), Instant::now());
        while let Some((by, _)) = holder.thread {
            let left = limit.saturating_sub(began.elapsed());
            if by == me || left.is_zero() {
                return false;
            }
            self.changed.wait_for(&mut holder, left);
        }
        holder.thread = Some((me, play));
        self.is_taken.store(true, Ordering::Relaxed);
        true
    }

    /// As [`Stage::take`], until what it returns is dropped.
    pub fn enter(&self, play: Play, limit: Duration) -> Option<OnStage<'_>> {
        self.take(play, limit).then_some(OnStage(self))
    }

    /// Leaves the stage to others.
    pub fn leave(&self) {
        self.change(|holder| holder.thread = None);
    }

    /// Lets those that begin wait for those that run, or not.
    pub fn clear(&self, is_cleared: bool) {
        if is_cleared || self.is_taken.load(Ordering::Relaxed) {
            self.change(|holder| holder.is_cleared = is_cleared);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Holder)) {
        let mut holder = self.holder.lock();
        change(&mut holder);
        self.is_taken.store(holder.thread.is_some() || holder.is_cleared, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// The stage is this thread's until this is dropped.
pub(crate) struct OnStage<'s>(&'s Stage);

impl Drop for OnStage<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pantile_base::sync::thread;

    use super::{AtomicBool, Ordering, Play, Stage, TURN};
    use crate::api::database::Database;
    use crate::transactions::transaction::Transaction;
    use crate::types::exclusive_stage::ExclusiveStage;
    use crate::types::options::{MediumKind, Options};
    use crate::types::schema::{TableDef, Type};
    use pantile_cc::SimulatedTime;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn one_has_it_at_a_time() {
        let stage = Stage::default();
        stage.pass(LONG);
        let mine = stage.enter(Play::Whole, TURN).expect("nobody has it");
        // It does not wait for itself, and does not take it twice.
        stage.pass(LONG);
        assert!(!stage.take(Play::Turn, TURN));
        let others = thread::scope(|scope| {
            scope.spawn(|| stage.take(Play::Turn, Duration::from_millis(1))).join().expect("no panic")
        });
        assert!(!others);
        drop(mine);
        assert!(stage.take(Play::Turn, TURN));
        stage.clear(true);
        stage.leave();
        assert!(stage.is_taken.load(Ordering::Relaxed), "there is still little space");
        stage.clear(false);
        assert!(!stage.is_taken.load(Ordering::Relaxed));
        stage.pass(LONG);
    }

    /// β: little space is left, and a long transaction keeps some of it.
    #[test]
    fn little_space_lets_long_transactions_end() {
        let time = SimulatedTime::default();
        let when = ExclusiveStage { space_left: 0.5, ..ExclusiveStage::default() };
        let options = Options::new().medium(MediumKind::Dram).max_bytes(8 << 20);
        let db: Database =
            options.exclusive_stage(when).simulated_time(time.clone()).open("unused").expect("a database");
        let def =
            TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1000)).primary_key(["id"]);
        let table = db.create_table(def).expect("a table");
        let is_cleared = || {
            time.advance(Duration::from_secs(2));
            db.upkeep();
            db.core.stage.is_taken.load(Ordering::Relaxed)
        };
        let long = db.begin_read().expect("a transaction");
        assert!(!is_cleared(), "there is space");
        for id in 0..5_000u64 {
            db.run(|txn| txn.insert(&table, &[id.into(), (&[7u8; 900][..]).into()])).expect("there is space");
        }
        assert!(is_cleared());
        // A transaction that begins waits for a turn and goes on.
        drop(db.begin().expect("a transaction"));
        drop(long);
        assert!(!is_cleared(), "nobody keeps any");
    }

    /// Writers that wait for the stage keep their slots, and the one that has it needs
    /// another for each attempt.
    #[test]
    fn the_one_on_stage_finds_a_slot() {
        let options = Options::new().medium(MediumKind::Dram).begin_wait(Duration::ZERO);
        let db: Database = options.open("unused").expect("a database");
        let mut open = Vec::new();
        while let Ok(txn) = db.begin() {
            open.push(txn);
        }
        let stage = db.core.stage.enter(Play::Whole, TURN).expect("nobody has it");
        drop(db.begin().expect("a slot for the one on stage"));
        drop(stage);
        db.begin().expect_err("others leave it to readers");
    }

    /// A writer that begins again waits as one that begins does.
    #[test]
    fn beginning_again_waits_for_the_stage() {
        let options = Options::new().medium(MediumKind::Dram).begin_wait(LONG);
        let db: Database = options.open("unused").expect("a database");
        let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
        let table = db.create_table(def).expect("a table");
        db.run(|txn| txn.insert(&table, &[1u64.into(), 0u64.into()])).expect("a row");
        let change = |txn: &mut Transaction| txn.update(&table, &[1u64.into()], &[("n", 1u64.into())]);
        let mut fresh = db.begin().expect("a transaction");
        db.run(change).expect("a later change");
        let stage = db.core.stage.enter(Play::Whole, TURN).expect("nobody has it");
        let is_left = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(change(&mut fresh).expect("it begins again"));
                assert!(is_left.load(Ordering::SeqCst));
            });
            // The other one can get past the stage meanwhile, if it does not wait.
            thread::sleep(Duration::from_millis(20));
            is_left.store(true, Ordering::SeqCst);
            drop(stage);
        });
    }
}
