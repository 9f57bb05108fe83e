//! The log and the state of a node, without Raft.

mod killed;
mod node;
mod stores;
mod suite;
