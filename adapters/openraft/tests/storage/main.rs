//! The log and the state of a node, without Raft.

mod killed;
mod node;
mod power;
mod stores;
mod suite;
mod waiting;
