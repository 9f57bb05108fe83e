//! Reading a medium as it is, without recovery: what is there, and every place
//! that differs from what `docs/format.md` requires.
//!
//! Nothing is written, and no byte is trusted: any bytes can be surveyed.

mod calls;
mod chunk;
mod finding;
mod records;
mod recount;

use pantile_base::share_out;
use pantile_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pantile_base::Timestamp;
use pantile_base::limits::{CHUNK_BYTES, HEAD_BYTES, STATE_RECORDS, SUPERBLOCK_COPY};
use pantile_media::{Medium, MediumExt};

use crate::block::BlockId;
use crate::expectation::Expectation;
use crate::format::{STATE_RECORD_BYTES, Superblock, Unreadable};
use crate::own::mapped;
use crate::scan::{LOST_BLOCK, LOST_RECORD, start_of};
use crate::state_record::{StateCopy, StateRecord};

pub use calls::{SurveyCalls, Surveyed};
pub use chunk::{BlockUse, ChunkUse, SurveyedBlock, SurveyedChunk};
pub use finding::{Finding, MediumLocation, Severity};
pub use records::{RecordFacts, SurveyedRecord};
pub use recount::FilledSlot;

/// What is on a medium.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The format version that the superblock names; `None` if there is no superblock.
    pub version: Option<u32>,
    /// The format version of the database, if it is another one.
    pub other_version: Option<u32>,
    /// The identity that checksums are seeded with.
    pub identity: u64,
    /// Why the superblock cannot be relied on.
    pub superblock_problem: Option<String>,
    /// Whether no commit has ever been acknowledged here.
    pub is_blank: bool,
    /// The four copies of state records.
    pub records: Vec<SurveyedRecord>,
    /// The number, in `records`, of the copy in force.
    pub chosen: Option<usize>,
    /// All chunks.
    pub chunks: Vec<SurveyedChunk>,
    /// The highest timestamp found.
    pub highest: Timestamp,
}

impl Survey {
    /// The record in force.
    pub fn record(&self) -> Option<&RecordFacts> {
        self.records.get(self.chosen?)?.facts.as_ref()
    }
}

/// Reads all of a medium.
pub fn survey(medium: &dyn Medium, calls: &SurveyCalls<'_>) -> Survey {
    let mut found = Survey {
        version: None,
        other_version: None,
        identity: 0,
        superblock_problem: None,
        is_blank: false,
        records: Vec::new(),
        chosen: None,
        chunks: Vec::new(),
        highest: Timestamp::ZERO,
    };
    if medium.len() < HEAD_BYTES {
        found.is_blank = medium.is_empty();
        return found;
    }
    found.is_blank = crate::store::is_blank(medium);
    if found.is_blank {
        return found;
    }
    read_superblock(mapped(medium, 0, 64), &mut found);
    read_copy(mapped(medium, SUPERBLOCK_COPY, 64), &mut found, calls);
    if let Some(problem) = &found.superblock_problem {
        (calls.finding)(Finding::damage(MediumLocation::at(0), format!("the superblock: {problem}")));
    }
    if found.version.is_none() {
        return found;
    }
    check_unused(medium, calls);
    let records = records::read(medium, found.identity, calls);
    found.records = records.copies;
    found.chosen = records.newest.as_ref().map(|(n, _)| *n);
    let newest = records.newest.map(|(_, copy)| copy);
    if found.superblock_problem.is_some() && newest.is_none() {
        // Without the identity that seeds the checksums, none of them can be
        // verified.
        return found;
    }
    let state = newest.as_ref().map(|copy| &copy.record);
    let expect = Expectation::new(&state.cloned().unwrap_or_else(nothing_expected));
    read_chunks(medium, &mut found, &expect, state, calls);
    if let Some(newest) = &newest {
        compare(&found, newest, &expect, calls);
    }
    found
}

/// Without a state record, no slot can be expected to be filled.
fn nothing_expected() -> StateRecord {
    StateRecord { watermark: u64::MAX, ..StateRecord::default() }
}

fn read_superblock(bytes: &[u8], found: &mut Survey) {
    match Superblock::decode(bytes) {
        Ok(superblock) => {
            found.version = Some(superblock.version);
            found.identity = superblock.identity;
        }
        Err(reason) => {
            found.superblock_problem = Some(reason.to_string());
            if Superblock::resembles(bytes) {
                // Whether version and identity are right shows in whether any
                // other checksum fits.
                let (version, identity) = Superblock::fields(bytes);
                (found.version, found.identity) = (Some(version), identity);
            } else if let Unreadable::Version(version) = reason {
                found.other_version = Some(version);
            }
        }
    }
}

/// The copy of the superblock stands in for one that is damaged.
fn read_copy(bytes: &[u8], found: &mut Survey, calls: &SurveyCalls<'_>) {
    let place = MediumLocation::at(SUPERBLOCK_COPY);
    match Superblock::decode(bytes) {
        // A database of another version stays one.
        Ok(copy) if found.superblock_problem.is_some() && found.other_version.is_none() => {
            (found.version, found.identity) = (Some(copy.version), copy.identity);
        }
        Ok(copy) if copy.identity == found.identity => {}
        _ if found.superblock_problem.is_none() => {
            (calls.finding)(Finding::notice(place, "the copy of the superblock is missing or damaged"));
        }
        _ => {}
    }
}

