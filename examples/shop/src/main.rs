//! An order service on one directory: what a program needs around its transactions.
//!
//! ```console
//! $ shop old DIR 20000           # a database as the first version of this program left it
//! $ shop migrate DIR             # ... made what this version needs, beside its users
//! $ shop work DIR BACKUP         # takes orders and backs up, until it is killed
//! $ shop report DIR              # from a second process, while the first one works
//! ```
//!
//! Any of them can be killed at any moment. `tests/killed.rs` does.

mod migrations;
mod orders;
mod report;
mod work;

use std::path::Path;
use std::process::ExitCode;

use pantile::{Database, OnPinned, Options};

use crate::orders::ShopError;

/// A transaction that holds back garbage for so long is ended.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(60);

fn open(dir: &str) -> Result<Database, ShopError> {
    let options = Options::new().max_pinned_age(LONGEST, OnPinned::End);
    Ok(options.open(Path::new(dir))?)
}

fn run(arguments: &[&str]) -> Result<(), ShopError> {
    match arguments {
        ["old", dir, orders] => migrations::first_version(&open(dir)?, orders.parse().unwrap_or(1000)),
        ["migrate", dir] => migrations::migrate(&open(dir)?),
        ["work", dir, backup] => {
            let db = open(dir)?;
            migrations::migrate(&db)?;
            work::work(&db, Path::new(backup))
        }
        ["report", dir] => report::report(&Database::open_read_only(dir)?),
        ["dump", dir] => report::dump(&Database::open_read_only(dir)?),
        _ => Err(ShopError::Usage),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shop: {error}");
            ExitCode::FAILURE
        }
    }
}
