//! Every collector: nothing that somebody may see goes, what nobody sees goes
//! in the end, and what a database holds does not depend on who collects.
//!
//! What is particular to TB-Collect is in `collector`, whose table of
//! known rows is used here. As there, a test that waits for a collector keeps
//! committing until it sees what it waits for.

mod beside;
mod chains;
mod deletes;
mod drops;
mod full;
mod growth;
mod indexes;
mod partitions;
mod readers;
