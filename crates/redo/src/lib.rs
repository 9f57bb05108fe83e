//! Laboratory of Pantile: recovery from a checkpoint and a redo log, to compare with the engine's.
//!
//! A [`RedoStore`] keeps rows in volatile memory, with a hash index in DRAM, and makes them durable as an in-memory database
//! does (Zen+, section 2.3, "MMDB"): a checkpoint has all rows, and a redo log the whole rows that each transaction
//! since has written. Opening it loads the checkpoint, builds the index and replays the log. An [`Experiment`] leaves a
//! database of either kind as a kill leaves it, and measures how long it takes until the first row can be read again.
//!
//! What the store leaves out favours it: rows have one length and keys eight bytes; there is one index, a hash index, and it gets its
//! final size at once; one thread writes, so that the log needs no order among threads; checkpoints are taken while
//! nothing else happens; nothing gives back the space of an older checkpoint and its log; a crash while it recovers costs
//! nothing, since recovery writes nothing. All threads of the machine load the checkpoint, check the log and replay it.

mod ending;
mod experiment;
mod format;
mod memory;
mod recovery;
mod store;
mod tuples;

pub use ending::EndingMedium;
pub use experiment::{Experiment, Kind, Left, Opened, SEED};
pub use store::{Change, RedoError, RedoStore};
pub use tuples::Beyond;
