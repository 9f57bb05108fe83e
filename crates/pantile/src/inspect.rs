//! Looking at the files of a closed database, whole or damaged: what lies
//! where, as far as the bytes tell it. Nothing is recovered.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use foldhash::fast::FixedState;
use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_media::ViewMedium;
use pantile_store::{
    BlockUse, ChunkUse, Survey, SurveyCalls, Surveyed, SurveyedBlock, SurveyedChunk, SurveyedRecord, survey,
};

use crate::catalog;
use crate::check::{CheckOptions, CheckStep, Finding, Findings};
use crate::core::from_medium;
use crate::error::Result;
use crate::large;
use crate::row::Encoded;
use crate::schema::{Schema, TableDef};

/// What lies in a database's files.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Inspection {
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// The format version in the superblock; `None` if it is not to be found.
    pub format_version: Option<u32>,
    /// The number that all checksums are seeded with, in hexadecimal.
    pub identity: Option<String>,
    /// Why the superblock cannot be relied on.
    pub superblock_problem: Option<String>,
    /// Nothing has been stored yet.
    pub is_blank: bool,
    /// The four copies of state records.
    pub records: Vec<InspectedRecord>,
    /// The tables that blocks belong to.
    pub tables: Vec<InspectedTable>,
    /// All chunks but the first, which holds superblock and state records.
    pub chunks: Vec<InspectedChunk>,
    /// The highest timestamp found.
    pub highest_timestamp: u64,
    /// What is not as it should be, as far as bytes alone show it.
    pub findings: Vec<Finding>,
    /// Places that are damaged, also those not among `findings`.
    pub damaged: u64,
}

/// A copy of a state record.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InspectedRecord {
    /// Where it lies.
    pub offset: u64,
    /// Whether its checksum fits. What follows is 0 and false otherwise.
    pub is_valid: bool,
    /// Whether it is the one that counts.
    pub is_used: bool,
    /// Rises with each record.
    pub sequence: u64,
    /// Transactions up to here are durable,
    pub durable_watermark: u64,
    /// but for these, which had not been decided.
    pub undecided: Vec<u64>,
    /// The database was closed.
    pub closed: bool,
    /// Commits were acknowledged before they were durable.
    pub relaxed: bool,
    /// Chunks that were divided into blocks.
    pub chunks: u64,
    /// Blocks that were not full.
    pub partly_filled: u64,
}

/// What belongs to a table.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InspectedTable {
    /// Its id; below 16 are tables of the engine.
    pub id: u32,
    /// Its name, if its definition can be read.
    pub name: Option<String>,
    /// Its columns, each with its type.
    pub columns: Vec<String>,
    /// Its indexes, each with its columns.
    pub indexes: Vec<String>,
    /// Blocks of it.
    pub blocks: u64,
    /// Those that are not full.
    pub open: u64,
    /// Those that a collector is emptying.
    pub frozen: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Slots of the blocks.
    pub slots: u64,
    /// Contents, of whatever version.
    pub contents: u64,
    /// Their bytes.
    pub content_bytes: u64,
    /// Contents of deleted rows.
    pub tombstones: u64,
    /// Copies made by a collector.
    pub copies: u64,
    /// Void slots.
    pub void: u64,
    /// Contents of transactions that opening has yet to decide.
    pub undecided: u64,
    /// Slots that are damaged.
    pub damaged: u64,
}

/// A chunk of 2 MiB.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InspectedChunk {
    /// Its number; it lies at its number times 2 MiB.
    pub number: u32,
    /// Why it cannot be read, if so.
    pub problem: Option<String>,
    /// Bytes from one slot to the next; 0 if the chunk is not divided.
    pub stride: u32,
    /// Its blocks; none if it is not divided.
    pub blocks: Vec<InspectedBlock>,
}

/// How it is with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum BlockState {
    /// It belongs to no table.
    Free,
    /// It is not full.
    Open,
    /// Every slot has been filled.
    Sealed,
    /// A collector is emptying it.
    Frozen,
    /// Its descriptor, or a content that must be there, is damaged.
    Damaged,
}

