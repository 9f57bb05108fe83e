//! The engine under test, through its public interface.
//!
//! One program, so that it is linked once. Tests that need a process of their
//! own, or that start processes, are in `tests/processes`.

mod altering;
mod any_options;
mod any_rows;
mod at_rest;
mod backup;
mod check;
mod closing;
mod collector;
mod collectors;
mod compacting;
mod concurrency;
mod conversions;
mod cursors;
mod damage;
mod dropped_indexes;
mod dropped_tables;
mod durability;
mod durability_relaxed;
mod errors;
mod errors_ddl;
mod errors_full;
mod errors_open;
mod faults;
mod format;
mod history;
mod in_flight;
mod insight;
mod isolation;
mod larger_than_memory;
mod long_values;
mod many;
mod memory_limit;
mod migrations;
mod model;
mod overwriting;
mod prepared;
mod prepared_cuts;
mod price;
mod promise;
mod reopen;
mod row_cache;
mod row_sizes;
mod run;
mod serde_rows;
mod slow_medium;
mod support;
mod values;
mod verify;
mod waiting;
