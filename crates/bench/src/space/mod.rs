//! The space that data takes, and what less of it costs.
//!
//! [`price`] updates rows until the space is steady and measures the bytes
//! written for each byte updated, beside the [`optimum`] for that space.
//! [`patterns`] are ways to use a database, and the files that they leave;
//! [`written`] is what loading and committing write.

pub mod files;
pub mod optimum;
mod orders;
pub mod patterns;
pub mod price;
mod rows;
pub mod updates;
mod updating;
pub mod written;

/// Bytes that may be taken beside what the target says.
const SLACK: u64 = 16 << 20;

/// The bytes that a target promises for these live ones.
fn promised(live: u64, target: f64) -> u64 {
    (live as f64 * target) as u64 + SLACK
}
