//! State records as they lie on the medium.

use pantile_base::Timestamp;
use pantile_base::limits::{STATE_COPY_BYTES, STATE_RECORDS};
use pantile_media::Medium;

use crate::image::ImageName;
use crate::own::mapped;
use crate::state_record::{StateCopy, StateRecord};
use crate::survey::calls::SurveyCalls;
use crate::survey::finding::{Finding, MediumLocation};

/// One copy of a state record.
#[derive(Clone, Debug)]
pub struct SurveyedRecord {
    /// Its byte offset.
    pub offset: u64,
    /// What it says, if its checksum fits.
    pub facts: Option<RecordFacts>,
    /// Nothing has ever been written there.
    pub is_blank: bool,
}

/// What a state record says.
#[derive(Clone, Debug)]
pub struct RecordFacts {
    /// Rises with each record.
    pub sequence: u64,
    /// The durable watermark.
    pub watermark: Timestamp,
    /// When the fills were taken.
    pub taken_at: Timestamp,
    /// The boot of the machine.
    pub boot: u64,
    /// Whether the database was closed after it was written.
    pub closed: bool,
    /// The index image that it names.
    pub image: Option<ImageName>,
    /// Whether commits were acknowledged before they were durable.
    pub relaxed: bool,
    /// Number of carved chunks.
    pub carved: u64,
    /// Blocks that were not full.
    pub partly_filled: u64,
    /// Transactions at or below the watermark that had not been decided.
    pub undecided: Vec<Timestamp>,
}

impl RecordFacts {
    fn new(record: &StateRecord) -> Self {
        Self {
            sequence: record.sequence,
            watermark: Timestamp::from_raw(record.watermark),
            taken_at: Timestamp::from_raw(record.taken_at),
            boot: record.boot,
            closed: record.closed,
            image: record.image,
            relaxed: record.relaxed,
            carved: record.carved,
            partly_filled: record.partly_filled.len() as u64,
            undecided: record.undecided.iter().map(|&timestamp| Timestamp::from_raw(timestamp)).collect(),
        }
    }
}

/// All copies of state records.
#[derive(Default)]
pub(super) struct Records {
    pub copies: Vec<SurveyedRecord>,
    /// The record in force, and the number of its copy.
    pub newest: Option<(usize, StateCopy)>,
}

/// Reads all copies, whose checksums are seeded with `identity`.
pub(super) fn read(medium: &dyn Medium, identity: u64, calls: &SurveyCalls<'_>) -> Records {
    let mut found = Records::default();
    for offset in [0, 1, 2, 3].map(StateRecord::copy_at) {
        let bytes = mapped(medium, offset, STATE_COPY_BYTES as usize);
        let copy = StateRecord::read(medium, offset, identity);
        let facts = copy.as_ref().map(|copy| RecordFacts::new(&copy.record));
        let is_blank = copy.is_none() && bytes.iter().all(|&b| b == 0);
        found.copies.push(SurveyedRecord { offset, facts, is_blank });
        if let Some(copy) = copy
            && found.newest.as_ref().is_none_or(|(_, newest)| newest.record.sequence < copy.record.sequence)
        {
            found.newest = Some((found.copies.len() - 1, copy));
        }
    }
    for (n, record) in found.copies.iter().enumerate().filter(|(_, r)| r.facts.is_none()) {
        let twin = &found.copies[n ^ 1];
        let what = "a copy of the state record was cut off or is damaged";
        if found.newest.is_some() && !(record.is_blank && twin.is_blank) {
            (calls.finding)(Finding::notice(
                MediumLocation::at(record.offset),
                format!("{what}; another is used"),
            ));
        }
    }
    if found.newest.is_none() {
        let what = "no checksum of any state record fits";
        (calls.finding)(Finding::damage(MediumLocation::at(STATE_RECORDS[0]), what));
    }
    found
}
