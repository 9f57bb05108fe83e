//! Databases as text, in files.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use pantile::Database;
use pantile_transfer::{Dump, Load};
use pyo3::PyResult;

use crate::error::raised_by;

/// Writes everything into a new file. A file that is not whole is removed.
pub fn dump(db: &Database, file: &Path) -> PyResult<u64> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        raised_by(error, format!("cannot dump to {}: {error}; the database is as it was", file.display()))
    };
    let out = File::create_new(file).map_err(|error| failed(&error))?;
    let written = write(db, &out).map_err(|error| failed(&*error));
    if written.is_err() {
        let _ = fs::remove_file(file);
    }
    written
}

fn write(db: &Database, out: &File) -> Result<u64, Box<dyn std::error::Error>> {
    let dumped = Dump::new(db)?.write(BufWriter::new(out))?;
    out.sync_all()?;
    Ok(dumped.rows)
}

/// Loads what [`dump`] has written.
pub fn load(db: &Database, file: &Path) -> PyResult<u64> {
    let unread =
        |error| raised_by(&error, format!("cannot read {}: {error}; nothing was loaded", file.display()));
    let input = File::open(file).map_err(unread)?;
    let loaded = Load::new(db).dump(input).map(|loaded| loaded.rows);
    loaded.map_err(|error| raised_by(&*error.cause, error.to_string()))
}
