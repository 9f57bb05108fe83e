//! Checking and showing the files of a closed database.

pub(crate) mod check;
pub(crate) mod inspect;
