//! How a block is divided. What follows from it is in `geometry.rs`.

/// How a block is divided while it belongs to a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shape {
    /// Bytes from one slot to the next.
    pub stride: u32,
    pub slots: u32,
}
