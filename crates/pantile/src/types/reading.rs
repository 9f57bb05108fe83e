//! Reading a database that another process may have open (I-27), and what the two
//! say to each other.

use std::io::{self, Read, Write};
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_media::Identity;
use pantile_store::Beside;

use crate::types::channel::{Stream, connect};

/// How a database is open that is only read.
#[derive(Debug)]
pub(crate) struct Reading {
    /// What the process allows that had it open.
    pub beside: Option<Beside>,
    /// The connection to it. It holds what is read.
    pub connection: Option<Mutex<Connection>>,
}

/// How long either side waits for the other to say something that takes no work.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at what cannot be waited for.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// What a reader sends once it has found all that it reads.
pub(crate) const SCANNED: &[u8] = b".";

/// A reader's connection.
#[derive(Debug)]
pub(crate) struct Connection(Stream);

impl Connection {
    /// Connects to the process that has the data file open, and asks what may be
    /// read. Its blocks are held as long as this is open.
    pub fn open(file: Identity, mark: u64) -> io::Result<(Self, Beside)> {
        let mut stream = connect(file)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&mark.to_le_bytes())?;
        stream.write_all(&std::process::id().to_le_bytes())?;
        let mut answer = [0; 16];
        stream.read_exact(&mut answer)?;
        let (timestamp, opened_by) = answer.split_at(8);
        let at = |bytes: &[u8]| Timestamp::from_raw(u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
        Ok((Self(stream), Beside { timestamp: at(timestamp), opened_by: at(opened_by) }))
    }

    /// Says that the scan is over.
    pub fn has_scanned(&mut self) {
        // If the other process has ended, there is nobody to be told.
        let _ = self.0.write_all(SCANNED);
    }
}
