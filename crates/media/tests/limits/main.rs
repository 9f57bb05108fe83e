//! Devices without room.
//!
//! A limit on the sizes of files stands in for a full device. It holds for the
//! whole process, so these tests run one after the other in a program of their
//! own.

mod full;
mod full_restore;
mod full_write;
mod limit;
