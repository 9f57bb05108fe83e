//! What fails inside the adapter, before it becomes an error of GlueSQL's.

use gluesql_core::error::Error;
use gluesql_core::store::IndexError;

/// An error of the database, or one of GlueSQL's own.
pub enum Failed {
    Pantile(pantile::Error),
    Glue(Error),
}

pub type Outcome<T> = Result<T, Failed>;

impl Failed {
    /// Whether the whole transaction can succeed when it runs again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Failed::Pantile(error) if error.is_retryable())
    }
}

impl From<pantile::Error> for Failed {
    fn from(error: pantile::Error) -> Self {
        Failed::Pantile(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Glue(error)
    }
}

impl From<IndexError> for Failed {
    fn from(error: IndexError) -> Self {
        Failed::Glue(error.into())
    }
}

/// Bytes that the adapter has not written, or that another version of GlueSQL has.
impl From<postcard::Error> for Failed {
    fn from(error: postcard::Error) -> Self {
        Failed::Glue(Error::StorageMsg(format!(
            "what is stored is not in the format of this version: {error}; nothing was changed; open it with the version that wrote it"
        )))
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Pantile(error) => Error::StorageMsg(error.to_string()),
            Failed::Glue(error) => error,
        }
    }
}
