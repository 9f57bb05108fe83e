//! The bandwidth of this machine's DRAM, and the one that an emulated memory reaches.

use super::NvmMedium;
use super::clock::RealClock;
use super::config::NvmConfig;
use super::model::{Bandwidth, Model};
use pantile_base::limits::CHUNK_BYTES;
use pantile_media::parts::{Contents, Map};
use pantile_media::{MapOptions, Medium, MediumError, MediumExt};
use std::hint;
use std::ptr;
use std::sync::OnceLock;
use std::time::Instant;

/// Bytes run over: more than a core's own caches hold, and more than the
/// model takes to be cached.
const AREA_BYTES: u64 = 16 * CHUNK_BYTES;

/// Bytes copied at once, from or to a place in the nearest cache.
const PIECE_BYTES: usize = 4096;

/// Bytes written between two looks at the emulator when it is measured.
const WRITE_BYTES: usize = 64 << 10;

/// Runs of which the fastest counts: disturbances only make a run slower.
const RUNS: usize = 8;

/// How far a bandwidth may be from the configured one before a figure that
/// depends on it needs a warning.
pub const DEVIATION_BOUND: f64 = 0.1;

/// What an emulated memory reaches on this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Sequential reads, in bytes a second.
    pub read: Reached,
    /// Sequential writes, flushed and fenced, in bytes a second.
    pub write: Reached,
}

impl Measured {
    /// Whether neither deviates by more than [`DEVIATION_BOUND`].
    pub fn is_within_bound(&self) -> bool {
        [self.read, self.write].iter().all(|reached| reached.deviation().abs() <= DEVIATION_BOUND)
    }
}

/// A bandwidth that was reached, and the one that was wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// Measured, in bytes a second.
    pub bytes_per_s: f64,
    /// DRAM's bandwidth by calibration times the configured share, in bytes a second.
    pub wanted_bytes_per_s: f64,
}

impl Reached {
    /// The share by which it is above what was wanted, negative if below.
    pub fn deviation(self) -> f64 {
        self.bytes_per_s / self.wanted_bytes_per_s - 1.0
    }
}

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

/// Picoseconds that accounting for the read of a unit takes by itself: the
/// fastest of several runs of a device that owes nothing.
pub(crate) fn bookkeeping(config: NvmConfig) -> u64 {
    let like_dram = NvmConfig { read_share: 1.0, ..config };
    let model = Model::new(&like_dram, Bandwidth { read: 1e9, write: 1e9 }, RealClock::new());
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
fn rate(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    AREA_BYTES as f64 / start.elapsed().as_secs_f64()
}

fn offsets(step: usize) -> impl Iterator<Item = usize> {
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

fn load(base: *const u8, offset: usize, piece: &mut [u8; PIECE_BYTES]) {
    // SAFETY: callers own an area of AREA_BYTES at `base` that no thread writes meanwhile.
    unsafe {
        ptr::copy_nonoverlapping(base.add(offset), piece.as_mut_ptr(), PIECE_BYTES);
    }
    hint::black_box(piece);
}

/// Measures what an emulated memory reaches, in about 100 ms: sequential
/// writes with one fence at the end, and sequential reads, on one thread. What
/// is wanted follows from the calibration that all emulated memories of this
/// process use.
///
/// # Errors
/// Those of [`NvmMedium::anonymous`].
pub fn measure(config: NvmConfig) -> Result<Measured, MediumError> {
    let medium = NvmMedium::anonymous(config)?;
    medium.grow(AREA_BYTES)?;
    // Not in turns: writes go past the cache, and DRAM's reads were measured
    // with as much in the last level as finds room there.
    let write = fastest(|| write_run(&medium))?;
    let read = fastest(|| Ok(rate(|| read_all(&medium))))?;
    let dram = dram()?;
    Ok(Measured {
        read: Reached { bytes_per_s: read, wanted_bytes_per_s: config.read_share * dram.read },
        write: Reached { bytes_per_s: write, wanted_bytes_per_s: config.write_share * dram.write },
    })
}

fn fastest(mut run: impl FnMut() -> Result<f64, MediumError>) -> Result<f64, MediumError> {
    (0..RUNS).try_fold(0f64, |best, _| Ok(best.max(run()?)))
}

fn write_run(medium: &NvmMedium) -> Result<f64, MediumError> {
    let bytes = vec![1u8; WRITE_BYTES];
    let mut result = Ok(());
    let reached = rate(|| result = write_all(medium, &bytes));
    result.map(|()| reached)
}

fn write_all(medium: &NvmMedium, bytes: &[u8]) -> Result<(), MediumError> {
    for offset in offsets(bytes.len()) {
        medium.write(offset as u64, bytes)?;
        medium.flush(offset as u64, bytes.len() as u64);
    }
    medium.fence()
}

fn read_all(medium: &NvmMedium) {
    let mut piece = [0u8; PIECE_BYTES];
    let cost = medium.facts().read_cost.as_ref();
    for offset in offsets(PIECE_BYTES) {
        load(medium.base(), offset, &mut piece);
        cost.inspect(|cost| cost.charge(offset as u64, PIECE_BYTES as u64));
    }
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
