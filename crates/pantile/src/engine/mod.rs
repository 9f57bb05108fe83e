//! What all handles of an open database share. Of the other wings it uses only
//! `types`.

pub(crate) mod alarm;
pub(crate) mod anchor;
pub(crate) mod buffers;
pub(crate) mod catalog;
pub(crate) mod cleanup;
pub(crate) mod closing;
pub(crate) mod collect;
pub(crate) mod compacting;
pub(crate) mod core;
pub(crate) mod counters;
pub(crate) mod entering;
pub(crate) mod failure;
pub(crate) mod found;
pub(crate) mod gate;
pub(crate) mod holders;
pub(crate) mod image_load;
pub(crate) mod image_run;
pub(crate) mod image_tables;
pub(crate) mod image_trees;
pub(crate) mod image_write;
pub(crate) mod index_build;
pub(crate) mod memory;
pub(crate) mod memory_limit;
pub(crate) mod pieces;

pub(crate) mod read_set;
pub(crate) mod recovery;
pub(crate) mod rounds;
pub(crate) mod salvage;
pub(crate) mod sorted_keys;
pub(crate) mod stage;
pub(crate) mod stale;
pub(crate) mod state_records;
pub(crate) mod still_open;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod unread;
pub(crate) mod upkeep;
pub(crate) mod view;
pub(crate) mod visitor;
pub(crate) mod worker;
