//! The checker of histories: what it must find, and what it must not.

mod absent;
mod common;
mod executors;
mod kinds;
mod oracle;
mod recorder;
mod scale;
