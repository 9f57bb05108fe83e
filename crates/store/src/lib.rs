//! The store: contents in blocks on a medium, their life cycle, tiles.
//!
//! `docs/format.md` has the bytes, `docs/design.md` ("Storage") the
//! definitions and the invariants that comments here cite as I-n. The store
//! knows nothing of transactions' rules and nothing of collectors.
#![allow(unsafe_code)] // contents are read where they lie in the medium's mapping

mod allocator;
mod append;
mod block;
mod content;
mod error;
mod format;
mod geometry;
mod recover;
mod space;
mod state_record;
mod store;
mod tile;

pub use append::{Appended, NewContent};
pub use block::BlockState;
pub use content::{Content, ContentFlags, HEADER_BYTES};
pub use error::StoreError;
pub use format::{FORMAT_VERSION, MAX_CONTENTS_PER_TRANSACTION};
pub use recover::{Found, Scan, ScanProgress, ScanSummary};
pub use space::Space;
pub use store::{StateSample, Store, StoreOptions};
pub use tile::Link;
