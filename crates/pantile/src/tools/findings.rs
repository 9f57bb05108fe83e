//! Findings of a check, and their places on the medium.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pantile_base::limits::GROWTH_BYTES;
use pantile_base::sync::Mutex;
use pantile_media::ViewMedium;

/// How serious a finding is.
///
/// The enum is exhaustive: a finding that is not damage is a notice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Severity {
    /// Durable data has changed, or contradicts other data.
    Damage,
    /// Nothing is lost. Examples are traces of a power failure, a second copy of something, and
    /// space that will never be used again.
    Notice,
}

/// A place on the medium, as far as it is known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Location {
    /// Byte offset in the data file.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub offset: Option<u64>,
    /// The number of the chunk, which has 2 MiB.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub chunk: Option<u32>,
    /// The block's number in the chunk.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub block: Option<u32>,
    /// The number of the slot in the block.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub slot: Option<u32>,
    /// The id of the table.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub table_id: Option<u32>,
    /// The name of the table.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub table: Option<String>,
    /// The row's number within the table.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub tuple: Option<u64>,
}

impl From<pantile_store::MediumLocation> for Location {
    fn from(place: pantile_store::MediumLocation) -> Self {
        let pantile_store::MediumLocation { offset, chunk, block, slot, table, tuple } = place;
        Self { offset: Some(offset), chunk, block, slot, table_id: table, table: None, tuple }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.offset.map(|offset| format!("offset {offset}")));
        parts.extend(self.chunk.map(|chunk| match self.block {
            Some(block) => format!("block {chunk}.{block}"),
            None => format!("chunk {chunk}"),
        }));
        parts.extend(self.slot.map(|slot| format!("slot {slot}")));
        parts.extend(match (self.table_id, &self.table) {
            (Some(id), Some(name)) => Some(format!("table {id} {name:?}")),
            (Some(id), None) => Some(format!("table {id}")),
            (None, name) => name.as_ref().map(|name| format!("table {name:?}")),
        });
        parts.extend(self.tuple.map(|tuple| format!("row {tuple}")));
        f.write_str(&parts.join(", "))
    }
}

/// One finding of a check.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// Where it was found.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub place: Location,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.severity == Severity::Damage { "damage" } else { "notice" };
        match self.place == Location::default() {
            true => write!(f, "{severity}: {}", self.what),
            false => write!(f, "{severity}: {}: {}", self.place, self.what),
        }
    }
}

impl From<pantile_store::Finding> for Finding {
    fn from(finding: pantile_store::Finding) -> Self {
        let severity = match finding.severity {
            pantile_store::Severity::Damage => Severity::Damage,
            pantile_store::Severity::Notice => Severity::Notice,
        };
        Self { place: finding.place.into(), severity, what: finding.what }
    }
}

/// Collects findings: the first of each severity, in the order of places, and
/// how many there are.
#[derive(Debug)]
pub(crate) struct Findings {
    most: usize,
    damage_only: bool,
    found: Mutex<(BTreeSet<Finding>, BTreeSet<Finding>)>,
    counted: Mutex<[u64; 2]>,
}

impl Findings {
    pub fn new(most: usize) -> Self {
        Self { most, damage_only: false, found: Mutex::default(), counted: Mutex::default() }
    }

    /// Leaves out notices.
    pub fn of_damage(most: usize) -> Self {
        Self { damage_only: true, ..Self::new(most) }
    }

    pub fn add(&self, finding: impl Into<Finding>) {
        let finding = finding.into();
        if self.damage_only && finding.severity != Severity::Damage {
            return;
        }
        self.counted.lock()[finding.severity as usize] += 1;
        let mut found = self.found.lock();
        let list = if finding.severity == Severity::Damage { &mut found.0 } else { &mut found.1 };
        list.insert(finding);
        if list.len() > self.most {
            list.pop_last();
        }
    }

    pub fn damage(&self, place: impl Into<Location>, what: impl Into<String>) {
        self.add(Finding { place: place.into(), severity: Severity::Damage, what: what.into() });
    }

    pub fn notice(&self, place: impl Into<Location>, what: impl Into<String>) {
        self.add(Finding { place: place.into(), severity: Severity::Notice, what: what.into() });
    }

    /// Notes what is wrong with the file before its contents are known.
    pub fn note_file(&self, view: &ViewMedium) {
        for &at in view.unreadable() {
            self.damage(
                pantile_store::MediumLocation::at(at),
                "the device cannot read this page of 4096 bytes",
            );
        }
        if let Some(problem) = view.journal_problem() {
            self.damage(Location::default(), format!("{problem}; commits may be missing"));
        }
        let len = view.file_len();
        if !len.is_multiple_of(GROWTH_BYTES) {
            let what = format!(
                "the file has {len} bytes, which is not a multiple of {GROWTH_BYTES}: it has been truncated"
            );
            self.damage(pantile_store::MediumLocation::at(len), what);
        }
    }

    /// The number of damaged places and of notices.
    pub fn counted(&self) -> [u64; 2] {
        *self.counted.lock()
    }

    /// The findings, damage first, with the names of tables.
    pub fn list(&self, names: &BTreeMap<u32, String>) -> Vec<Finding> {
        let found = self.found.lock();
        let mut list: Vec<Finding> = found.0.iter().chain(&found.1).cloned().collect();
        for finding in &mut list {
            let named = finding.place.table_id.and_then(|id| names.get(&id).cloned());
            finding.place.table = finding.place.table.take().or(named);
        }
        list
    }
}
