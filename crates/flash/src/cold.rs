//! Cold blocks: what compressing their rows would gain and cost.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pantile_base::TableId;
use pantile_media::Medium;
use pantile_store::{BlockUse, HEADER_BYTES, SurveyCalls, Surveyed, survey};
use pantile_testkit::Random;

use crate::packing::{Dictionary, PackedRows, Packer, Unpacker};

/// A full block, most of which is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColdBlock {
    /// Bytes from one slot to the next.
    pub stride: u32,
    /// The rows that are alive.
    pub rows: Vec<Vec<u8>>,
}

/// A content that was found.
struct Found {
    block: u64,
    row: Option<Vec<u8>>,
    /// Orders the versions of a tuple. Of a version and its copy, the copy's.
    version: (u64, bool),
    tuple: (u32, u64),
}

/// The cold blocks of each table of a closed database: those that are full, and of which at least `least_alive` are
/// newest versions. Other rows in them are left out. Tables that have no cold block are there as well.
pub fn cold_blocks(medium: &dyn Medium, least_alive: f64) -> BTreeMap<u32, Vec<ColdBlock>> {
    let found = Mutex::new(Vec::new());
    let note = |table: TableId, contents: &[Surveyed<'_>]| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        let block = contents.iter().map(|surveyed| surveyed.address.offset()).min().unwrap_or(0);
        found.extend(contents.iter().map(|Surveyed { content, .. }| Found {
            block,
            row: (!content.flags().is_tombstone()).then(|| content.row().to_vec()),
            version: (content.timestamp().get(), content.flags().is_relocated()),
            tuple: (table.0, content.tuple().0),
        }));
    };
    let calls = SurveyCalls {
        threads: 1,
        contents: &note,
        finding: &|_| {},
        progress: &|_, _| ControlFlow::Continue(()),
    };
    let surveyed = survey(medium, &calls);
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut newest = HashMap::new();
    for Found { tuple, version, .. } in &found {
        let newest = newest.entry(*tuple).or_insert(*version);
        *newest = (*newest).max(*version);
    }
    let is_alive = |found: &Found| newest[&found.tuple] == found.version;
    let mut alive: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    for Found { block, row, .. } in found.into_iter().filter(is_alive) {
        alive.entry(block).or_default().extend(row);
    }
    let mut cold: BTreeMap<u32, Vec<ColdBlock>> = BTreeMap::new();
    let blocks = surveyed.chunks.iter().flat_map(|chunk| &chunk.blocks);
    for block in blocks.filter(|block| block.found == BlockUse::Used) {
        let of_table = cold.entry(block.table).or_default();
        let end = block.offset + u64::from(block.stride) * u64::from(block.slots);
        let Some((_, rows)) = alive.range_mut(block.offset..end).next() else { continue };
        if block.fill == block.slots && rows.len() as f64 >= f64::from(block.slots) * least_alive {
            of_table.push(ColdBlock { stride: block.stride, rows: std::mem::take(rows) });
        }
    }
    cold
}

/// How rows of cold blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Each row for itself.
    Alone,
    /// Each row, with a dictionary of its block.
    BlockDictionary,
    /// Each row, with a dictionary of its table.
    TableDictionary,
    /// All rows of a block at once. To read one, all are decompressed.
    WholeBlock,
}

/// How much is done for it.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct ColdSettings {
    /// The level of compression.
    pub level: i32,
    /// A block's dictionary has at most one byte for this many of its rows.
    pub block_share: usize,
    /// Most bytes of a table's dictionary.
    pub table_dictionary: usize,
}

impl Default for ColdSettings {
    /// The library's usual level, a thirty-second of a block, and 64 KB for a table.
    fn default() -> Self {
        Self { level: 3, block_share: 32, table_dictionary: 64 << 10 }
    }
}

/// What a way of compressing gains and costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Number of rows.
    pub rows: u64,
    /// Their bytes.
    pub row_bytes: u64,
    /// Bytes of the slots that hold them, with content headers and what pads them.
    pub slot_bytes: u64,
    /// Bytes of dictionaries.
    pub dictionary_bytes: u64,
    /// Bytes that take the place of the rows: compressed rows with their entries, and the dictionaries.
    pub packed_bytes: u64,
    /// How long it takes.
    pub costs: Costs,
}

impl Gain {
    /// Bytes that take the place of the slots: content headers, and what takes the place of rows.
    pub fn stored_bytes(&self) -> u64 {
        self.packed_bytes + self.rows * HEADER_BYTES as u64
    }
}

