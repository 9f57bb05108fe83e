//! Every collector: no version that a transaction may see is freed, every other
//! version is freed in the end, and the contents of a database do not depend on
//! the collector.
//!
//! Tests of TB-Collect alone are in `collector`, whose table of known rows is
//! used here. As there, a test that waits for a collector keeps committing
//! until the expected state is reached.

mod beside;
mod chains;
mod deletes;
mod drops;
mod full;
mod growth;
mod indexes;
mod partitions;
mod readers;