/// A block.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InspectedBlock {
    /// How it is with it.
    pub state: BlockState,
    /// The id of its table.
    pub table: u32,
    /// Slots it has.
    pub slots: u32,
    /// Those that are filled.
    pub fill: u32,
    /// Versions that its header has as superseded; the header may be old.
    pub superseded: u32,
    /// Slots that are damaged.
    pub damaged: u32,
}

/// Looks at the closed database in the directory `path`, damaged or not,
/// without writing a byte.
///
/// # Errors
/// [`Error::AlreadyOpen`](crate::Error::AlreadyOpen),
/// [`Error::NoDatabase`](crate::Error::NoDatabase),
/// [`Error::Io`](crate::Error::Io). That the bytes make no sense is no error
/// but in the result.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("shop");
/// # drop(pantile::Database::open(&path)?);
/// let seen = pantile::inspect(&path, &pantile::CheckOptions::new())?;
/// assert_eq!((seen.format_version, seen.damaged), (Some(1), 0));
/// # Ok::<(), pantile::Error>(())
/// ```
pub fn inspect(path: impl AsRef<Path>, options: &CheckOptions) -> Result<Inspection> {
    let view = ViewMedium::open(path, &|done, total| options.report(CheckStep::Read, done, total));
    let view = view.map_err(from_medium)?;
    let findings = Findings::new(options.most_findings());
    crate::check::note_file(&view, &findings);
    let definitions = Definitions::default();
    let found = survey(
        &*view,
        &SurveyCalls {
            threads: options.thread_count(),
            contents: &|table, contents| definitions.note(table, contents),
            finding: &|finding| findings.add(finding),
            progress: &|done, total| options.report(CheckStep::Survey, done, total),
        },
    );
    let definitions = definitions.tables();
    let names = definitions.iter().map(|(id, def)| (*id, def.name.clone())).collect();
    let [damaged, _] = findings.counted();
    Ok(Inspection {
        file_bytes: view.file_len(),
        format_version: found.version.or(found.other_version),
        identity: found.version.map(|_| format!("{:016x}", found.identity)),
        superblock_problem: found.superblock_problem.clone(),
        is_blank: found.is_blank,
        records: (0..).zip(&found.records).map(|(n, r)| record(r, found.chosen == Some(n))).collect(),
        tables: tables(&found, &definitions),
        chunks: found.chunks.iter().map(chunk).collect(),
        highest_timestamp: found.highest.get(),
        findings: findings.into_list(&names),
        damaged,
    })
}

fn record(record: &SurveyedRecord, is_used: bool) -> InspectedRecord {
    let facts = record.facts.as_ref();
    InspectedRecord {
        offset: record.offset,
        is_valid: facts.is_some(),
        is_used,
        sequence: facts.map_or(0, |f| f.sequence),
        durable_watermark: facts.map_or(0, |f| f.watermark.get()),
        undecided: facts.map_or_else(Vec::new, |f| f.undecided.iter().map(|t| t.get()).collect()),
        closed: facts.is_some_and(|f| f.closed),
        relaxed: facts.is_some_and(|f| f.relaxed),
        chunks: facts.map_or(0, |f| f.carved),
        partly_filled: facts.map_or(0, |f| f.partly_filled),
    }
}

fn chunk(chunk: &SurveyedChunk) -> InspectedChunk {
    let (stride, problem) = match &chunk.found {
        ChunkUse::Free => (0, None),
        ChunkUse::Carved { stride, .. } => (*stride, None),
        ChunkUse::Damaged(problem) => (0, Some(problem.clone())),
    };
    InspectedChunk { number: chunk.number, problem, stride, blocks: chunk.blocks.iter().map(block).collect() }
}

fn block(block: &SurveyedBlock) -> InspectedBlock {
    let &SurveyedBlock { slots, table, fill, superseded, damaged, .. } = block;
    InspectedBlock { state: state(block), table, slots, fill, superseded, damaged }
}

