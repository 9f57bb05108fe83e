//! `pantile space`: the space that data takes, and what less of it costs.

mod price;

use clap::Subcommand;

pub use price::price;

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
}
