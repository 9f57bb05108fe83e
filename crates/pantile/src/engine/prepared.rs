//! What a prepared transaction knows of that (I-32).

use pantile_base::Timestamp;

pub(crate) struct Prepared {
    /// Where it will commit, if that is settled.
    pub settled: Option<Timestamp>,
    /// The changes that it could undo before it held its own record.
    pub before_record: usize,
    /// Bytes that the store has promised.
    pub promised: u64,
}
