//! Checking and showing the files of a closed database.

pub(crate) mod check;
mod definitions;
pub(crate) mod findings;
pub(crate) mod inspect;
pub(crate) mod options;
