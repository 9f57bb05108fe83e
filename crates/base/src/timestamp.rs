use std::fmt;

use crate::limits::SLOT_BITS;

/// A point in the serial order of transactions.
///
/// The high 54 bits count clock ticks of 32 ns, enough for 18 years. The low 10
/// bits name the transaction slot that drew the timestamp. A transaction's
/// timestamp is the `begin_ts` of the versions that it writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Before every transaction.
    pub const ZERO: Self = Self(0);
    /// After every transaction.
    pub const MAX: Self = Self(u64::MAX);

    /// The timestamp that `slot` draws at `tick`.
    #[inline]
    pub const fn new(tick: u64, slot: usize) -> Self {
        Self((tick << SLOT_BITS) | slot as u64)
    }

    /// From the number that [`Timestamp::get`] gave.
    #[inline]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The number, as stored in formats and atomics.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The transaction slot that drew it.
    #[inline]
    pub const fn slot(self) -> usize {
        self.0 as usize & ((1 << SLOT_BITS) - 1)
    }

    /// The clock tick (32 ns) in which it was drawn.
    #[inline]
    pub const fn tick(self) -> u64 {
        self.0 >> SLOT_BITS
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MAX => f.write_str("Timestamp(MAX)"),
            _ => write!(f, "Timestamp({}.{})", self.tick(), self.slot()),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
