//! A shell for databases of [`pantile`]: commands that read and change rows, on a terminal and in scripts. The command
//! `pantile shell` is made of it; the file `docs/shell.md` in the repository describes the commands.
//!
//! ```
//! # use std::sync::atomic::AtomicBool;
//! # use pantile::{MediumKind, Options, TableDef, Type};
//! use pantile_shell::Shell;
//! # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
//! # db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
//! let stop = AtomicBool::new(false);
//! let mut out = Vec::new();
//! let mut shell = Shell::new(&db, &stop);
//! shell.run("insert pets 7", &mut out)?;
//! shell.run(".mode csv", &mut out)?;
//! shell.run("scan pets", &mut out)?;
//! assert_eq!(String::from_utf8(out)?, "inserted\nid\n7\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod complete;
mod definitions;
mod error;
mod explain;
mod help;
mod prepared;
mod print;
mod reading;
mod rows;
mod session;
mod shell;
mod terminal;
mod words;

pub use error::Error;
pub use print::Mode;
pub use shell::{Flow, Shell};
pub use terminal::interact;
