//! The space that data takes, and what less of it costs.
//!
//! [`price`] updates rows until the space is steady and measures the bytes
//! written for each byte updated, beside the [`optimum`] for that space.

pub mod optimum;
pub mod price;
pub mod updates;
