use std::sync::atomic::AtomicBool;

use pantile::lab::medium_of;
use pantile::{MediumKind, Options};
use pantile_bench::ycsb::Ycsb;

use super::*;
use crate::run::run;

/// The cold blocks of YCSB's table, after some transactions that update tuples.
fn blocks_after(transactions: u64) -> Vec<ColdBlock> {
    let ycsb = Ycsb { tuples: 4_000, theta: 0.9, ..Ycsb::default() };
    let options = Options::new().medium(MediumKind::Dram);
    let db = run(&ycsb, options, transactions, &AtomicBool::new(false), |_| Ok(())).expect("a run");
    let medium = medium_of(&db);
    db.close().expect("closed");
    // The table was created last.
    cold_blocks(&*medium, 0.75).pop_last().expect("a table").1
}

#[test]
fn full_blocks_that_are_alive_are_cold() {
    let loaded = blocks_after(0);
    let rows: usize = loaded.iter().map(|block| block.rows.len()).sum();
    assert!(rows > 3_000 && rows <= 4_000, "{rows}");
    assert!(loaded.iter().all(|block| block.rows.iter().all(|row| row.len() < block.stride as usize)));
    let mut keys: Vec<_> = loaded.iter().flat_map(|block| &block.rows).map(|row| &row[..8]).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), rows, "each row is there once");
    let updated: usize = blocks_after(150).iter().map(|block| block.rows.len()).sum();
    assert!(updated < rows, "{updated} of {rows}");
    assert_eq!(blocks_after(0), loaded);
}

#[test]
fn what_is_stored_has_all_that_reading_needs() {
    let row = |n: usize| format!("{n:05} of this table, in which all rows are much alike").into_bytes();
    let blocks: Vec<_> =
        [0, 1].map(|b| ColdBlock { stride: 96, rows: (0..500).map(|n| row(b * 500 + n)).collect() }).into();
    let len = row(0).len();
    let settings = ColdSettings { table_dictionary: 1024, ..ColdSettings::default() };
    let gain = |way| compress(&blocks, way, settings).expect("compressed");
    let [alone, block, table, whole] =
        [Way::Alone, Way::BlockDictionary, Way::TableDictionary, Way::WholeBlock].map(gain);
    for gain in [alone, block, table, whole] {
        assert_eq!(
            (gain.rows, gain.row_bytes, gain.slot_bytes),
            (1000, 1000 * len as u64, 1000 * 96),
            "{gain:?}"
        );
        assert_eq!(gain.stored_bytes(), gain.packed_bytes + 1000 * HEADER_BYTES as u64);
    }
    assert_eq!((alone.dictionary_bytes, whole.dictionary_bytes), (0, 0));
    let most = 500 * len / settings.block_share;
    assert!((1..=2 * most as u64).contains(&block.dictionary_bytes), "one for each block: {block:?}");
    assert!((1..=1024).contains(&table.dictionary_bytes), "{table:?}");
    assert!(whole.packed_bytes < block.packed_bytes && block.packed_bytes < alone.packed_bytes);
    // What is counted beside dictionaries is what packing alone comes to.
    let packed = blocks.iter().map(|block| {
        let dictionary = Dictionary::train(&block.rows, most, settings.level);
        Packer::new(dictionary.as_ref(), settings.level).and_then(|mut packer| packer.pack(&block.rows))
    });
    let packed: u64 = packed.map(|packed| packed.expect("packed").stored_bytes()).sum();
    assert_eq!(packed, block.packed_bytes - block.dictionary_bytes);
}
