//! Ranges of keys.

use std::ops::Bound;

use crate::types::position::Position;
use crate::types::value::Value;

/// Which rows to scan, and in which order.
///
/// A bound is a key or the first values of a key. In the second case it
/// includes or excludes all keys that begin with these values.
///
/// ```
/// use std::ops::Bound;
/// use pantile::{Range, Value};
/// let key = [Value::UInt(3)];
/// let of_three = Range::prefix(&key);
/// let newest_ten_up_to_three = Range::all().to(Bound::Included(&key)).reverse().limit(10);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Range<'r> {
    pub(crate) lower: Bound<&'r [Value<'r>]>,
    pub(crate) upper: Bound<&'r [Value<'r>]>,
    pub(crate) behind: Option<&'r Position>,
    pub(crate) reverse: bool,
    pub(crate) skip: usize,
    pub(crate) limit: usize,
}

impl<'r> Range<'r> {
    /// All rows, in ascending key order.
    pub fn all() -> Self {
        let (lower, upper) = (Bound::Unbounded, Bound::Unbounded);
        Self { lower, upper, behind: None, reverse: false, skip: 0, limit: usize::MAX }
    }

    /// The rows whose keys begin with these values. These are whole values of the first columns: the
    /// prefix `"Re"` does not find `"Rex"`. For that, begin at `"Re"` ([`Range::from`]) and end
    /// before `"Rf"` ([`Range::to`]).
    pub fn prefix(values: &'r [Value<'r>]) -> Self {
        Self::all().from(Bound::Included(values)).to(Bound::Included(values))
    }

    /// Limits the range to keys from this bound on.
    #[must_use]
    pub fn from(mut self, lower: Bound<&'r [Value<'r>]>) -> Self {
        self.lower = lower;
        self
    }

    /// Limits the range to keys up to this bound.
    #[must_use]
    pub fn to(mut self, upper: Bound<&'r [Value<'r>]>) -> Self {
        self.upper = upper;
        self
    }

    /// Limits the range to the rows behind a position, in the order in which this range is scanned.
    /// The position is from a cursor over the same index.
    #[must_use]
    pub fn behind(mut self, position: &'r Position) -> Self {
        self.behind = Some(position);
        self
    }

    /// Scans in descending key order.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// Leaves out the first rows of the scan.
    ///
    /// The scan looks at each of them, as a count does, so this takes about as long as reading
    /// them. To read a table page by page, begin each page [behind](Range::behind) the last row of
    /// the page before instead.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// db.run(|txn| txn.insert_many(&t, (0..10u64).map(|id| [id.into()])))?;
    /// let txn = db.begin_read()?;
    /// let page = txn.scan(&t, Range::all().skip(4).limit(2))?;
    /// let page: Vec<u64> = page.map(|row| row?.get("id")).collect::<Result<_>>()?;
    /// assert_eq!(page, [4, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn skip(mut self, rows: usize) -> Self {
        self.skip = rows;
        self
    }

    /// Limits the scan to this many rows, not counting those that are skipped.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }
}
