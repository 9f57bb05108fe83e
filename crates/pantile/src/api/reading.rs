//! Opening to read, beside a process that writes or without one (I-27).

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pantile_base::sync::{Mutex, thread};
use pantile_media::{MediumError, ReaderFile};
use pantile_reclaim::Collector;

use crate::api::{incomplete, opening};
use crate::engine::core::Core;
use crate::engine::failure::from_medium;
use crate::types::error::{Error, Result};
use crate::types::options::Options;
use crate::types::reading::{Connection, PATIENCE, PAUSE, Reading};

/// Opens the database to read it, as it is or as the process lets it that has it
/// open.
pub(super) fn open(path: &Path, options: Options) -> Result<Arc<Core>> {
    incomplete::refuse(path)?;
    incomplete::refuse_part(path)?;
    let mut file = ReaderFile::open(path).map_err(from_medium)?;
    let began = Instant::now();
    loop {
        // The mark comes first: a process that opens the database now finds it, and
        // one that has it open answers.
        let number = file.identity().map_err(from_medium)?;
        let connected =
            file.mark().map(|mark| Connection::open(number, mark, |peer| file.is_served_by(peer)));
        if let Some(Ok((connection, beside))) = connected {
            let reading = Reading { beside: Some(beside), connection: Some(Mutex::new(connection)) };
            return open_view(path, file, options, reading);
        }
        match file.lock() {
            Ok(()) => return open_view(path, file, options, Reading { beside: None, connection: None }),
            // Without a mark nobody will answer.
            Err(error) if file.mark().is_none() => return Err(from_medium(error)),
            Err(MediumError::Locked { .. }) if began.elapsed() < PATIENCE => thread::sleep(PAUSE),
            Err(MediumError::Locked { process, .. }) => {
                return Err(Error::ReadersRefused { path: path.to_owned(), process });
            }
            Err(error) => return Err(from_medium(error)),
        }
    }
}

fn open_view(path: &Path, file: ReaderFile, options: Options, reading: Reading) -> Result<Arc<Core>> {
    let is_marked = file.mark().is_some();
    let view = file.view().map_err(from_medium)?;
    let reading = Arc::new(reading);
    let options = Options { reading: Some(Arc::clone(&reading)), must_exist: true, ..options };
    let options = options.collector(Collector::NONE);
    let core = opening::open_on(Arc::clone(&view) as _, path, options)?;
    if let Some(connection) = &reading.connection {
        connection.lock().has_scanned();
    }
    if is_marked {
        // An opener finds the mark from here on.
        view.admit_openers();
    }
    Ok(core)
}
