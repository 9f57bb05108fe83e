//! The designs of engines whose costs can be charged.

use std::fmt;
use std::str::FromStr;

/// The design of an engine for persistent memory and the DRAM beside it (Zen+, section 2.3 and figure 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Design {
    /// Which one.
    pub kind: Kind,
    /// The medium has this many times the bytes of the DRAM: P in Zen+, 1 or more.
    pub ratio: u32,
}

/// The designs that Zen+ compares. In all of them indexes are in DRAM beyond what the ratio allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The Met-Cache: what was read or written lately has copies in DRAM, here units of the device instead of
    /// tuples. What a transaction writes reaches the memory once.
    Zen,
    /// [`Kind::Zen`] with the naive space management that it is compared with: the metadata of each slot that is
    /// taken for a tuple become durable in the memory by themselves.
    ZenNaive,
    /// Memory as more room for an in-memory database with a log: tuples are in DRAM or in volatile
    /// memory, each read of a tuple there writes its metadata, and what a transaction writes goes to a log.
    Mmdb,
    /// Write-behind logging: tuples have copies in DRAM as in Zen, and reading one makes its
    /// metadata durable in the memory.
    Wbl,
    /// Pages in DRAM and snapshots of them in the memory: what a transaction writes goes to a log, and
    /// from there to a snapshot.
    Foedus,
}

impl Kind {
    /// All of them, the one that Zen+ proposes first.
    pub const ALL: [Self; 5] = [Kind::Zen, Kind::ZenNaive, Kind::Mmdb, Kind::Wbl, Kind::Foedus];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Zen => "zen",
            Kind::ZenNaive => "zen-naive",
            Kind::Mmdb => "mmdb",
            Kind::Wbl => "wbl",
            Kind::Foedus => "foedus",
        }
    }
}

impl Design {
    /// Fails unless the figures make sense, with what is wrong.
    pub(crate) fn check(self) -> Result<(), String> {
        if self.ratio > 0 {
            return Ok(());
        }
        Err(format!("\"{self}\": the ratio must be 1 or more"))
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.ratio)
    }
}

impl FromStr for Design {
    type Err = ();

    /// As it is shown: `zen:4`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (name, ratio) = text.split_once(':').ok_or(())?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(())?;
        match ratio.parse() {
            Ok(ratio @ 1..) => Ok(Self { kind, ratio }),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for kind in Kind::ALL {
            let design = Design { kind, ratio: 8 };
            assert_eq!(design.to_string().parse(), Ok(design));
            design.check().expect("sound");
        }
        assert_eq!("zen:0".parse::<Design>(), Err(()));
        Design { kind: Kind::Zen, ratio: 0 }.check().expect_err("no ratio");
    }
}