fn state(block: &SurveyedBlock) -> BlockState {
    match block.found {
        BlockUse::Free => BlockState::Free,
        BlockUse::Damaged => BlockState::Damaged,
        BlockUse::Used if block.damaged > 0 => BlockState::Damaged,
        BlockUse::Used if block.frozen.is_some() => BlockState::Frozen,
        BlockUse::Used if block.fill < block.slots => BlockState::Open,
        BlockUse::Used => BlockState::Sealed,
    }
}

/// Adds up the blocks of each table that is defined or has any.
fn tables(found: &Survey, definitions: &BTreeMap<u32, TableDef>) -> Vec<InspectedTable> {
    let mut tables = BTreeMap::<u32, InspectedTable>::new();
    for (id, def) in definitions {
        let table = tables.entry(*id).or_default();
        table.name = Some(def.name.clone());
        table.columns = def.columns.iter().map(|c| format!("{} {}", c.name, c.ty.name())).collect();
        let index = |unique: bool| if unique { "unique " } else { "" };
        let of = |i: &crate::IndexDef| format!("{}{} ({})", index(i.unique), i.name, i.columns.join(", "));
        table.indexes = vec![format!("primary ({})", def.primary_key.join(", "))];
        table.indexes.extend(def.indexes.iter().map(of));
    }
    for chunk in &found.chunks {
        let ChunkUse::Carved { block_bytes, .. } = chunk.found else { continue };
        for block in chunk.blocks.iter().filter(|block| block.found == BlockUse::Used) {
            let table = tables.entry(block.table).or_default();
            table.blocks += 1;
            table.open += u64::from(block.fill < block.slots);
            table.frozen += u64::from(block.frozen.is_some());
            table.bytes += u64::from(block_bytes);
            table.slots += u64::from(block.slots);
            table.contents += u64::from(block.contents);
            table.content_bytes += block.content_bytes;
            table.tombstones += u64::from(block.tombstones);
            table.copies += u64::from(block.copies);
            table.void += u64::from(block.void);
            table.undecided += u64::from(block.undecided);
            table.damaged += u64::from(block.damaged);
        }
    }
    tables.into_iter().map(|(id, table)| InspectedTable { id, ..table }).collect()
}

/// The newest version of a row of the catalog: since when, and the row unless it is deleted.
type Newest = (Timestamp, Option<Vec<u8>>);

/// The definitions of tables, as contents of the catalog come by.
#[derive(Default)]
pub(crate) struct Definitions {
    /// By tuple.
    rows: Mutex<HashMap<u64, Newest, FixedState>>,
}

impl Definitions {
    pub fn note(&self, table: TableId, found: &[Surveyed<'_>]) {
        if table != catalog::CATALOG {
            return;
        }
        let mut rows = self.rows.lock();
        for content in found.iter().map(|one| one.content) {
            let newest = rows.entry(content.tuple().0).or_insert((Timestamp::ZERO, None));
            if newest.0 < content.txn_id() {
                let row = (!content.flags().is_tombstone()).then(|| content.row().to_vec());
                *newest = (content.txn_id(), row);
            }
        }
    }

    /// Those that can be read, by id; also the engine's own.
    pub fn tables(self) -> BTreeMap<u32, TableDef> {
        let own = [(catalog::CATALOG, catalog::definition()), (large::LARGE, large::definition())];
        let mut tables: BTreeMap<u32, TableDef> = own.into_iter().map(|(id, def)| (id.0, def)).collect();
        let Ok(schema) = Schema::new(&catalog::definition()) else { return tables };
        for (_, row) in self.rows.into_inner().into_values() {
            let Some(bytes) = row else { continue };
            let row = Encoded { schema: &schema, bytes: &bytes };
            if row.shape_problem().is_some() {
                continue;
            }
            let id = row.raw(&schema.columns[0]).iter().rev().fold(0, |id, &b| id << 8 | u32::from(b));
            if let Ok(def) = catalog::decode(row.raw(&schema.columns[1])) {
                tables.insert(id, def);
            }
        }
        tables
    }
}
