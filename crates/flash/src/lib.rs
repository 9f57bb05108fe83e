//! Laboratory of Pantile: what a way of storing rows does to flash.
//!
//! A [`Trace`] records what a database reads from its medium and writes to it as [`Request`]s, page by page, as a
//! block device would see them. [`InPlace`] makes the requests of a store that updates rows in
//! place and has a log, from the same changes. An [`Ssd`] replays requests: it has a flash translation layer that maps
//! pages and cleans greedily, and says how much it wrote and erased, and how long that took. An [`Experiment`] does all of it for TPC-C.
//!
//! [`sort`] sorts the pages of a trace into streams by how long they live, which says what hints to a device could gain;
//! [`listen_to_lives`] sorts them by how long the engine expects them to.
//!
//! [`write_requests`] writes a trace as text, for other programs.
//!
//! [`cold_blocks`] finds the blocks of a database that change no more, and [`compress`] measures what compressing their rows
//! gains and costs.
//!
//! Sources: SIAS, section III (traces of TPC-C, replayed on an SSD); the terms are those of Desnoyers,
//! "Analytic modeling of SSD write performance" (greedy cleaning, over-provisioning, write amplification).

mod cold;
mod expected;
mod in_place;
mod lifetimes;
mod packing;
mod request;
mod run;
mod ssd;
mod text;
mod tpcc;
mod traced;

pub use cold::{ColdBlock, ColdSettings, Costs, Gain, Way, cold_blocks, compress};
pub use expected::{STREAMS_OF_LIVES, listen_to_lives};
pub use in_place::{Change, InPlace, InPlaceSettings, Operation};
pub use lifetimes::{Known, in_one_stream, sort};
pub use packing::{Dictionary, ENTRY_BYTES, PackedRows, Packer, Unpacker};
pub use request::{PAGE_BYTES, Request, Stream, Totals};
pub use run::{SEED, run};
pub use ssd::{Report, Ssd, SsdSettings, Times};
pub use text::{Lives, write_requests};
pub use tpcc::{Experiment, IN_PLACE, Layout, Outcome, Requested};
pub use traced::{Access, Trace, TracedFactory};
