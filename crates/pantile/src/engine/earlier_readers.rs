//! Processes that were reading when the database was opened (I-27). They have
//! no connection to this process, and are known by their marks.

use pantile_store::Store;

/// What is held for them.
pub(crate) struct Earlier {
    marks: Vec<u64>,
    pub hold: u64,
}

impl Earlier {
    /// Holds everything for them. Recovery has changed nothing yet.
    pub fn hold(store: &Store) -> Option<Self> {
        let file = store.medium().facts().file.as_ref()?;
        // A file system without such locks has no readers.
        let marks = file.readers().unwrap_or_default();
        (!marks.is_empty()).then(|| Self { marks, hold: store.holds().begin() })
    }

    /// Whether some are still there.
    pub fn are_left(&mut self, store: &Store) -> bool {
        let file = store.medium().facts().file.as_ref();
        self.marks.retain(|mark| file.is_some_and(|file| file.is_read_by(*mark).unwrap_or(true)));
        !self.marks.is_empty()
    }
}
