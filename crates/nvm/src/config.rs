//! The memories that can be emulated.

use super::design::Design;
use super::nodes::NodeConfig;
use pantile_media::MediumError;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;

/// A persistent memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NvmConfig {
    /// What it is called. The medium is "nvm:" and this, with "-" and the threads behind it if there are any, "/" and the bytes
    /// of a unit if these are not its own, and "+" and the design or the nodes if there are any.
    pub name: &'static str,
    /// How fast it is.
    pub speed: Speed,
    /// If each core has as much of it as one of this many threads has of six modules, so that few cores are limited by
    /// it as many threads are: a memory that reads and writes the same shares as Optane is as fast as Optane's modules
    /// then, and others in proportion, but never faster than DRAM.
    pub threads: Option<u32>,
    /// Bytes the device reads and writes at once: a power of two from 64 to 4096.
    pub unit_bytes: u64,
    /// The design of the engine whose costs are charged; those of the engine that uses it if there is none.
    pub design: Option<Design>,
    /// The nodes of the machine, if there are two. `speed` is that of each node's memory then.
    pub nodes: Option<NodeConfig>,
}

/// How fast a memory is, relative to this machine's DRAM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Read bandwidth as a share of DRAM's, above 0 and up to 1.
    pub read: f64,
    /// Write bandwidth as a share of DRAM's, above 0 and up to 1.
    pub write: f64,
}

/// Bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    /// Of reads, by each core.
    pub read: f64,
    /// Of writes, by all together.
    pub write: f64,
}

const fn config(name: &'static str, read: f64, write: f64, unit_bytes: u64) -> NvmConfig {
    NvmConfig { name, speed: Speed { read, write }, threads: None, unit_bytes, design: None, nodes: None }
}

/// Units a device may have.
const UNIT_BYTES: RangeInclusive<u64> = 64..=4096;

/// What a module of Optane reads and writes at most (Yang and others, FAST 2020).
const MODULE: Bandwidth = Bandwidth { read: 6.6e9, write: 2.3e9 };

/// Modules in the publications.
const MODULES: f64 = 6.0;

/// Threads that use them in TB-Collect's (5.1).
const PUBLISHED_THREADS: u32 = 40;

/// Most threads that a core may stand for one of.
const MOST_THREADS: u32 = 10_000;

impl NvmConfig {
    /// Intel Optane persistent memory: reads 50 %, writes 30 %, 256 B.
    pub const OPTANE: Self = config("optane", 0.5, 0.3, 256);
    /// For each core, one thread's share of six modules that 40 threads use: 990 MB/s
    /// read and 345 MB/s written.
    pub const OPTANE_40: Self = Self::OPTANE.shared_by(PUBLISHED_THREADS);
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
    /// To `OPTANE_40` what A is to `OPTANE`: each core reads 1386 MB/s and writes 575 MB/s.
    pub const A_40: Self = Self::A.shared_by(PUBLISHED_THREADS);
    /// The same of B: 1386 and 575 MB/s.
    pub const B_40: Self = Self::B.shared_by(PUBLISHED_THREADS);
    /// The same of C: 1782 and 805 MB/s.
    pub const C_40: Self = Self::C.shared_by(PUBLISHED_THREADS);
    /// The same of D: 1782 and 1035 MB/s.
    pub const D_40: Self = Self::D.shared_by(PUBLISHED_THREADS);
    /// The same of E: 1980 and 1150 MB/s.
    pub const E_40: Self = Self::E.shared_by(PUBLISHED_THREADS);

    /// Those that are relative to DRAM.
    const OWN: [Self; 6] = [Self::OPTANE, Self::A, Self::B, Self::C, Self::D, Self::E];

    /// All of the above.
    pub const ALL: [Self; 12] = [
        Self::OPTANE,
        Self::OPTANE_40,
        Self::A,
        Self::B,
        Self::C,
        Self::D,
        Self::E,
        Self::A_40,
        Self::B_40,
        Self::C_40,
        Self::D_40,
        Self::E_40,
    ];

    /// The same as each of this many threads has of it.
    pub const fn shared_by(self, threads: u32) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// What each core reads and writes if it is shared by a number of threads.
    pub fn of_a_thread(&self) -> Option<Bandwidth> {
        let threads = self.threads?;
        let (optane, each) = (Self::OPTANE.speed, MODULES / f64::from(threads));
        Some(Bandwidth {
            read: self.speed.read / optane.read * MODULE.read * each,
            write: self.speed.write / optane.write * MODULE.write * each,
        })
    }

