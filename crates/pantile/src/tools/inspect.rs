//! Showing the files of a closed database, whole or damaged: what is where, as
//! far as the bytes say. Nothing is recovered.

use std::collections::BTreeMap;
use std::path::Path;

use pantile_store::{BlockUse, ChunkUse, DEPENDENCIES, Survey, SurveyedBlock, SurveyedChunk, SurveyedRecord};

use crate::engine::catalog;
use crate::tools::findings::{Finding, Findings};
use crate::tools::image::{self, InspectedImage};
use crate::tools::options::CheckOptions;
use crate::tools::reading::Files;
use crate::types::error::Result;
use crate::types::schema::{IndexDef, TableDef};

/// What is in a database's files.
///
/// ```
/// use pantile::tools::{BlockState, CheckOptions, InspectedBlock, InspectedTable, Inspection, inspect};
/// # use pantile::{Database, TableDef, Type};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("zoo");
/// # let db = Database::open(&path)?;
/// # let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&pets, &[1u32.into()]))?;
/// # db.close()?;
/// let seen: Inspection = inspect(&path, &CheckOptions::new())?;
/// assert!(seen.records.iter().any(|record| record.is_used && record.closed));
/// let pets: &InspectedTable =
///     seen.tables.iter().find(|table| table.name.as_deref() == Some("pets")).expect("the table");
/// assert_eq!((pets.contents, pets.open), (1, 1));
/// let of_pets = |block: &&InspectedBlock| block.table == pets.id && block.state == BlockState::Open;
/// assert_eq!(seen.chunks.iter().flat_map(|chunk| &chunk.blocks).filter(of_pets).count(), 1);
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Inspection {
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// The format version in the superblock; `None` if there is none.
    pub format_version: Option<u32>,
    /// The seed of all checksums, in hexadecimal.
    pub identity: Option<String>,
    /// What is wrong with the superblock, if anything.
    pub superblock_problem: Option<String>,
    /// Whether nothing has been stored yet.
    pub is_blank: bool,
    /// The four copies of state records.
    pub records: Vec<InspectedRecord>,
    /// The index image, if there is one.
    pub image: Option<InspectedImage>,
    /// The tables that blocks belong to.
    pub tables: Vec<InspectedTable>,
    /// All chunks but the first, which holds superblock and state records.
    pub chunks: Vec<InspectedChunk>,
    /// The highest timestamp found.
    pub highest_timestamp: u64,
    /// What is wrong, as far as the bytes alone show it.
    pub findings: Vec<Finding>,
    /// The number of damaged places, including those not among `findings`.
    pub damaged: u64,
}

/// A copy of a state record.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct InspectedRecord {
    /// Byte offset in the data file.
    pub offset: u64,
    /// Whether its checksum is right. If not, the other fields are 0 and false.
    pub is_valid: bool,
    /// Whether opening uses it.
    pub is_used: bool,
    /// Increases with each record.
    pub sequence: u64,
    /// Transactions up to this timestamp are durable, except `undecided` ones.
    pub durable_watermark: u64,
    /// Transactions that might still commit when the record was written.
    pub undecided: Vec<u64>,
    /// Whether the database was closed.
    pub closed: bool,
    /// Whether commits were acknowledged before they were durable.
    pub relaxed: bool,
    /// Chunks that were divided into blocks.
    pub chunks: u64,
    /// Blocks that were not full.
    pub partly_filled: u64,
}

/// A table and what belongs to it.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct InspectedTable {
    /// Its id. Ids below 16 are tables of the engine.
    pub id: u32,
    /// Its name, if its definition can be read.
    pub name: Option<String>,
    /// Its columns, each with its type.
    pub columns: Vec<String>,
    /// Its indexes, each with its columns.
    pub indexes: Vec<String>,
    /// Blocks of it.
    pub blocks: u64,
    /// Blocks that are not full.
    pub open: u64,
    /// Blocks that a collector is emptying.
    pub frozen: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Slots of the blocks.
    pub slots: u64,
    /// Contents, of all versions.
    pub contents: u64,
    /// Their bytes.
    pub content_bytes: u64,
    /// Contents of deleted rows.
    pub tombstones: u64,
    /// Copies made by a collector.
    pub copies: u64,
    /// Void slots.
    pub void: u64,
    /// Contents of transactions for which opening has to decide whether they committed.
    pub undecided: u64,
    /// Slots that are damaged.
    pub damaged: u64,
}