/// Bytes of the medium's head that the format leaves zero.
fn check_unused(medium: &dyn Medium, calls: &SurveyCalls<'_>) {
    let ends = STATE_RECORDS.map(|at| at + STATE_RECORD_BYTES);
    let copy_end = SUPERBLOCK_COPY + 64;
    for (from, to) in [
        (64, STATE_RECORDS[0]),
        (ends[0], STATE_RECORDS[1]),
        (ends[1], SUPERBLOCK_COPY),
        (copy_end, HEAD_BYTES),
    ] {
        let bytes = mapped(medium, from, (to - from) as usize);
        let mut lines = bytes.chunks(64).enumerate().filter(|(_, line)| line.iter().any(|b| *b != 0));
        if let Some((n, _)) = lines.next() {
            let what = format!("unused bytes are not zero ({} lines)", 1 + lines.count());
            (calls.finding)(Finding::notice(MediumLocation::at(from + n as u64 * 64), what));
        }
    }
}

fn read_chunks(
    medium: &dyn Medium,
    found: &mut Survey,
    expect: &Expectation,
    state: Option<&StateRecord>,
    calls: &SurveyCalls<'_>,
) {
    let chunks = medium.len().div_ceil(CHUNK_BYTES) as u32;
    let next = AtomicU32::new(0);
    let done = AtomicU64::new(0);
    let reader = chunk::Reader { medium, identity: found.identity, expect, state, calls };
    let work = || {
        let mut read = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= chunks {
                return read;
            }
            read.push(reader.chunk(number));
            let done = done.fetch_add(CHUNK_BYTES, Ordering::Relaxed) + CHUNK_BYTES;
            if (calls.progress)(done.min(medium.len()), medium.len()).is_break() {
                next.store(chunks, Ordering::Relaxed);
            }
        }
    };
    found.chunks = share_out(calls.threads, |_| work()).into_iter().flatten().collect();
    found.chunks.sort_unstable_by_key(|chunk| chunk.number);
    let highest = found.chunks.iter().flat_map(|c| &c.blocks).map(|b| b.highest).max();
    found.highest = found.highest.max(highest.unwrap_or(Timestamp::ZERO));
}

/// Checks chunks and blocks against the state record.
fn compare(found: &Survey, newest: &StateCopy, expect: &Expectation, calls: &SurveyCalls<'_>) {
    let state = &newest.record;
    let is_carved = |c: &&SurveyedChunk| matches!(c.found, ChunkUse::Carved { .. });
    let carved = found.chunks.iter().filter(is_carved).count() as u64;
    let damaged = found.chunks.iter().filter(|c| matches!(c.found, ChunkUse::Damaged(_))).count() as u64;
    if carved + damaged < state.carved {
        let what = format!(
            "{carved} of {} chunks are left: the medium has been truncated or overwritten",
            state.carved
        );
        (calls.finding)(Finding::damage(
            MediumLocation::at(found.records[found.chosen.unwrap_or(0)].offset),
            what,
        ));
    }
    let blocks = || found.chunks.iter().flat_map(|c| &c.blocks);
    let used = blocks().filter(|b| matches!(b.found, BlockUse::Used | BlockUse::Damaged)).count() as u64;
    if used < state.used && carved + damaged >= state.carved && damaged == 0 {
        let what =
            format!("{used} of {} blocks are left: the descriptors of the others are lost", state.used);
        (calls.finding)(Finding::damage(
            MediumLocation::at(found.records[found.chosen.unwrap_or(0)].offset),
            what,
        ));
    }
    let block = |id: BlockId| {
        let chunk = found.chunks.get(id.chunk as usize)?;
        chunk.blocks.get(id.index as usize)
    };
    let missing = expect.missing(|id| block(id).filter(|b| b.found == BlockUse::Used).map(|b| b.opened_at));
    let missing = missing.into_iter().map(|id| (id, LOST_BLOCK));
    let is_of_record = |id: &BlockId| block(*id).is_some_and(|b| b.found == BlockUse::Record);
    let of_record = newest.blocks.iter().filter(|id| !is_of_record(id)).map(|id| (*id, LOST_RECORD));
    for (id, what) in missing.chain(of_record) {
        // Damaged places have already been reported.
        let is_told = match block(id) {
            Some(block) => block.found == BlockUse::Damaged,
            None => {
                found.chunks.get(id.chunk as usize).is_some_and(|c| matches!(c.found, ChunkUse::Damaged(_)))
            }
        };
        if !is_told {
            let offset = start_of(id.chunk) + (u64::from(id.index) + 1) * 64;
            let place =
                MediumLocation { chunk: Some(id.chunk), block: Some(id.index), ..MediumLocation::at(offset) };
            (calls.finding)(Finding::damage(place, what));
        }
    }
    for listed in &state.partly_filled {
        let found = block(listed.id());
        if let Some(found) = found.filter(|b| b.opened_at == listed.opened_at && b.slots < listed.fill) {
            let what = format!("the state record has {} of {} slots filled", listed.fill, found.slots);
            let place = MediumLocation {
                chunk: Some(listed.chunk),
                block: Some(listed.index),
                ..MediumLocation::at(found.offset)
            };
            (calls.finding)(Finding::damage(place, what));
        }
    }
}
