//! What all handles of an open database share; it knows no transaction.

pub(crate) mod anchor;
pub(crate) mod background;
pub(crate) mod catalog;
pub(crate) mod cleanup;
pub(crate) mod core;
pub(crate) mod recovery;
pub(crate) mod table;
pub(crate) mod view;
pub(crate) mod visitor;
