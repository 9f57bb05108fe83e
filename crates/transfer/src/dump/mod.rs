//! Dumping.

mod dumping;
pub mod files;
mod out;
mod rows;

pub use dumping::Dump;
pub use out::Dumped;
