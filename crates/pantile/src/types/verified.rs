//! What looking at the checksums of an open database has found.

/// A row whose stored bytes are damaged.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DamagedRow {
    /// The table.
    pub table: String,
    /// The row's number within the table, as `check` names it.
    pub tuple: u64,
    /// Where it is on the medium, and what is wrong there.
    pub what: String,
}

/// What [`Database::verify`](crate::Database::verify) has verified, and found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Verified {
    /// Rows.
    pub rows: u64,
    /// Bytes on the medium, those of definitions and of values out of line included.
    pub bytes: u64,
    /// The rows that are damaged.
    pub damaged: Vec<DamagedRow>,
}
