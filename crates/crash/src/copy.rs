//! Copies a database as it was found.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Pieces of this size that are all zero are not written.
const PIECE: usize = 64 << 10;

/// Replaces the files in a directory with copies of those in another. Does
/// nothing if the source does not exist.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    if !from.exists() {
        return Ok(());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_file(&mut File::open(entry.path())?, &mut File::create(to.join(entry.file_name()))?)?;
    }
    Ok(())
}

fn copy_file(from: &mut File, to: &mut File) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let len = from.read(&mut piece)?;
        if len == 0 {
            break;
        }
        if piece[..len].iter().all(|byte| *byte == 0) {
            to.seek(SeekFrom::Current(len as i64))?;
        } else {
            to.write_all(&piece[..len])?;
        }
    }
    let len = to.stream_position()?;
    to.set_len(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_and_takes_the_place_of_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir(&from).unwrap();
        let mut data = vec![0; 3 * PIECE + 5];
        data[PIECE + 7] = 1;
        fs::write(from.join("data"), &data).unwrap();
        fs::write(from.join("gone"), b"x").unwrap();
        copy(&from, &to).unwrap();
        fs::remove_file(from.join("gone")).unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("data")).unwrap(), data);
        assert!(!to.join("gone").exists());
        fs::remove_dir_all(&from).unwrap();
        copy(&from, &to).unwrap();
        assert!(!to.exists());
    }
}
