//! Processes that read the database (I-27). Those that were there when it was
//! opened, or whose connection has ended, have none to this process, and are known by their marks.

use std::time::Duration;

use pantile_store::{Store, StoreError};

/// A process that this one has admitted.
pub(crate) struct Admitted {
    pub hold: u64,
    pub process: u32,
    /// When, by the clock.
    pub since: Duration,
}

/// What is held for those without a connection.
pub(crate) struct Earlier {
    marks: Vec<u64>,
    pub hold: u64,
}

impl Earlier {
    /// Holds everything for them. Recovery has changed nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Medium`] if it is not known whether there are any.
    pub fn hold(store: &Store) -> Result<Option<Self>, StoreError> {
        let Some(file) = &store.medium().facts().file else { return Ok(None) };
        let marks = file.readers()?;
        Ok((!marks.is_empty()).then(|| Self { marks, hold: store.holds().begin() }))
    }

    /// Goes on holding for a process whose connection has ended.
    pub fn of(mark: u64, hold: u64) -> Self {
        Self { marks: vec![mark], hold }
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.marks.len()
    }

    /// Whether some are still there.
    pub fn are_left(&mut self, store: &Store) -> bool {
        let file = store.medium().facts().file.as_ref();
        self.marks.retain(|mark| file.is_some_and(|file| file.is_read_by(*mark).unwrap_or(true)));
        !self.marks.is_empty()
    }
}
