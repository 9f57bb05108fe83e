//! What compressing the rows of cold blocks would gain and cost: TPC-C after a run, YCSB's tuples, and paragraphs of
//! text. docs/flash.md says what the columns are.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Parser;
use pantile::lab::medium_of;
use pantile::{Database, MediumKind, Options, TableDef, Type};
use pantile_bench::tpcc::{Scale, Tpcc};
use pantile_bench::ycsb::Ycsb;
use pantile_flash::{ColdBlock, ColdSettings, Gain, SEED, Way, cold_blocks, compress, run};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(about = "What compressing the rows of cold blocks would gain and cost")]
struct Arguments {
    /// Warehouses of TPC-C.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    warehouses: u16,
    /// Transactions of TPC-C, and of YCSB.
    #[arg(long, default_value_t = 20_000)]
    transactions: u64,
    /// Tuples of YCSB.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    tuples: u64,
    /// A directory with text: files that end in .md and .rs, whose paragraphs are rows.
    #[arg(long, default_value = ".")]
    text: PathBuf,
    /// The level of compression.
    #[arg(long, default_value_t = ColdSettings::default().level, value_parser = clap::value_parser!(i32).range(1..=22))]
    level: i32,
    /// A block's dictionary has at most one byte for this many of its rows.
    #[arg(long, default_value_t = ColdSettings::default().block_share, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    block_share: usize,
    /// Kilobytes of a table's dictionary.
    #[arg(long, default_value_t = ColdSettings::default().table_dictionary >> 10, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1 << 20))]
    table_dictionary: usize,
    /// Tables with fewer blocks are left out.
    #[arg(long, default_value_t = 4, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    least_blocks: usize,
}

/// A block with more obsolete rows than a quarter is collected rather than compressed.
const LEAST_ALIVE: f64 = 0.75;

/// The tables of TPC-C in the order in which they are created.
const TPCC: [&str; 9] =
    ["warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item", "stock"];

const WAYS: [(Way, &str); 4] = [
    (Way::Alone, "rows alone"),
    (Way::BlockDictionary, "block's dict"),
    (Way::TableDictionary, "table's dict"),
    (Way::WholeBlock, "whole block"),
];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let stop = AtomicBool::new(false);
    let in_memory = || Options::new().medium(MediumKind::Dram);
    println!(
        "table           blocks    rows MB  in slots  how            stored MB  of rows  of slots  dicts MB  train ms  pack ns  ready µs  read ns"
    );
    let tpcc = Tpcc { scale: Scale::full(arguments.warehouses), together: false, seed: SEED };
    show(&TPCC, run(&tpcc, in_memory(), arguments.transactions, &stop, |_| Ok(()))?, &arguments)?;
    let ycsb = Ycsb { tuples: arguments.tuples, theta: 0.9, seed: SEED, ..Ycsb::default() };
    show(&["ycsb"], run(&ycsb, in_memory(), arguments.transactions / 10, &stop, |_| Ok(()))?, &arguments)?;
    let db = in_memory().index_image(false).open("text")?;
    load_text(&db, &arguments.text)?;
    show(&["paragraphs"], db, &arguments)
}

/// Makes a row of each paragraph of the text under a directory.
fn load_text(db: &Database, directory: &Path) -> Result<()> {
    let table = db.create_table(
        TableDef::new("paragraphs")
            .column("id", Type::U64)
            .column("text", Type::String(60_000))
            .primary_key(["id"]),
    )?;
    let mut files = Vec::new();
    find_text(directory, &mut files)?;
    files.sort();
    let mut next = 0_u64;
    for file in files {
        let text = std::fs::read_to_string(file)?;
        let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
        db.run(|txn| {
            (next..)
                .zip(paragraphs.clone())
                .try_for_each(|(id, paragraph)| txn.insert(&table, &[id.into(), paragraph.into()]))
        })?;
        next += paragraphs.count() as u64;
    }
    Ok(())
}

/// Files with text in a directory and those below it; hidden ones and what is built are left out.
fn find_text(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_left_out = name == "target" || name.to_string_lossy().starts_with('.');
        match entry.file_type()? {
            kind if kind.is_dir() && !is_left_out => find_text(&path, files)?,
            kind if kind.is_file()
                && path.extension().is_some_and(|ending| ending == "md" || ending == "rs") =>
            {
                files.push(path);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Closes a database, and prints a line for each of the tables that were created last, in this order, and each way to
/// compress its cold blocks.
fn show(names: &[&str], db: Database, arguments: &Arguments) -> Result<()> {
    let medium = medium_of(&db);
    db.close()?;
    let settings = ColdSettings {
        level: arguments.level,
        block_share: arguments.block_share,
        table_dictionary: arguments.table_dictionary << 10,
    };
    // Identifiers rise with each table that is created.
    let tables = cold_blocks(&*medium, LEAST_ALIVE);
    let of_names = tables.values().skip(tables.len() - names.len());
    for (name, blocks) in
        names.iter().zip(of_names).filter(|(_, blocks)| blocks.len() >= arguments.least_blocks)
    {
        for (way, how) in WAYS {
            print(name, how, blocks, &compress(blocks, way, settings)?);
        }
    }
    Ok(())
}

fn print(name: &str, how: &str, blocks: &[ColdBlock], gain: &Gain) {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let share = |of: u64, bytes: u64| of as f64 / bytes as f64;
    println!(
        "{name:14} {:>7} {:>10.2} {:>9.2}  {how:13} {:>10.2} {:>8.2} {:>9.2} {:>9.3} {:>9.1} {:>8.0} {:>9.1} {:>8.0}",
        blocks.len(),
        megabytes(gain.row_bytes),
        megabytes(gain.slot_bytes),
        megabytes(gain.stored_bytes()),
        share(gain.packed_bytes, gain.row_bytes),
        share(gain.stored_bytes(), gain.slot_bytes),
        megabytes(gain.dictionary_bytes),
        gain.costs.train,
        gain.costs.pack,
        gain.costs.prepare,
        gain.costs.read,
    );
}
