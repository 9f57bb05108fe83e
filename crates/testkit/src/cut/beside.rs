//! The file beside a simulated medium.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// A file in memory and its successor. What is written is logged with what is
/// done to the medium.
#[derive(Debug)]
pub(crate) struct CutBeside {
    files: Mutex<Vec<Arc<Vec<u8>>>>,
    log: Arc<Mutex<Log>>,
}

impl CutBeside {
    pub fn new(files: Vec<Arc<Vec<u8>>>, log: Arc<Mutex<Log>>) -> Self {
        Self { files: Mutex::new(files), log }
    }

    fn files(&self) -> MutexGuard<'_, Vec<Arc<Vec<u8>>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beside for CutBeside {
    fn write(&self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        let bytes = Arc::new(bytes);
        let mut files = self.files();
        files.truncate(1);
        files.push(Arc::clone(&bytes));
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.files.push(bytes);
        let file = log.files.len() - 1;
        log.events.push(Event::Beside { file });
        Ok(())
    }

    fn adopt(&self) -> io::Result<()> {
        let mut files = self.files();
        let last = files.pop().ok_or(io::ErrorKind::NotFound)?;
        *files = vec![last];
        Ok(())
    }

    fn open(&self) -> [Option<Arc<dyn BesideFile>>; 2] {
        let files = self.files();
        let open = |bytes: &Arc<Vec<u8>>| Arc::new(Bytes(Arc::clone(bytes))) as Arc<dyn BesideFile>;
        [0, 1].map(|n| files.get(n).map(open))
    }
}
