//! What the workload can be.

use std::ops::RangeInclusive;

use pantile::{TableDef, Type};
use serde::Serialize;

use super::data::TABLE;
use super::keys::THETA;
use crate::error::{Error, Result};

/// Skew of the standard workloads.
pub const STANDARD_THETA: f64 = 0.99;

/// Tuple sizes that are possible.
pub const TUPLE_BYTES: RangeInclusive<u32> = 16..=65_000;

/// Bytes of the key.
pub(super) const KEY_BYTES: u32 = 8;

/// Of 100 operations, how many are what; the rest reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Mix {
    /// Updates.
    pub updates: u32,
    /// Inserts.
    pub inserts: u32,
    /// Scans.
    pub scans: u32,
    /// Read-modify-writes.
    pub rmw: u32,
}

impl Mix {
    /// How many of 100 are not reads.
    pub fn sum(&self) -> u32 {
        [self.updates, self.inserts, self.scans, self.rmw].into_iter().fold(0, u32::saturating_add)
    }

    pub(super) fn writes(&self) -> bool {
        self.updates + self.inserts + self.rmw > 0
    }
}

/// Long transactions, one after the other, of one more client (Zen+ 5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beside {
    /// Each reads this many tuples in a row, at a safe snapshot.
    Scans(u64),
    /// Each updates this many tuples, which the other clients leave alone.
    Updates(u64),
}

/// The workload.
#[derive(Clone, Debug, Serialize)]
pub struct Ycsb {
    /// Tuples loaded.
    pub tuples: u64,
    /// Bytes of each, the key included.
    pub tuple_bytes: u32,
    /// Operations of a transaction.
    pub ops: u32,
    /// Of 100 transactions that are no table scans, how many are long.
    pub long_share: u32,
    /// Operations of a long transaction.
    pub long_ops: u32,
    /// Of 100 transactions, how many are table scans.
    pub scan_share: u32,
    /// Tuples that a table scan reads, from a random one on; none for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_tuples: Option<u64>,
    /// What one more client does beside the others, the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// What they are.
    #[serde(flatten)]
    pub mix: Mix,
    /// Skew of the keys: from 0, for none, to 1.
    pub theta: f64,
    /// Whether the latest keys are the frequent ones.
    pub latest: bool,
    /// Whether the reads of a transaction are one call, and its updates and its
    /// read-modify-writes one each, as a program would that knows its keys at the start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// Seed of all random numbers.
    #[serde(skip)]
    pub seed: u64,
}

impl Default for Ycsb {
    /// A million tuples of 100 bytes, 20 operations, half of them updates, no skew.
    fn default() -> Self {
        Self {
            tuples: 1_000_000,
            tuple_bytes: 100,
            ops: 20,
            long_share: 0,
            long_ops: 100,
            scan_share: 0,
            scan_tuples: None,
            beside: None,
            mix: Mix { updates: 50, ..Mix::default() },
            theta: 0.0,
            latest: false,
            together: false,
            seed: 42,
        }
    }
}

impl Ycsb {
    /// The mix of a standard workload, A to F, and whether it asks for the latest keys.
    pub fn standard(letter: char) -> Option<(Mix, bool)> {
        let none = Mix::default();
        Some(match letter.to_ascii_uppercase() {
            'A' => (Mix { updates: 50, ..none }, false),
            'B' => (Mix { updates: 5, ..none }, false),
            'C' => (none, false),
            'D' => (Mix { inserts: 5, ..none }, true),
            'E' => (Mix { scans: 95, inserts: 5, ..none }, false),
            'F' => (Mix { rmw: 50, ..none }, false),
            _ => return None,
        })
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Setting`] naming the one that makes no sense.
    pub fn validate(&self) -> Result<()> {
        let wrong = |reason: &str| Err(Error::Setting(reason.to_owned()));
        match self {
            Self { tuples: 0, .. } => wrong("there must be at least one tuple"),
            Self { ops: 0, .. } | Self { long_ops: 0, .. } => {
                wrong("a transaction has at least one operation")
            }
            Self { scan_tuples: Some(0), .. } | Self { beside: Some(Beside::Scans(0)), .. } => {
                wrong("a scan reads at least one tuple")
            }
            Self { beside: Some(Beside::Updates(rows)), tuples, .. } if !(1..*tuples).contains(rows) => {
                wrong("long updates take at least one tuple, and leave the other clients at least one")
            }
            Self { long_share, scan_share, .. } if *long_share.max(scan_share) > 100 => {
                wrong("a share is at most 100 percent")
            }
            Self { tuple_bytes, .. } if !TUPLE_BYTES.contains(tuple_bytes) => {
                wrong("a tuple has 16 to 65000 bytes")
            }
            Self { theta, .. } if !THETA.contains(theta) => wrong("theta is from 0 to 1"),
            Self { mix, .. } if mix.sum() > 100 => wrong(
                "updates, inserts, scans and rmw together are more than 100 percent (updates is 50 unless given)",
            ),
            _ => Ok(()),
        }
    }

    /// The tuples that belong to long updates are those behind these.
    pub(super) fn shared_tuples(&self) -> u64 {
        match self.beside {
            Some(Beside::Updates(rows)) => self.tuples - rows,
            _ => self.tuples,
        }
    }

    /// Clients beside those that run the mix.
    pub fn clients_beside(&self) -> usize {
        usize::from(self.beside.is_some())
    }

    pub(super) fn definition(&self) -> TableDef {
        // The key limits the field to what `validate` allows.
        let field = u16::try_from(self.tuple_bytes - KEY_BYTES).unwrap_or(u16::MAX);
        TableDef::new(TABLE)
            .column("key", Type::U64)
            .column("field", Type::FixedBytes(field))
            .primary_key(["key"])
    }
}
