//! What a load is to do, and what it did.

use std::ops::ControlFlow;

use pantile::Database;

use crate::progress::Progress;

/// What a load is to do; see the methods of [`Load`](crate::Load).
pub struct Settings<'l> {
    pub db: &'l Database,
    pub batch: Option<u64>,
    pub is_alone: bool,
    pub null: Option<String>,
    pub tables: Vec<String>,
    pub threads: usize,
    pub progress: &'l dyn Fn(&Progress<'_>) -> ControlFlow<()>,
}

/// What was loaded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// Tables that the load has created.
    pub tables_created: u64,
    /// Rows in all.
    pub rows: u64,
    /// Bytes of the input that have been read.
    pub bytes: u64,
}
