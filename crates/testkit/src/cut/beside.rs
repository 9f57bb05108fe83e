//! The file beside a simulated medium.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pantile_media::{Beside, BesideFile};

use super::log::{Event, Log};

/// Bytes of a file.
#[derive(Debug)]
struct Bytes(Arc<Vec<u8>>);

impl BesideFile for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let range = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)?.get(..out.len()));
        out.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A file in memory. What is written to it is logged with what is done to the
/// medium.
#[derive(Debug)]
pub(crate) struct CutBeside {
    file: Mutex<Option<Arc<Vec<u8>>>>,
    log: Arc<Mutex<Log>>,
}

impl CutBeside {
    pub fn new(file: Option<Arc<Vec<u8>>>, log: Arc<Mutex<Log>>) -> Self {
        Self { file: Mutex::new(file), log }
    }
}

impl Beside for CutBeside {
    fn replace(&self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        let bytes = Arc::new(bytes);
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&bytes));
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.files.push(bytes);
        let file = log.files.len() - 1;
        log.events.push(Event::Beside { file });
        Ok(())
    }

    fn open(&self) -> io::Result<Option<Arc<dyn BesideFile>>> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.as_ref().map(|bytes| Arc::new(Bytes(Arc::clone(bytes))) as Arc<dyn BesideFile>))
    }
}
