//! Small writes to an ordinary file without a system call.
//!
//! Where commits do not wait for the device, the system call of a small write costs
//! more than the rest of the commit: 1 to 2 µs beside 0.1 µs for a store. So small
//! writes are stored through a mapping, as LMDB's `MDB_WRITEMAP` does. It is a
//! mapping of its own: the one that readers hold pointers into stays read only.
//! What is stored is in the page cache at once, as if written: the other mapping
//! shows it, a killed process does not lose it, and a sync of the file takes it along.
//! Before a sync, the pages are taken out of the mapping (`Stores::let_go`); the next store to one finds
//! it again by a page fault, which it would have met anyway.
//!
//! # Space
//! A store to a page without space ends the process by SIGBUS, where a write returns
//! an error. So this is done only on file systems that overwrite in place and keep
//! the space that they have promised (`os::keeps_promises`), and only in pieces whose
//! space they have promised. Everything else is written.

use crate::MediumError;
use crate::data_file::DataFile;
use crate::map::{Map, MapOptions, Protection};
use crate::os;
use crate::pieces::{Pieces, Promised};
use std::ptr;
use std::sync::Arc;

/// Longest write that is stored. Above, the call is cheaper than the page faults.
const MOST_BYTES: usize = 8 << 10;

/// The mapping that stores go through.
#[derive(Debug)]
pub(crate) struct Stores {
    map: Map,
    promised: Promised,
    /// Where something was stored since the last sync of the file.
    stored: Pieces,
    is_in_memory: bool,
    file: Arc<DataFile>,
}

impl Stores {
    /// A mapping of the first `len` bytes of a file that may have `limit`; none where
    /// stores are not safe, or addresses are short.
    pub(crate) fn over(file: &Arc<DataFile>, len: u64, limit: u64, explain_bus_errors: bool) -> Option<Self> {
        if !os::keeps_promises(file.file()) {
            return None;
        }
        let mut map = Map::reserve_all(MapOptions { reserve_bytes: limit, max_bytes: None })?;
        if explain_bus_errors {
            map.explain_bus_errors(file.file(), file.path(), Protection::ReadWrite);
        }
        let stores = Self {
            map,
            promised: Promised::default(),
            stored: Pieces::default(),
            is_in_memory: os::is_in_memory(file.file()),
            file: Arc::clone(file),
        };
        stores.map.begin(len, |from, to| stores.attach(from, to)).ok()?;
        Some(stores)
    }

    fn attach(&self, from: u64, to: u64) -> Result<(), MediumError> {
        self.map.attach_file(self.file.file(), Protection::ReadWrite, from, to)
    }

    /// Follows the file, whose bytes up to `len` are there. Where the system does not map more,
    /// what lies beyond is written by calls.
    pub(crate) fn grow(&self, len: u64) {
        let _ = self.map.grow(len, |from, to| self.attach(from, to));
    }

    /// Follows the file, which is about to be cut.
    pub(crate) fn shrink(&self, len: u64) {
        let before = self.map.len();
        if len < before {
            self.promised.note(len, before - len, false);
            // Nothing is given back here, so nothing can fail.
            let _ = self.map.shrink(len, |_| Ok(()));
        }
    }

    /// Notes that a part of the file has no space any more.
    pub(crate) fn forget(&self, offset: u64, len: u64) {
        self.promised.note(offset, len, false);
    }

    /// Takes the pages that were stored to out of the mapping, before the file is synced. The sync would
    /// make one after the other read only, and interrupt all cores each time. One of a file in
    /// memory does not.
    pub(crate) fn let_go(&self) {
        if !self.is_in_memory {
            self.stored.take(self.map.len(), |offset, len| self.map.let_go(offset, len));
        }
    }

    /// Stores bytes if there are few and their space is sure. Returns whether it did.
    ///
    /// # Safety
    /// The range is within the file, and no other thread uses it meanwhile.
    #[inline]
    pub(crate) unsafe fn store(&self, offset: u64, bytes: &[u8]) -> bool {
        let len = bytes.len() as u64;
        // The write that is made instead meets the same error, and returns it.
        let can = bytes.len() <= MOST_BYTES
            && self.map.check(offset, len).is_ok()
            && self.promised.ensure(&self.file, offset, len).is_ok();
        if can {
            self.stored.add(offset, len);
            // SAFETY: the range is attached and writable, and nobody else uses it, by the contract.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.at(offset).cast(), bytes.len()) };
        }
        can
    }
}