    /// Its bandwidth on a machine with DRAM of this one and this number of cores.
    pub fn bandwidth(&self, dram: Bandwidth, cores: usize) -> Bandwidth {
        match self.of_a_thread() {
            None => Bandwidth { read: self.speed.read * dram.read, write: self.speed.write * dram.write },
            Some(Bandwidth { read, write }) => {
                Bandwidth { read: read.min(dram.read), write: (write * cores as f64).min(dram.write) }
            }
        }
    }

    /// The configuration of this name, in either case, as in "optane", "optane-40", "optane/64", "optane+mmdb:4" or
    /// "optane+nodes:naive:2.5".
    pub fn by_name(name: &str) -> Option<Self> {
        let (name, with) = name.split_once('+').map_or((name, None), |(name, with)| (name, Some(with)));
        let (name, unit) = name.split_once('/').map_or((name, None), |(name, unit)| (name, Some(unit)));
        let (name, threads) =
            name.split_once('-').map_or((name, None), |(name, threads)| (name, Some(threads)));
        let own = Self::OWN.into_iter().find(|config| config.name.eq_ignore_ascii_case(name))?;
        let threads = match threads {
            Some(threads) => Some(threads.parse().ok().filter(|&threads| is_shared_by(threads))?),
            None => None,
        };
        let unit_bytes = match unit {
            Some(unit) => unit.parse().ok().filter(|&bytes| is_unit(bytes))?,
            None => own.unit_bytes,
        };
        let config = Self { threads, unit_bytes, ..own };
        match with {
            None => Some(config),
            Some(nodes) if nodes.starts_with("nodes:") => {
                Some(Self { nodes: Some(nodes.parse().ok()?), ..config })
            }
            Some(design) => Some(Self { design: Some(design.parse().ok()?), ..config }),
        }
    }

    /// Fails unless the figures make sense.
    ///
    /// # Errors
    /// [`MediumError::Io`] names the figure that does not.
    pub fn check(&self) -> Result<(), MediumError> {
        let share = |share: f64| share > 0.0 && share <= 1.0;
        let problem = match self.speed {
            Speed { read, .. } if !share(read) => "the read share must be above 0 and at most 1",
            Speed { write, .. } if !share(write) => "the write share must be above 0 and at most 1",
            _ if !self.threads.is_none_or(is_shared_by) => "there must be 1 to 10,000 threads",
            _ if !is_unit(self.unit_bytes) => "the unit must be a power of two from 64 to 4096 bytes",
            _ if self.design.is_some() && self.nodes.is_some() => "designs know nothing of nodes",
            _ => {
                self.design.map_or(Ok(()), Design::check).map_err(senseless)?;
                return self.nodes.map_or(Ok(()), NodeConfig::check).map_err(senseless);
            }
        };
        Err(senseless(format!("\"{}\": {problem}", self.name)))
    }
}

/// Whether a device may have units of this many bytes.
fn is_unit(bytes: u64) -> bool {
    bytes.is_power_of_two() && UNIT_BYTES.contains(&bytes)
}

/// Whether this many threads may share a memory.
fn is_shared_by(threads: u32) -> bool {
    (1..=MOST_THREADS).contains(&threads)
}

/// The error of figures that make no sense.
fn senseless(problem: String) -> MediumError {
    let source = io::Error::new(io::ErrorKind::InvalidInput, problem);
    MediumError::Io { operation: "emulate", path: None, source }
}

