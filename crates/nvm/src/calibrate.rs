//! The bandwidth of this machine's DRAM.

use super::clock::RealClock;
use super::config::{Bandwidth, NvmConfig, Speed};
use super::model::Model;
use pantile_base::limits::CHUNK_BYTES;
use pantile_media::parts::{Contents, Map};
use pantile_media::{MapOptions, MediumError};
use std::hint;
use std::ptr;
use std::sync::OnceLock;
use std::time::Instant;

/// Bytes run over: more than a core's own caches hold, and more than the
/// model takes to be cached.
pub(crate) const AREA_BYTES: u64 = 16 * CHUNK_BYTES;

/// Bytes copied at once, from or to a place in the nearest cache.
pub(crate) const PIECE_BYTES: usize = 4096;

/// Runs of which the fastest counts: disturbances only make a run slower.
pub(crate) const RUNS: usize = 8;

/// DRAM's bandwidth as one core sees it; measured at the first call, in about 40 ms.
///
/// # Errors
/// [`MediumError::Full`] or [`MediumError::Io`] without 32 MiB of memory.
pub(crate) fn dram() -> Result<Bandwidth, MediumError> {
    static DRAM: OnceLock<Bandwidth> = OnceLock::new();
    if let Some(known) = DRAM.get() {
        return Ok(*known);
    }
    let measured = measure_dram()?;
    Ok(*DRAM.get_or_init(|| measured))
}

fn measure_dram() -> Result<Bandwidth, MediumError> {
    let options = MapOptions { reserve_bytes: AREA_BYTES, max_bytes: None };
    let contents = Contents::in_memory("calibration", options)?;
    let area = &contents.map;
    area.prefer_huge_pages();
    contents.grow(AREA_BYTES)?;
    let mut piece = [1u8; PIECE_BYTES];
    let mut bandwidth = Bandwidth { read: 0.0, write: 0.0 };
    // The first run gets the memory from the system and never is the fastest.
    for _ in 0..RUNS {
        let write = rate(|| store_all(area, &piece));
        let read = rate(|| load_all(area.base(), &mut piece));
        bandwidth.write = bandwidth.write.max(write);
        bandwidth.read = bandwidth.read.max(read);
    }
    Ok(bandwidth)
}

/// The cores of this machine that the process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Picoseconds that accounting for the read of a unit takes by itself: the
/// fastest of several runs of a device that owes nothing.
pub(crate) fn bookkeeping(config: NvmConfig) -> u64 {
    let like_dram =
        NvmConfig { speed: Speed { read: 1.0, write: 1.0 }, threads: None, nodes: None, ..config };
    let model = Model::new(&like_dram, Bandwidth { read: 1e9, write: 1e9 }, 1, RealClock::new());
    let units = CHUNK_BYTES / config.unit_bytes;
    let run = |n: u64| {
        let start = Instant::now();
        for offset in offsets(PIECE_BYTES).take(CHUNK_BYTES as usize / PIECE_BYTES) {
            hint::black_box(model.read(n * CHUNK_BYTES + offset as u64, PIECE_BYTES as u64));
        }
        start.elapsed().as_nanos() as u64
    };
    (0..RUNS as u64).map(run).min().unwrap_or(0) * 1000 / units
}

/// Bytes a second of a run over the area.
pub(crate) fn rate(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    AREA_BYTES as f64 / start.elapsed().as_secs_f64()
}

pub(crate) fn offsets(step: usize) -> impl Iterator<Item = usize> {
    (0..AREA_BYTES as usize).step_by(step)
}

fn store_all(area: &Map, piece: &[u8; PIECE_BYTES]) {
    for offset in offsets(PIECE_BYTES) {
        // SAFETY: the area is attached, writable and used by this thread only.
        unsafe {
            ptr::copy_nonoverlapping(piece.as_ptr(), area.base().add(offset), PIECE_BYTES);
        }
    }
}

fn load_all(base: *const u8, piece: &mut [u8; PIECE_BYTES]) {
    for offset in offsets(PIECE_BYTES) {
        load(base, offset, piece);
    }
}

pub(crate) fn load(base: *const u8, offset: usize, piece: &mut [u8; PIECE_BYTES]) {
    // SAFETY: callers own an area of AREA_BYTES at `base` that no thread writes meanwhile.
    unsafe {
        ptr::copy_nonoverlapping(base.add(offset), piece.as_mut_ptr(), PIECE_BYTES);
    }
    hint::black_box(piece);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calibration_is_made_once() {
        let first = dram().expect("calibrate");
        assert!(first.read > 0.0 && first.write > 0.0);
        assert_eq!(dram().expect("calibrate"), first);
    }
}
