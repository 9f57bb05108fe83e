//! Blocks that other processes may be reading (I-27).
//!
//! A process that reads the medium by itself knows no transactions of this one,
//! and none of the copies that its collector makes. So as long as it reads, no
//! block is released that was in use when it began.

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::sync::{RwLock, RwLockReadGuard};

/// What is held for one process; the store gives it a number.
#[derive(Debug)]
struct Hold {
    number: u64,
    /// Blocks that were opened by then.
    opened_by: Timestamp,
    /// It may still look at any part of the medium.
    is_scanning: bool,
}

/// What is held for other processes.
#[derive(Debug, Default)]
pub struct Holds(RwLock<Held>);

#[derive(Debug, Default)]
pub(crate) struct Held {
    holds: Vec<Hold>,
    last: u64,
}

impl Held {
    /// Whether the generation of a block that was opened at this time may not end.
    pub fn covers(&self, opened_at: u64) -> bool {
        let is_covered = |hold: &Hold| opened_at <= hold.opened_by.get();
        self.holds.iter().any(is_covered) && !is_removed(Control::HeldForReaders)
    }

    /// Whether some process may be looking at any part of the medium.
    pub fn is_scanned(&self) -> bool {
        self.holds.iter().any(|hold| hold.is_scanning)
    }

    pub fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }
}

impl Holds {
    /// What is held. Nothing more is, as long as the guard is there.
    pub(crate) fn look(&self) -> RwLockReadGuard<'_, Held> {
        self.0.read()
    }

    /// Holds every block for a process that is about to scan the medium, and keeps
    /// the medium from becoming shorter. No block is on its way to be released
    /// when this returns. Returns the hold's number.
    pub fn begin(&self) -> u64 {
        let mut held = self.0.write();
        held.last += 1;
        let number = held.last;
        held.holds.push(Hold { number, opened_by: Timestamp::MAX, is_scanning: true });
        number
    }

    /// Holds only the blocks that were opened by this time.
    pub fn narrow(&self, number: u64, opened_by: Timestamp) {
        self.change(number, |hold| hold.opened_by = opened_by);
    }

    /// The process has found what it reads.
    pub fn scan_is_over(&self, number: u64) {
        self.change(number, |hold| hold.is_scanning = false);
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Hold)) {
        if let Some(hold) = self.0.write().holds.iter_mut().find(|hold| hold.number == number) {
            change(hold);
        }
    }

    /// Ends a hold.
    pub fn end(&self, number: u64) {
        self.0.write().holds.retain(|hold| hold.number != number);
    }

    /// Whether nothing is held for other processes.
    pub fn is_empty(&self) -> bool {
        self.look().is_empty()
    }
}
