//! How far the creation of an index has come.

/// How far [`Database::create_index_with`](crate::Database::create_index_with) has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct IndexProgress {
    /// Rows looked at so far. A unique index looks at each a second time, to compare the keys.
    pub done: u64,
    /// How many it will look at in all. Ids of deleted rows count until they are used again.
    pub total: u64,
}
