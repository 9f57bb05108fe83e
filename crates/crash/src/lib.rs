//! Real crashes. A process is killed while it works on a database, and what it
//! leaves is compared with what it had acknowledged.
//!
//! [`work`] is what the process does; it reports line by line on a pipe.
//! [`history`] interprets the lines. [`verify`] compares. [`campaign`] starts,
//! kills and verifies, round by round. The first three also work alone, for
//! machines whose power is cut.

pub mod campaign;
mod copy;
pub mod error;
pub mod history;
pub mod life;
pub mod plan;
pub mod reader;
pub mod report;
pub mod rows;
pub mod settings;
pub mod verify;
pub mod work;
pub mod workload;

pub use error::{Error, Result};
