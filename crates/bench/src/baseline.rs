//! What the device alone takes for the least that a durable commit can do.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::error::{Error, Result};

const PAGE: usize = 4096;
const PAGES: usize = 64;

/// Times, in microseconds, of overwriting one page of a file whose blocks
/// have all been written before, and `fdatasync`, `rounds` times.
///
/// # Errors
/// [`Error::Io`].
pub fn overwrite_and_sync(dir: &Path, rounds: usize) -> Result<Vec<f64>> {
    let path = dir.join("pantile-bench-sync");
    let times = measure(&path, rounds)
        .map_err(|e| Error::io(format!("write and sync the file {}", path.display()), e));
    let _ = std::fs::remove_file(&path);
    times
}

fn measure(path: &Path, rounds: usize) -> std::io::Result<Vec<f64>> {
    let file: File = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all_at(&[1; PAGE * PAGES], 0)?;
    file.sync_all()?;
    let mut page = [2; PAGE];
    (0..rounds)
        .map(|round| {
            page[0] = round as u8;
            let began = Instant::now();
            file.write_all_at(&page, 0)?;
            file.sync_data()?;
            Ok(began.elapsed().as_secs_f64() * 1e6)
        })
        .collect()
}

/// The middle one of some figures, or of an even number the mean of the two
/// in the middle; `None` of none.
pub fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0, 4.0]), Some(3.0));
    }

    #[test]
    fn a_sync_takes_some_time_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let times = overwrite_and_sync(dir.path(), 3).unwrap();
        assert_eq!(times.len(), 3);
        assert!(times.iter().all(|&t| t > 0.0));
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }
}
