//! The bandwidth that an emulated memory reaches on this machine.

use super::NvmMedium;
use super::calibrate::{AREA_BYTES, PIECE_BYTES, RUNS, cores, dram, load, offsets, rate};
use super::config::NvmConfig;
use pantile_media::{Medium, MediumError, MediumExt};

/// Bytes written between two looks at the emulator when it is measured.
const WRITE_BYTES: usize = 64 << 10;

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
    /// What the configuration asks for on this machine, in bytes a second.
    pub wanted_bytes_per_s: f64,
}

impl Reached {
    /// The share by which it is above what was wanted, negative if below.
    pub fn deviation(self) -> f64 {
        self.bytes_per_s / self.wanted_bytes_per_s - 1.0
    }
}

/// Measures what an emulated memory reaches, in about 100 ms: sequential
/// writes with one fence at the end, and sequential reads, on one thread. What
/// is wanted follows from the calibration that all emulated memories of this
/// process use. The design or the nodes that a configuration may name change nothing here.
///
/// # Errors
/// Those of [`NvmMedium::anonymous`].
pub fn measure(config: NvmConfig) -> Result<Measured, MediumError> {
    let medium = NvmMedium::anonymous(NvmConfig { design: None, nodes: None, ..config })?;
    medium.grow(AREA_BYTES)?;
    // Not in turns: writes go past the cache, and DRAM's reads were measured
    // with as much in the last level as finds room there.
    let write = fastest(|| write_run(&medium))?;
    let read = fastest(|| Ok(rate(|| read_all(&medium))))?;
    let wanted = config.bandwidth(dram()?, cores());
    Ok(Measured {
        read: Reached { bytes_per_s: read, wanted_bytes_per_s: wanted.read },
        write: Reached { bytes_per_s: write, wanted_bytes_per_s: wanted.write },
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
        // SAFETY: nobody else has the medium.
        unsafe { medium.write(offset as u64, bytes)? };
        medium.flush(offset as u64, bytes.len() as u64);
    }
    medium.fence()
}

fn read_all(medium: &NvmMedium) {
    let mut piece = [0u8; PIECE_BYTES];
    let charges = medium.facts().charges.as_ref();
    for offset in offsets(PIECE_BYTES) {
        load(medium.base(), offset, &mut piece);
        charges.inspect(|charges| charges.read(offset as u64, PIECE_BYTES as u64));
    }
}
