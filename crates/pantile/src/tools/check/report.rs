//! What a check reports.

use crate::tools::findings::Finding;

/// What a check has found.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckReport {
    /// Findings, damage first, in the order of their places on the medium.
    pub findings: Vec<Finding>,
    /// The number of damaged places, those that are not in `findings` included.
    pub damaged: u64,
    /// The number of other findings, those that are not in `findings` included.
    pub notices: u64,
    /// Whether everything was checked. If bytes are damaged, rows and indexes cannot be checked.
    pub is_complete: bool,
    /// Whether the database had been closed. If not, the check shows it as
    /// opening would recover it.
    pub was_closed: bool,
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Chunks that are divided into blocks.
    pub chunks: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Contents in these blocks, superseded ones included.
    pub contents: u64,
    /// Transactions that wrote these contents.
    pub transactions: u64,
    /// Tables, without the engine's own, which are checked, too.
    pub tables: u64,
    /// Rows of these tables.
    pub rows: u64,
    /// Entries of their indexes, primary ones included.
    pub index_entries: u64,
    /// Values stored out of line.
    pub values_out_of_line: u64,
    /// How long the check took, in seconds.
    pub seconds: f64,
}

impl CheckReport {
    /// What to do about damage.
    pub const ADVICE: &str = "see to the device; then restore a copy, or copy what is whole into a new \
                              database (`pantile salvage DIR --into DIR2`, or pantile::salvage)";

    /// Whether there is no damage.
    pub fn is_sound(&self) -> bool {
        self.damaged == 0
    }
}
