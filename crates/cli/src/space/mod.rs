//! `pantile space`: the space that data takes, and what less of it costs.

mod patterns;
mod price;
mod series;
mod written;

use clap::Subcommand;

pub use patterns::patterns;
pub use price::price;
pub use written::written;

/// What to measure.
#[derive(Subcommand, Debug)]
pub enum Space {
    /// Measure the bytes written for each byte updated, beside the least for the same space.
    ///
    /// Updates rows until the space is steady, then measures for some time: for each distribution
    /// of the updates at each space target, and with the published policy, which has no target.
    /// Time is simulated unless --rate is 0, so that figures do not depend on the machine.
    #[command(after_help = price::EXAMPLES)]
    Price(price::PriceArgs),
    /// Measure the files that patterns of use leave: at their end, two seconds later, closed.
    ///
    /// Each pattern has a new database on a file, with the default options. Fails if one takes
    /// more than its bar two seconds later or after closing.
    #[command(after_help = patterns::EXAMPLES)]
    Patterns(patterns::PatternsArgs),
    /// Measure what bulk loads and small commits write: bytes per byte of row, system calls.
    #[command(after_help = written::EXAMPLES)]
    Written(written::WrittenArgs),
}
