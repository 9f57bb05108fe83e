//! The memories that can be emulated.

use pantile_media::MediumError;
use std::io;
use std::ops::RangeInclusive;

/// A persistent memory, described relative to this machine's DRAM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NvmConfig {
    /// What it is called; the medium is "nvm:" and this.
    pub name: &'static str,
    /// Read bandwidth as a share of DRAM's, above 0 and up to 1.
    pub read_share: f64,
    /// Write bandwidth as a share of DRAM's, above 0 and up to 1.
    pub write_share: f64,
    /// Bytes the device reads and writes at once: a power of two from 64 to 4096.
    pub unit_bytes: u64,
}

const fn config(name: &'static str, read: f64, write: f64, unit_bytes: u64) -> NvmConfig {
    NvmConfig { name, read_share: read, write_share: write, unit_bytes }
}

/// Units a device may have.
const UNIT_BYTES: RangeInclusive<u64> = 64..=4096;

impl NvmConfig {
    /// Intel Optane persistent memory: reads 50 %, writes 30 %, 256 B.
    pub const OPTANE: Self = config("optane", 0.5, 0.3, 256);
    /// Reads 70 %, writes 50 %, 256 B.
    pub const A: Self = config("A", 0.7, 0.5, 256);
    /// Reads 70 %, writes 50 %, 128 B.
    pub const B: Self = config("B", 0.7, 0.5, 128);
    /// Reads 90 %, writes 70 %, 128 B.
    pub const C: Self = config("C", 0.9, 0.7, 128);
    /// Reads 90 %, writes 90 %, 128 B.
    pub const D: Self = config("D", 0.9, 0.9, 128);
    /// As fast as DRAM, 64 B.
    pub const E: Self = config("E", 1.0, 1.0, 64);

    /// All of the above.
    pub const ALL: [Self; 6] = [Self::OPTANE, Self::A, Self::B, Self::C, Self::D, Self::E];

    /// The configuration of this name, in either case.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|config| config.name.eq_ignore_ascii_case(name))
    }

    /// Fails unless the figures make sense.
    ///
    /// # Errors
    /// [`MediumError::Io`] names the figure that does not.
    pub fn check(&self) -> Result<(), MediumError> {
        let share = |share: f64| share > 0.0 && share <= 1.0;
        let problem = if !share(self.read_share) {
            "the read share must be above 0 and at most 1"
        } else if !share(self.write_share) {
            "the write share must be above 0 and at most 1"
        } else if !self.unit_bytes.is_power_of_two() || !UNIT_BYTES.contains(&self.unit_bytes) {
            "the unit must be a power of two from 64 to 4096 bytes"
        } else {
            return Ok(());
        };
        let source = io::Error::new(io::ErrorKind::InvalidInput, format!("\"{}\": {problem}", self.name));
        Err(MediumError::Io { operation: "emulate", path: None, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_is_sound_and_found_by_its_name() {
        for config in NvmConfig::ALL {
            config.check().expect("sound");
            assert_eq!(NvmConfig::by_name(config.name), Some(config));
        }
        assert_eq!(NvmConfig::by_name("Optane"), Some(NvmConfig::OPTANE));
        assert_eq!(NvmConfig::by_name("F"), None);
    }

    #[test]
    fn nonsense_is_refused() {
        let good = NvmConfig::OPTANE;
        for bad in [
            NvmConfig { read_share: 0.0, ..good },
            NvmConfig { write_share: 1.5, ..good },
            NvmConfig { write_share: f64::NAN, ..good },
            NvmConfig { unit_bytes: 32, ..good },
            NvmConfig { unit_bytes: 96, ..good },
        ] {
            bad.check().expect_err("nonsense");
        }
    }
}
