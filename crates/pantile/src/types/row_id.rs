//! The places of rows.

/// Which row of a table: from [`Cursor::row_id`](crate::Cursor::row_id). It is
/// faster than a key, and means the row only as long as the transaction runs
/// whose cursor has come to it. Later it may be another row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RowId(pub(crate) u64);

impl RowId {
    /// The row with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}
