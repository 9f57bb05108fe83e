//! When a transaction has the database to itself.

use std::time::Duration;

use crate::types::bounds::check_bounds;
use crate::types::error::{Error, Result};

/// When a transaction gets the exclusive stage, on which it runs without other writers.
///
/// While a transaction has the stage, no other that may write begins (Zen+ 4.1, with its thresholds
/// α, β and γ). Transactions that only read go on, unless
/// [`Options::writers_move`](crate::Options::writers_move) is off.
///
/// ```
/// # use pantile::*;
/// // A transaction that has tried four times, or read and written a million rows in
/// // vain, gets its turn.
/// let when = ExclusiveStage { tries: 4, wasted: 1_000_000, ..ExclusiveStage::default() };
/// let db = Options::new().medium(MediumKind::Dram).exclusive_stage(when).open("unused")?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExclusiveStage {
    /// α: a transaction that writes takes the stage once it has read and written this many rows,
    /// and keeps it until it ends. This is for databases in which one large transaction is worth
    /// more than the short ones that would make it fail. By default it never happens.
    pub accessed: u64,
    /// β: while less than this share of the medium's limit is left and a transaction has been open
    /// for a second, others wait up to a tenth of a second before they begin. This is for media
    /// that are nearly full: what the long transaction holds back can be freed when it ends. 0 by
    /// default, which means never.
    pub space_left: f64,
    /// γ: [`Database::run`](crate::Database::run) and [`Retry`](crate::Retry) take the stage for a
    /// transaction once its failed attempts have read and written this many rows, and keep it until
    /// the transaction has ended. 16 million by default, as in the paper.
    pub wasted: u64,
    /// As `wasted`, but by time: once the attempts that failed because others came first have taken
    /// this long. 10 seconds by default. Together with `wasted` it bounds the time of a long writer
    /// that conflicts with short ones. Such a transaction is tried on the stage up to three times,
    /// even if the time of [`Options::retry_for`](crate::Options::retry_for) is over, unless that
    /// time is zero.
    pub spent: Duration,
    /// As `wasted`, but after this many failures, and others wait for a tenth of a second at most.
    /// 8 by default.
    pub tries: u32,
}

impl Default for ExclusiveStage {
    fn default() -> Self {
        Self {
            accessed: u64::MAX,
            space_left: 0.0,
            wasted: 16_000_000,
            spent: Duration::from_secs(10),
            tries: 8,
        }
    }
}

impl ExclusiveStage {
    pub(crate) fn check(&self) -> Result<()> {
        let is_share = (0.0..=1.0).contains(&self.space_left);
        check_bounds("exclusive_stage.tries", Some(u64::from(self.tries)), 1..=u64::from(u32::MAX))?;
        match is_share {
            true => Ok(()),
            false => Err(Error::InvalidOption(format!(
                "exclusive_stage.space_left is {}, and a share is between 0 and 1",
                self.space_left
            ))),
        }
    }
}
