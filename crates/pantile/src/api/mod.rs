//! The database as callers hold it.

pub(crate) mod database;
mod definitions;
pub(crate) mod measuring;
mod opening;
mod verifying;