/// A chunk of 2 MiB.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct InspectedChunk {
    /// Its number. It begins at its number times 2 MiB.
    pub number: u32,
    /// Why it cannot be read, if it cannot.
    pub problem: Option<String>,
    /// Bytes of each of its blocks; 0 if the chunk is not divided.
    pub block_bytes: u32,
    /// Its blocks. Empty if the chunk is not divided.
    pub blocks: Vec<InspectedBlock>,
}

/// The state of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum BlockState {
    /// It belongs to no table.
    Free,
    /// It is not full.
    Open,
    /// Every slot has been filled.
    Sealed,
    /// A collector is emptying it.
    Frozen,
    /// State records continue in it.
    Record,
    /// Its descriptor, or a content that it must hold, is damaged.
    Damaged,
}

/// A block.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct InspectedBlock {
    /// Its state.
    pub state: BlockState,
    /// The id of its table.
    pub table: u32,
    /// Bytes from one slot to the next.
    pub stride: u32,
    /// Its slots.
    pub slots: u32,
    /// Slots that are filled.
    pub fill: u32,
    /// Versions that its header marks as superseded. The header may be out of date.
    pub superseded: u32,
    /// Slots that are damaged.
    pub damaged: u32,
}

/// Shows the closed database in the directory `path`, damaged or not, without
/// writing a byte.
///
/// # Errors
/// [`Error::AlreadyOpen`](crate::Error::AlreadyOpen),
/// [`Error::NoDatabase`](crate::Error::NoDatabase),
/// [`Error::Io`](crate::Error::Io). Damage is not an error; the result shows it.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("shop");
/// # drop(pantile::Database::open(&path)?);
/// let seen = pantile::inspect(&path, &pantile::CheckOptions::new())?;
/// assert_eq!((seen.format_version, seen.damaged), (Some(3), 0));
/// # Ok::<(), pantile::Error>(())
/// ```
pub fn inspect(path: impl AsRef<Path>, options: &CheckOptions) -> Result<Inspection> {
    let (options, findings) = (&options.begun(), Findings::new(options.most_findings()));
    let files = Files::read(path.as_ref(), options, &findings, &|_| ())?;
    let found = &files.found;
    let [damaged, _] = findings.counted();
    Ok(Inspection {
        file_bytes: files.view.file_len(),
        format_version: found.version.or(found.other_version),
        identity: found.version.map(|_| format!("{:016x}", found.identity)),
        superblock_problem: found.superblock_problem.clone(),
        is_blank: found.is_blank,
        records: (0..).zip(&found.records).map(|(n, r)| record(r, found.chosen == Some(n))).collect(),
        image: image::look(&files.view, found),
        tables: tables(found, &files.definitions),
        chunks: found.chunks.iter().map(chunk).collect(),
        highest_timestamp: found.highest.get(),
        findings: findings.list(&files.names()),
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
    let (block_bytes, problem) = match &chunk.found {
        ChunkUse::Free => (0, None),
        ChunkUse::Carved { block_bytes } => (*block_bytes, None),
        ChunkUse::Damaged(problem) => (0, Some(problem.clone())),
    };
    let blocks = chunk.blocks.iter().map(block).collect();
    InspectedChunk { number: chunk.number, problem, block_bytes, blocks }
}

fn block(block: &SurveyedBlock) -> InspectedBlock {
    let &SurveyedBlock { stride, slots, table, fill, superseded, damaged, .. } = block;
    InspectedBlock { state: state(block), table, stride, slots, fill, superseded, damaged }
}

fn state(block: &SurveyedBlock) -> BlockState {
    match block.found {
        BlockUse::Free => BlockState::Free,
        BlockUse::Damaged => BlockState::Damaged,
        BlockUse::Record => BlockState::Record,
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
        table.columns = def.columns.iter().map(|c| format!("{} {}", c.name, c.ty)).collect();
        let index = |unique: bool| if unique { "unique " } else { "" };
        let of = |i: &IndexDef| format!("{}{} ({})", index(i.unique), i.name, i.columns.join(", "));
        table.indexes = vec![format!("primary ({})", def.primary_key.join(", "))];
        table.indexes.extend(def.indexes.iter().map(of));
    }
    for chunk in &found.chunks {
        let ChunkUse::Carved { block_bytes } = chunk.found else { continue };
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
    if let Some(table) = tables.get_mut(&DEPENDENCIES.0) {
        table.name = Some(catalog::OF_DEPENDENCIES.to_owned());
    }
    tables.into_iter().map(|(id, table)| InspectedTable { id, ..table }).collect()
}
