//! Ordered in-memory indexes from keys to `u64` values, which are read without locks.
//!
//! This crate is a part of the database Pantile; applications use the crate `pantile`.
//!
//! An [`Index`] is a B+-tree with optimistic lock coupling (Leis, Scheibner,
//! Kemper, Neumann: *The ART of Practical Synchronization*, 2016; Leis,
//! Haubenschild, Neumann: *Optimistic Lock Coupling*, 2019). Readers never
//! write to a node, except to raise its read mark. They read its version, then
//! what they need, then check that the version is unchanged. Writers lock the
//! one node they change.
//!
//! A key is a non-empty slice of `u64` words. Keys are compared word by word,
//! then by length. The caller packs order-preserving bytes into the words,
//! big-endian. Keys of one word, keys of two words that end with their value, and all others have
//! node layouts of their own.
//!
//! Every leaf carries a *read mark*: the newest timestamp at which a reader
//! relied on a gap in the leaf's key range. An insert into that range with an
//! older timestamp is refused, so that no phantom can appear behind a reader.
//!
//! # Invariants
//!
//! * **I1, type-stable memory.** A [`NodeArena`] never unmaps a node before the
//!   arena is dropped, and never changes its size. Every word of a node is an
//!   initialised atomic. Every index keeps its arena alive.
//! * **I2, child words.** A child word is followed only if it was read under
//!   its node's lock, or if its node's version was checked after the read. It
//!   is then the address of a node of the tree's own size class.
//! * **I3, versions.** A node's version only grows, even when the node is freed and reused. So
//!   anything read under an old version fails its check. If a leaf still has the version that a
//!   thread remembers, and its tree still exists, then it is still the same leaf of that tree
//!   ([`Finger`]).
//! * **I4, racy reads.** A value that an optimistic reader takes from a node
//!   indexes the node's words only through checked accesses, until it is
//!   validated.
//! * **I5, marks.** A reader raises the mark before it checks the version. A
//!   writer locks the version before it reads the mark. All four accesses are
//!   sequentially consistent, so one of the two sees the other.
//! * **I6, fences.** A leaf holds the keys from its low fence (inclusive) to
//!   its high fence (exclusive). The leaves' ranges cover all keys.
//! * **I7, lock order.** A thread waits for a lock only while it holds locks of
//!   higher levels, or of nodes further left on the same level.
//! * **I8, leaves without a descent.** A leaf has the number of its tree from when its content has
//!   been stored until it leaves the tree, under its lock. A reader takes the leaf's version, then
//!   finds that number, then reads the leaf's range and entries. If the version is still the same
//!   afterwards, it has read a leaf of the tree.
#![allow(
    unsafe_code,
    reason = "nodes are shared memory found by address, which this crate maps, follows and prefetches"
)]

mod arena;
mod batch;
mod bulk;
mod directory;
mod estimate;
mod finger;
mod index;
mod layout;
mod lookup;
mod many;
mod merge;
mod narrow;
mod node;
mod pairs;
mod region;
mod scan;
mod search;
mod split;
mod tree;
mod wide;

pub use arena::NodeArena;
pub use batch::Batch;
pub use bulk::{Parts, Unsorted};
pub use finger::Finger;
pub use index::{Index, KeyForm};
pub use many::SIDE_BY_SIDE;
pub use scan::{Direction, Scan};
pub use tree::Insert;
