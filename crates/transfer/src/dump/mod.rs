//! Dumping.

mod dumping;
pub mod files;
mod left_out;
mod out;
mod rows;

pub use dumping::Dump;
pub use left_out::LeftOut;
pub use out::Dumped;
