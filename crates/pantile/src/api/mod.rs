//! The database as callers hold it.

pub(crate) mod database;
mod definitions;
mod measuring;
mod opening;
mod verifying;
