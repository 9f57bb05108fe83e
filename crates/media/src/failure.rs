//! The latch that a failed write or sync closes for good.
//!
//! After a failed sync it is unknown which bytes reached the device, and a
//! second sync would report success without having written them. So the first
//! failure is kept, later writers get it back, and nothing is retried.

use crate::MediumError;
use crate::os::{forks, watch_forks};
use crate::place::Place;
use std::sync::{Arc, OnceLock};

/// Open until the first failure, closed from then on.
#[derive(Debug, Default)]
pub struct Failure {
    cause: OnceLock<String>,
    /// Where the data file is, if there is one.
    place: Option<Arc<Place>>,
    /// [`forks`] when it was opened.
    forks: u32,
}

impl Failure {
    /// That of a medium in a data file.
    pub(crate) fn of_file(place: &Arc<Place>) -> Self {
        Self { cause: OnceLock::new(), place: Some(Arc::clone(place)), forks: watch_forks() }
    }

    /// Closes the latch; only the first cause is kept. Returns the error to report.
    pub fn latch(&self, cause: impl Into<String>) -> MediumError {
        let cause = self.cause.get_or_init(|| cause.into());
        MediumError::Failed { cause: cause.clone() }
    }

    /// The same for a sync, of which the next opening of the data file has to know (I-36).
    pub(crate) fn latch_sync(&self, cause: String) -> MediumError {
        self.place.iter().for_each(|place| place.note_failed_sync());
        self.latch(cause)
    }

    /// The first cause, if there was one.
    pub fn cause(&self) -> Option<String> {
        self.cause.get().cloned()
    }

    /// Fails with the first cause if the latch is closed. In a forked child it closes: the parent goes on writing
    /// where the child would.
    #[inline]
    pub fn check(&self) -> Result<(), MediumError> {
        if forks() != self.forks {
            self.look_at_fork();
        }
        match self.cause.get() {
            None => Ok(()),
            Some(cause) => Err(MediumError::Failed { cause: cause.clone() }),
        }
    }

    #[cold]
    fn look_at_fork(&self) {
        if self.place.is_some() {
            self.latch(format!(
                "process {} is a fork of the one that opened the database",
                std::process::id()
            ));
        }
    }
}
