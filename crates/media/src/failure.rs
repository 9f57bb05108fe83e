//! The latch that a failed write or sync closes for good.
//!
//! After a failed sync nobody knows which bytes reached the device, and a
//! second sync would report success without having written them. So the first
//! failure is kept, later writers get it back, and nothing is retried.

use crate::MediumError;
use std::sync::OnceLock;

/// Open until the first failure, closed ever after.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    cause: OnceLock<String>,
}

impl Failure {
    /// Closes the latch; only the first cause is kept. Returns the error to report.
    pub(crate) fn latch(&self, cause: impl Into<String>) -> MediumError {
        let cause = self.cause.get_or_init(|| cause.into());
        MediumError::Failed { cause: cause.clone() }
    }

    /// Whether the latch is closed.
    pub(crate) fn is_latched(&self) -> bool {
        self.cause.get().is_some()
    }

    /// The first cause, if there was one.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.get().map(String::as_str)
    }

    /// Fails with the first cause if the latch is closed.
    pub(crate) fn check(&self) -> Result<(), MediumError> {
        match self.cause.get() {
            None => Ok(()),
            Some(cause) => Err(MediumError::Failed { cause: cause.clone() }),
        }
    }
}
