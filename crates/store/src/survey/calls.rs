//! The functions that a survey calls with what it finds.

use std::ops::ControlFlow;

use pantile_base::{Address, TableId};

use crate::content::Content;
use crate::survey::finding::Finding;

/// A valid content, committed or not.
#[derive(Clone, Copy, Debug)]
pub struct Surveyed<'a> {
    /// Its address.
    pub address: Address,
    /// The content.
    pub content: Content<'a>,
    /// Whether its transaction is known to have committed by this content alone.
    pub is_decided: bool,
}

/// What a survey calls with what it finds. Calls come from several threads.
pub struct SurveyCalls<'a> {
    /// Threads to read with, at least 1.
    pub threads: usize,
    /// Called with the valid contents of a block, except void ones.
    pub contents: &'a (dyn Fn(TableId, &[Surveyed<'_>]) + Sync),
    /// Called with each finding.
    pub finding: &'a (dyn Fn(Finding) + Sync),
    /// Called from time to time with the bytes done and the bytes to do. If it returns `Break`, the survey
    /// ends, and what it has found is of no use.
    pub progress: &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync),
}
