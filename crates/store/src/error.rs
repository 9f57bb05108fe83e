use std::fmt;

use pantile_media::MediumError;

/// What can go wrong in the store.
#[derive(Debug)]
pub enum StoreError {
    /// An error of the medium.
    Medium(MediumError),
    /// There is no store, and none is to be created.
    Blank,
    /// The bytes are not a Pantile database.
    Foreign(String),
    /// The database has another format version.
    Version(u32),
    /// Something that was durable is damaged.
    Damaged {
        /// Byte offset, block, slot and table, as far as they are known.
        place: String,
        /// What is wrong.
        detail: String,
    },
}

impl From<MediumError> for StoreError {
    fn from(error: MediumError) -> Self {
        StoreError::Medium(error)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Medium(error) => error.fmt(f),
            StoreError::Blank => f.write_str("nothing has been stored here"),
            StoreError::Foreign(detail) => write!(f, "not a Pantile database: {detail}"),
            StoreError::Version(found) => write!(f, "format version {found}"),
            StoreError::Damaged { place, detail } => write!(f, "damaged at {place}: {detail}"),
        }
    }
}

impl std::error::Error for StoreError {}
