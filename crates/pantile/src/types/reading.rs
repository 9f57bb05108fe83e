//! Reading a database that another process may have open (I-27), and what the two
//! say to each other.

use std::io::{self, Read, Write};
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_media::Identity;
use pantile_store::{Beside, BlockRef};

use crate::types::channel::{Stream, connect, peer_of};

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
/// How long a reader waits for transactions that were writing when it came. What has been committed beside one that goes on it
/// does not see.
pub(crate) const WAIT_FOR_WRITERS: Duration = Duration::from_millis(100);
/// Between two looks at what cannot be waited for.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// What a reader sends once it has found all that it reads.
pub(crate) const SCANNED: &[u8] = b".";

/// Says what may be read.
pub(crate) fn write_beside(beside: &Beside, out: &mut impl Write) -> io::Result<()> {
    let Beside { timestamp, is_current, opened_by, dead } = beside;
    let mut bytes = Vec::with_capacity(32 + BlockRef::BYTES * dead.len());
    for number in [timestamp.get(), u64::from(*is_current), opened_by.get(), dead.len() as u64] {
        bytes.extend(number.to_le_bytes());
    }
    dead.iter().for_each(|block| bytes.extend(block.to_bytes()));
    out.write_all(&bytes)
}

fn read_beside(from: &mut impl Read) -> io::Result<Beside> {
    let mut numbers = [[0; 8]; 4];
    numbers.iter_mut().try_for_each(|number| from.read_exact(number))?;
    let [timestamp, is_current, opened_by, dead] = numbers.map(u64::from_le_bytes);
    let mut from = io::BufReader::new(from);
    let mut block = || {
        let mut bytes = [0; BlockRef::BYTES];
        from.read_exact(&mut bytes).map(|()| BlockRef::from_bytes(bytes))
    };
    let dead = (0..dead).map(|_| block()).collect::<io::Result<_>>()?;
    let [timestamp, opened_by] = [timestamp, opened_by].map(Timestamp::from_raw);
    Ok(Beside { timestamp, is_current: is_current != 0, opened_by, dead })
}

/// A reader's connection.
#[derive(Debug)]
pub(crate) struct Connection(Stream);

impl Connection {
    /// Connects to the process that has the data file open, and asks what may be
    /// read. Its blocks are held as long as this is open. `trusts` says whether to believe what
    /// a process of a user answers.
    pub fn open(
        file: Identity,
        mark: u64,
        trusts: impl FnOnce((u32, u32)) -> bool,
    ) -> io::Result<(Self, Beside)> {
        let mut stream = connect(file)?;
        if !trusts(peer_of(&stream)?) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&mark.to_le_bytes())?;
        stream.write_all(&std::process::id().to_le_bytes())?;
        let beside = read_beside(&mut stream)?;
        Ok((Self(stream), beside))
    }

    /// Says that the scan is over.
    pub fn has_scanned(&mut self) {
        // If the other process has ended, there is nobody to be told.
        let _ = self.0.write_all(SCANNED);
    }
}
