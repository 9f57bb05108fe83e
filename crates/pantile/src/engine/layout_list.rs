//! The layouts of a table that may change while it is in use.

use std::sync::OnceLock;

use pantile_base::Timestamp;
use pantile_base::sync::atomic::{AtomicUsize, Ordering};

use crate::types::layouts::Layouts;

/// Each segment is twice as long as the one before it.
const SEGMENTS: usize = 24;

/// What a table has been since it was opened. Nothing is taken away, because rows
/// that callers hold refer to it.
pub(crate) struct LayoutList {
    first: Layouts,
    later: [OnceLock<Box<[OnceLock<Layouts>]>>; SEGMENTS],
    /// How many later ones there are.
    changes: AtomicUsize,
}

impl LayoutList {
    pub fn new(first: Layouts) -> Self {
        Self { first, later: Default::default(), changes: AtomicUsize::new(0) }
    }

    /// What the table is now.
    #[inline]
    pub fn newest(&self) -> &Layouts {
        match self.changes.load(Ordering::Acquire) {
            0 => &self.first,
            changes => self.later(changes),
        }
    }

    /// What the table was at a time.
    #[inline]
    pub fn at(&self, time: Timestamp) -> &Layouts {
        let newest = self.newest();
        if newest.since <= time { newest } else { self.earlier(time) }
    }

    #[cold]
    fn earlier(&self, time: Timestamp) -> &Layouts {
        let changes = self.changes.load(Ordering::Acquire);
        let later = (1..=changes).rev().map(|nth| self.later(nth));
        later.chain([&self.first]).find(|layouts| layouts.since <= time).unwrap_or(&self.first)
    }

    #[cold]
    fn later(&self, nth: usize) -> &Layouts {
        self.cell(nth).get().expect("it is counted once it is there")
    }

    /// Where the n-th later one is, counted from 1.
    fn cell(&self, nth: usize) -> &OnceLock<Layouts> {
        let segment = nth.ilog2() as usize;
        let cells = self.later[segment].get_or_init(|| (0..1 << segment).map(|_| OnceLock::new()).collect());
        &cells[nth - (1 << segment)]
    }

    /// Adds what the table is from here on. One caller at a time does so.
    pub fn push(&self, layouts: Layouts) {
        let nth = self.changes.load(Ordering::Relaxed) + 1;
        assert!(self.cell(nth).set(layouts).is_ok(), "one definition changes at a time");
        self.changes.store(nth, Ordering::Release);
    }
}
