//! The database as callers hold it.

pub(crate) mod all_prepared;
pub(crate) mod bulk;
pub(crate) mod database;
mod definitions;
#[cfg(doctest)]
mod guide;
pub(crate) mod incomplete;
pub(crate) mod measuring;
pub(crate) mod migrations;
pub(crate) mod opening;
pub(crate) mod prepared;
mod reading;
pub(crate) mod typed;
mod verifying;
