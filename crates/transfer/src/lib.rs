//! Dumps [`pantile`] databases as text, JSON Lines and CSV, and loads them again. It uses only the public interface
//! of `pantile`. The file `docs/transfer.md` in the repository describes the formats.
//!
//! [`Dump`] writes what one snapshot shows: the whole database, the rows of a table, or the definitions. [`Load`]
//! reads this back, and also reads rows that other programs have written. A load that fails leaves nothing behind,
//! unless it was asked to commit in batches.
//!
//! ```
//! # use pantile::{MediumKind, Options, TableDef, Type};
//! use pantile_transfer::{Dump, Load};
//! # let new = || Options::new().medium(MediumKind::Dram).open("unused");
//! # let (db, other) = (new()?, new()?);
//! # let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
//! # db.run(|txn| txn.insert(&pets, &[7u32.into()]))?;
//! let mut text = Vec::new();
//! let dumped = Dump::new(&db)?.write(&mut text)?;
//! let loaded = Load::new(&other).dump(&text[..])?;
//! assert_eq!(loaded.rows, dumped.rows);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod block;
mod dump;
mod error;
pub mod field;
mod format;
mod json;
mod load;
mod progress;
mod schema;
mod target;
mod text;
mod timestamp;

pub use dump::{Dump, Dumped, LeftOut};
pub use error::{Committed, Error, LoadError, Place};
pub use format::Format;
pub use load::{Load, Loaded};
pub use progress::Progress;