/// Medians over blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Costs {
    /// Milliseconds to train a dictionary, of a block or of the table.
    pub train: f64,
    /// Nanoseconds to compress a row.
    pub pack: f64,
    /// Microseconds to make a stored dictionary ready for reading.
    pub prepare: f64,
    /// Nanoseconds to read one row, with a dictionary that is ready.
    pub read: f64,
}

/// Rows from which a table's dictionary is learned.
const SAMPLES: usize = 20_000;

/// Compresses the rows of a table's cold blocks, and reads them again.
///
/// # Errors
/// Those of the library.
///
/// # Panics
/// If a row is not what it was.
pub fn compress(blocks: &[ColdBlock], way: Way, settings: ColdSettings) -> io::Result<Gain> {
    let mut train = Vec::new();
    let mut learn = |rows: &[Vec<u8>], most: usize| {
        let (dictionary, time) = timed(|| Dictionary::train(rows, most, settings.level));
        train.push(time * 1e3);
        dictionary
    };
    let of_table = match way {
        Way::TableDictionary => learn(&sample(blocks), settings.table_dictionary),
        Way::Alone | Way::BlockDictionary | Way::WholeBlock => None,
    };
    let mut gain = Gain {
        rows: 0,
        row_bytes: 0,
        slot_bytes: 0,
        dictionary_bytes: of_table.as_ref().map_or(0, |dictionary| dictionary.bytes().len() as u64),
        packed_bytes: 0,
        costs: Costs::default(),
    };
    let (mut pack, mut prepare, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        let bytes: usize = block.rows.iter().map(Vec::len).sum();
        let of_block = match way {
            Way::BlockDictionary => learn(&block.rows, bytes / settings.block_share),
            Way::Alone | Way::TableDictionary | Way::WholeBlock => None,
        };
        let dictionary = of_block.as_ref().or(of_table.as_ref());
        if let Some(dictionary) = dictionary {
            prepare.push(timed(|| dictionary.prepare()).1 * 1e6);
        }
        let whole;
        let rows = match way {
            Way::WholeBlock => {
                whole = [block.rows.concat()];
                &whole[..]
            }
            Way::Alone | Way::BlockDictionary | Way::TableDictionary => &block.rows[..],
        };
        let count = block.rows.len() as u64;
        let mut packer = Packer::new(dictionary, settings.level)?;
        let (packed, time) = timed(|| packer.pack(rows));
        let packed = packed?;
        pack.push(time * 1e9 / count as f64);
        read.push(read_back(rows, &packed, dictionary)?);
        gain.rows += count;
        gain.row_bytes += bytes as u64;
        gain.slot_bytes += count * u64::from(block.stride);
        gain.dictionary_bytes += of_block.as_ref().map_or(0, |dictionary| dictionary.bytes().len() as u64);
        gain.packed_bytes += packed.stored_bytes();
    }
    gain.packed_bytes += gain.dictionary_bytes;
    gain.costs =
        Costs { train: median(train), pack: median(pack), prepare: median(prepare), read: median(read) };
    Ok(gain)
}

/// Rows from all over the blocks, as many from each part.
fn sample(blocks: &[ColdBlock]) -> Vec<Vec<u8>> {
    let all = blocks.iter().map(|block| block.rows.len()).sum::<usize>();
    let each = all.div_ceil(SAMPLES).max(1);
    blocks.iter().flat_map(|block| &block.rows).step_by(each).cloned().collect()
}

/// Reads rows here and there, as many as there are, and checks all. Returns the nanoseconds of one.
fn read_back(rows: &[Vec<u8>], packed: &PackedRows, dictionary: Option<&Dictionary>) -> io::Result<f64> {
    let mut unpacker = Unpacker::new(dictionary)?;
    let mut row = Vec::new();
    for (n, wanted) in rows.iter().enumerate() {
        unpacker.row(packed, n, &mut row)?;
        assert_eq!(row, *wanted, "row {n} is another one");
    }
    let mut random = Random::new(1, 0);
    let places: Vec<_> = rows.iter().map(|_| random.index(rows.len())).collect();
    let (outcome, time) =
        timed(|| places.iter().try_for_each(|n| unpacker.row(packed, *n, std::hint::black_box(&mut row))));
    outcome.map(|()| time * 1e9 / rows.len() as f64)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begin = Instant::now();
    let done = work();
    (done, begin.elapsed().as_secs_f64())
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
#[path = "cold_test.rs"]
mod tests;
