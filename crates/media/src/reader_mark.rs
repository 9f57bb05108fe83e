//! Marks of the processes that read a data file beside the process that has it
//! open.
//!
//! A mark is a lock on one byte far behind the end of the file. It belongs to the
//! reader's open file, so it ends with the reader however that ends, needs no
//! right to write, and is found by whatever name the file is reached. It excludes
//! nobody. (`fcntl` locks of open files; the lock that excludes openers is
//! another kind, see `lock.rs`.)

use crate::os::{lock_byte, locked_in};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;

/// No file is so long.
const FIRST: u64 = 1 << 61;
const END: u64 = 1 << 62;

/// Marks a file as being read. Returns the mark, which lasts as long as the open
/// file. None where the system has no such locks.
///
/// # Errors
/// What the system says: some file systems have no such locks.
pub(crate) fn set(file: &File) -> io::Result<Option<u64>> {
    // Two readers with one mark would end together; there are 2^61.
    let mark = FIRST + RandomState::new().hash_one(std::process::id()) % (END - FIRST);
    Ok(lock_byte(file, mark)?.then_some(mark))
}

/// Whether another open file has this mark.
///
/// # Errors
/// What the system says.
pub(crate) fn is_set(file: &File, mark: u64) -> io::Result<bool> {
    Ok(first_in(file, mark, mark.saturating_add(1))?.is_some())
}

/// The marks of all readers.
///
/// # Errors
/// What the system says.
pub(crate) fn all(file: &File) -> io::Result<Vec<u64>> {
    let mut marks = Vec::new();
    let mut from = FIRST;
    while let Some(mark) = first_in(file, from, END)? {
        marks.push(mark);
        from = mark + 1;
    }
    Ok(marks)
}

/// A mark in a range. The system names any of them, so the lowest is searched.
fn first_in(file: &File, from: u64, to: u64) -> io::Result<Option<u64>> {
    let (mut found, mut to) = (None, to);
    while (FIRST..END).contains(&from) && from < to {
        let Some(locked) = locked_in(file, from, to - from)? else { break };
        to = locked.max(from);
        found = Some(to);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_seen_by_others_and_end_with_the_file() {
        let place = tempfile::tempdir().expect("place");
        let path = place.path().join("data");
        let writer = File::options().read(true).write(true).create_new(true).open(&path).expect("create");
        let open = || File::open(&path).expect("open");
        assert!(all(&writer).expect("look").is_empty());
        let readers: Vec<_> = (0..5).map(|_| open()).collect();
        let mut marks: Vec<_> =
            readers.iter().map(|reader| set(reader).expect("look").expect("mark")).collect();
        marks.sort_unstable();
        assert_eq!(all(&writer).expect("look"), marks);
        assert!(marks.iter().all(|mark| is_set(&writer, *mark).expect("look")));
        assert!(!is_set(&writer, 7).expect("look"), "no reader's byte");
        drop(readers);
        assert!(all(&writer).expect("look").is_empty());
    }

    /// Neither do they exclude an opener, nor does one exclude them.
    #[test]
    fn marks_and_the_lock_of_openers_are_apart() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let reader = File::open(file.path()).expect("open");
        set(&reader).expect("mark");
        file.as_file().try_lock().expect("not excluded");
        set(&File::open(file.path()).expect("open")).expect("mark");
    }
}
