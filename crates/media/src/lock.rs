//! The lock that says that a database is open.
//!
//! It is a `flock` on the data file itself, so it holds whatever name the file
//! is reached by, and no file can be removed to get around it. `flock` belongs
//! to the open file: a second opening is refused in the same process too, it
//! needs no right to write, and it ends with the process however that ends.
//! (`fcntl` locks of a process do not exclude that process, and are lost when
//! any descriptor of the file is closed. Those of an open file need a
//! descriptor for writing, and the kernel does not say who holds one.)
//!
//! A forked child shares its parent's open file and with it the lock. So the
//! lock is given back explicitly, which ends it for every copy of the
//! descriptor, and only the process that took it does so.

use crate::MediumError;
use crate::os::holder_of;
use crate::reader_mark;
use pantile_base::control::{Control, is_removed};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::process;

/// What a lock allows beside its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// No other opener.
    Alone,
    /// Openers that only read.
    WithReaders,
}

/// The process that holds a lock; it ends when this is released.
#[derive(Debug)]
pub(crate) struct Lock {
    holder: u32,
}

impl Lock {
    /// Locks the data file of the database in `directory`.
    ///
    /// # Errors
    /// [`MediumError::Locked`] with the process that has it, [`MediumError::Io`].
    pub(crate) fn take(file: &File, directory: &Path, sharing: Sharing) -> Result<Self, MediumError> {
        let lock = || match sharing {
            Sharing::Alone => file.try_lock(),
            Sharing::WithReaders => file.try_lock_shared(),
        };
        let (mut locked, mut process) = (lock(), None);
        if let Err(TryLockError::WouldBlock) = locked {
            process = holder_of(file);
            if process.is_none() {
                // It may have let go before it was looked for.
                locked = lock();
            }
        }
        match locked {
            Ok(()) => Ok(Self { holder: process::id() }),
            Err(TryLockError::WouldBlock) if is_removed(Control::OneOpener) => {
                Ok(Self { holder: process::id() })
            }
            Err(TryLockError::WouldBlock) => Err(MediumError::Locked { path: directory.into(), process }),
            Err(TryLockError::Error(error)) => {
                Err(MediumError::at("lock the data file in", directory, error))
            }
        }
    }

    /// Whether the lock that others have can be shared, and some process reads the
    /// file.
    pub(crate) fn is_shared_by_readers(file: &File) -> bool {
        let is_read = reader_mark::all(file).is_ok_and(|marks| !marks.is_empty());
        // An opener that is refused meanwhile waits like this one.
        let is_shared = || file.try_lock_shared().is_ok() && file.unlock().is_ok();
        is_read && is_shared()
    }

    /// Whether this process took the lock, and is not a forked child of the
    /// one that did.
    pub(crate) fn is_ours(&self) -> bool {
        self.holder == process::id()
    }

    /// Ends the lock.
    pub(crate) fn release(&self, file: &File) {
        if self.is_ours() {
            // It ends with the descriptor in any case.
            let _ = file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_holder_is_named_and_leaves_nothing() {
        let place = tempfile::tempdir().expect("place");
        let open = || {
            let options = File::options().read(true).write(true).create(true).truncate(false).to_owned();
            options.open(place.path().join("data")).expect("open")
        };
        let (first, second) = (open(), open());
        assert_eq!(holder_of(&second), None);
        let lock = Lock::take(&first, place.path(), Sharing::Alone).expect("free");
        for sharing in [Sharing::Alone, Sharing::WithReaders] {
            let Err(MediumError::Locked { path, process }) = Lock::take(&second, place.path(), sharing)
            else {
                panic!("locked twice");
            };
            assert_eq!((path.as_path(), process), (place.path(), Some(process::id())));
        }
        // A copy of the descriptor, as a process that is being started has one.
        let copy = first.try_clone().expect("copy");
        lock.release(&first);
        drop(first);
        Lock::take(&second, place.path(), Sharing::Alone).expect("released for all copies");
        drop(copy);
    }

    #[test]
    fn readers_share_and_a_child_cannot_release() {
        let place = tempfile::tempdir().expect("place");
        let open = || {
            fs::write(place.path().join("data"), b"").expect("write");
            File::open(place.path().join("data")).expect("open")
        };
        let (first, second, third) = (open(), open(), open());
        let lock = Lock::take(&first, place.path(), Sharing::WithReaders).expect("free");
        Lock::take(&second, place.path(), Sharing::WithReaders).expect("shared").release(&second);
        Lock { holder: lock.holder + 1 }.release(&first);
        Lock::take(&third, place.path(), Sharing::Alone).expect_err("still locked");
    }
}
