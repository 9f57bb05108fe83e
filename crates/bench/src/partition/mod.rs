//! The NUMA-aware soft partition of Zen+ (section 4.2.2): transactions are sent to threads of the node that
//! most of their data is mapped to, and the mapping follows what is accessed.
//!
//! The engine has no part in this. It writes what a thread writes to memory of the thread's node, so that
//! tuples move to the node that their partition is mapped to.

mod assigned;
mod map;

pub use assigned::{Assign, Assigned, ByPartition};
pub use map::{BALANCED, CHANGE, NEARLY_LEAST, PARTITIONS, SoftPartition, partition_of};
