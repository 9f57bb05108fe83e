//! What a survey finds, and at which place.

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Something that was durable has changed or is inconsistent.
    Damage,
    /// Nothing is lost: what a power failure may leave, duplicate copies, or
    /// space that is never used again.
    Notice,
}

/// A place on the medium, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MediumLocation {
    /// Byte offset.
    pub offset: u64,
    /// The chunk.
    pub chunk: Option<u32>,
    /// The block's number in the chunk.
    pub block: Option<u32>,
    /// The slot of the block.
    pub slot: Option<u32>,
    /// The table.
    pub table: Option<u32>,
    /// The tuple, within the table.
    pub tuple: Option<u64>,
}

impl MediumLocation {
    /// A place of which only the offset is known.
    pub fn at(offset: u64) -> Self {
        Self { offset, ..Self::default() }
    }
}

impl fmt::Display for MediumLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}", self.offset)?;
        match (self.chunk, self.block) {
            (Some(chunk), Some(block)) => write!(f, ", block {chunk}.{block}")?,
            (Some(chunk), None) => write!(f, ", chunk {chunk}")?,
            (None, _) => {}
        }
        if let Some(slot) = self.slot {
            write!(f, ", slot {slot}")?;
        }
        if let Some(table) = self.table {
            write!(f, ", table {table}")?;
        }
        self.tuple.map_or(Ok(()), |tuple| write!(f, ", tuple {tuple}"))
    }
}

/// One thing that is not as it should be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// The place.
    pub place: MediumLocation,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub what: String,
}

impl Finding {
    /// A finding of damage: something that was durable has changed.
    pub fn damage(place: MediumLocation, what: impl Into<String>) -> Self {
        Self { place, severity: Severity::Damage, what: what.into() }
    }

    /// A notice: something that is worth knowing.
    pub fn notice(place: MediumLocation, what: impl Into<String>) -> Self {
        Self { place, severity: Severity::Notice, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}
