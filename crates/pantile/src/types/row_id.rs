//! The places of rows.

/// Identifies a row of a table; from [`Cursor::row_id`](crate::Cursor::row_id).
///
/// It is faster than a key. It is valid only while the transaction runs whose cursor has come to
/// the row. Later it may identify another row.
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