impl fmt::Display for NvmConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.threads.map_or(Ok(()), |threads| write!(f, "-{threads}"))?;
        let is_own = Self::OWN.iter().all(|own| own.name != self.name || own.unit_bytes == self.unit_bytes);
        if !is_own {
            write!(f, "/{}", self.unit_bytes)?;
        }
        self.design.map_or(Ok(()), |design| write!(f, "+{design}"))?;
        self.nodes.map_or(Ok(()), |nodes| write!(f, "+{nodes}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_is_sound_and_found_by_its_name() {
        for config in NvmConfig::ALL {
            config.check().expect("sound");
            assert_eq!(NvmConfig::by_name(&config.to_string()), Some(config));
        }
        assert_eq!(NvmConfig::by_name("Optane"), Some(NvmConfig::OPTANE));
        assert_eq!(NvmConfig::by_name("a-40"), Some(NvmConfig::A_40));
        for none in ["F", "F-40", "A-0", "A-", "A-10001", "A-x", "A--1", "A40"] {
            assert_eq!(NvmConfig::by_name(none), None, "{none}");
        }
        let of_design = NvmConfig::by_name("optane-40+wbl:8").expect("a memory and a design");
        assert_eq!((of_design.to_string().as_str(), of_design.unit_bytes), ("optane-40+wbl:8", 256));
        let with_nodes = NvmConfig::by_name("optane-40+nodes:naive").expect("a memory and nodes");
        assert_eq!(with_nodes.to_string(), "optane-40+nodes:naive:2.5");
        let of_units = NvmConfig::by_name("Optane-40/64").expect("a memory and a unit");
        assert_eq!((of_units.to_string().as_str(), of_units.unit_bytes), ("optane-40/64", 64));
        assert_eq!(NvmConfig { unit_bytes: 256, ..of_units }, NvmConfig::OPTANE_40);
        let all = NvmConfig::by_name("optane-40/128+wbl:8").expect("a memory, a unit and a design");
        assert_eq!(all, NvmConfig { unit_bytes: 128, ..of_design });
        assert_eq!(all.to_string(), "optane-40/128+wbl:8");
        let both = NvmConfig { nodes: with_nodes.nodes, ..of_design };
        both.check().expect_err("a design on nodes");
        for wrong in [
            "optane+nodes:x",
            "optane/",
            "optane/100",
            "optane/32",
            "optane+wbl:8/64",
            "optane+",
            "optane+wbl",
            "optane+wbl:0",
            "optane+wbl:x",
            "optane+pmem:4",
            "+wbl:4",
        ] {
            assert_eq!(NvmConfig::by_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn cores_have_what_a_thread_of_forty_has() {
        let dram = Bandwidth { read: 20e9, write: 10e9 };
        let two = NvmConfig::OPTANE_40.bandwidth(dram, 2);
        assert_eq!((two.read, two.write), (990e6, 690e6));
        let forty = NvmConfig::OPTANE_40.bandwidth(dram, 40);
        assert_eq!((forty.read, forty.write), (990e6, 10e9), "never more than DRAM");
        let four = NvmConfig::OPTANE.shared_by(160).bandwidth(dram, 2);
        assert_eq!((four.read, four.write), (990e6 / 4.0, 690e6 / 4.0), "a quarter");
        let share = NvmConfig::OPTANE.bandwidth(dram, 40);
        assert_eq!((share.read, share.write), (10e9, 3e9));
    }

    #[test]
    fn memories_for_each_core_differ_as_their_shares_of_dram_do() {
        let dram = Bandwidth { read: 20e9, write: 10e9 };
        for (config, of_dram, read, write) in [
            (NvmConfig::OPTANE_40, NvmConfig::OPTANE, 990e6, 345e6),
            (NvmConfig::A_40, NvmConfig::A, 1386e6, 575e6),
            (NvmConfig::B_40, NvmConfig::B, 1386e6, 575e6),
            (NvmConfig::C_40, NvmConfig::C, 1782e6, 805e6),
            (NvmConfig::D_40, NvmConfig::D, 1782e6, 1035e6),
            (NvmConfig::E_40, NvmConfig::E, 1980e6, 1150e6),
        ] {
            let two = config.bandwidth(dram, 2);
            assert!(
                (two.read - read).abs() < 1.0 && (two.write - 2.0 * write).abs() < 1.0,
                "{config}: {two:?}"
            );
            assert_eq!(config.to_string(), format!("{of_dram}-40"));
            assert_eq!(config.unit_bytes, of_dram.unit_bytes, "{config}");
        }
        let slow = Bandwidth { read: 1.5e9, write: 2e9 };
        let two = NvmConfig::E_40.bandwidth(slow, 2);
        assert_eq!((two.read, two.write), (1.5e9, 2e9), "never more than DRAM");
    }

    #[test]
    fn nonsense_is_refused() {
        let good = NvmConfig::OPTANE;
        for bad in [
            NvmConfig { speed: Speed { read: 0.0, write: 0.3 }, ..good },
            NvmConfig { speed: Speed { read: 0.5, write: 1.5 }, ..good },
            NvmConfig { speed: Speed { read: 0.5, write: f64::NAN }, ..good },
            good.shared_by(0),
            good.shared_by(MOST_THREADS + 1),
            NvmConfig { unit_bytes: 32, ..good },
            NvmConfig { unit_bytes: 96, ..good },
        ] {
            bad.check().expect_err("nonsense");
        }
    }
}
