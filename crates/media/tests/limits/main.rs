//! Devices without room.
//!
//! A limit on file sizes stands in for a full device. It holds for the whole
//! process, so these tests run one after another in a program of their own.

mod full;
mod full_restore;
mod full_write;
mod limit;
