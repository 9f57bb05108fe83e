//! The store: contents in blocks on a medium, the life cycle of blocks, and tiles.
//!
//! This crate is a part of the database Pantile; applications use the crate `pantile`. It knows
//! neither transactions nor collectors.
//!
//! In the repository, `docs/format.md` defines the bytes. `docs/design.md` ("Storage") defines the
//! terms, and the invariants that comments cite as I-n.

#![allow(unsafe_code)] // contents are read where they lie in the medium's mapping

mod allocator;
mod append;
mod block;
mod chunks;
mod collect;
mod content;
mod descriptors;
mod divisions;
mod error;
mod event;
mod expectation;
mod fetch;
mod format;
mod free_slot;
mod from_image;
mod geometry;
mod hold;
mod image;
mod in_force;
mod joining;
mod kept;
mod kept_tiles;
mod lines;
mod nodes;
mod own;
mod packing;
mod records;
mod row_cache;
mod salvage;
mod scan;
mod scan_beside;
mod settle;
mod shape;
mod slots;
mod space;
mod state_record;
mod store;
mod stream;
mod superseded_bits;
mod survey;
mod tally;
mod tile;
mod verify;

pub use append::Appended;
pub use block::{BlockRef, BlockState};
pub use chunks::RetiredChunk;
pub use collect::{BlockInfo, Refused, Superseded, Survivor, Visited};
pub use content::{Content, ContentFlags, HEADER_BYTES};
pub use error::StoreError;
pub use event::{BlockEvent, emit};
pub use format::{DEPENDENCIES, FORMAT_VERSION, Lineage, MAX_CONTENTS_PER_TRANSACTION, begin_history};
pub use free_slot::{FreeSlot, SlotReuse};
pub use from_image::{Claims, Nearby};
pub use geometry::slot_bytes;
pub use hold::{Holds, Period};
pub use image::blocks::ImageBase;
pub use image::read::{BadPage, Image};
pub use image::write::ImageWriter;
pub use image::{ImageName, PAGE_WORDS, Section};
pub use in_force::StateSample;
pub use kept_tiles::{KeepLinks, PassedLink};
pub use packing::{FreePlaces, Packing};
pub use row_cache::{KeptContent, RowCache, RowCacheStats};
pub use scan::{Found, IsWhole, Scan, ScanProgress, ScanSummary};
pub use scan_beside::Beside;
pub use space::{DroppedTable, Held, Reader, Space, StateBlocks, TableBlocks};
pub use store::{GivenBack, Store, StoreOptions};
pub use stream::{NewContent, Urgency};
pub use survey::{
    BlockUse, ChunkUse, FilledSlot, Finding, MediumLocation, RecordFacts, Severity, Survey, SurveyCalls,
    Surveyed, SurveyedBlock, SurveyedChunk, SurveyedRecord, survey,
};
pub use tile::{KeepInstead, KeptLinks, Link, Tile};
pub use verify::UnreadBlocks;
