use pantile_base::limits::{CHUNK_BYTES, STATE_COPY_BYTES};
use pantile_media::{DramMedium, MapOptions};

use super::*;

const SEED: u64 = 77;

fn record(entries: u32) -> StateRecord {
    let entry =
        |n| PartlyFilled { chunk: n, index: n % 127, fill: n % 1921, opened_at: u64::MAX - u64::from(n) };
    StateRecord {
        sequence: 9,
        watermark: 8 << 50,
        taken_at: 7 << 50,
        boot: u64::MAX,
        closed: true,
        relaxed: false,
        emulated: false,
        carved: 5,
        used: 9,
        undecided: vec![7, 11],
        image: ImageName::new(u64::from(entries) << 40 | 5),
        partly_filled: (0..entries).map(entry).collect(),
    }
}

/// A medium of a few chunks, and all blocks in which records can continue.
fn medium() -> (Own, Vec<BlockId>) {
    let medium = DramMedium::small(MapOptions { reserve_bytes: 64 << 20, max_bytes: None }).expect("reserve");
    medium.grow(5 * CHUNK_BYTES).expect("grow");
    let blocks = |chunk| (0..Geometry::new(chunk, Class::OF_RECORDS).blocks).map(move |index| (chunk, index));
    let blocks = (1..5).flat_map(blocks).map(|(chunk, index)| BlockId { chunk, index }).collect();
    (Own::claim(medium).expect("nobody else's"), blocks)
}

/// What is read from the two copies at the record's place.
fn read(medium: &Own, record: &StateRecord) -> [Option<StateRecord>; 2] {
    let at = 2 * record.place();
    [at, at + 1].map(|n| StateRecord::read(&**medium, StateRecord::copy_at(n), SEED).map(|copy| copy.record))
}

#[test]
fn a_record_is_read_as_it_was_written_however_long_it_is() {
    let (medium, blocks) = medium();
    let most_in_place = IN_PLACE as u32;
    let per_block = entries_per_block() as u32;
    for entries in [0, 1, most_in_place, most_in_place + 1, most_in_place + per_block + 7, 200_000] {
        let record = record(entries);
        let needed = (0..).find(|&n| capacity(n) >= u64::from(entries)).expect("enough blocks");
        record.write(&medium, SEED, &blocks[..needed]).expect("write");
        let read = read(&medium, &record);
        assert!(read == [Some(record.clone()), Some(record)], "{entries} entries");
    }
    for (relaxed, emulated) in [(true, false), (false, true)] {
        let record = StateRecord { relaxed, emulated, closed: false, ..record(2) };
        record.write(&medium, SEED, &[]).expect("write");
        assert_eq!(read(&medium, &record)[0], Some(record));
    }
}

#[test]
fn the_longest_head_has_room() {
    let (medium, blocks) = medium();
    let undecided = vec![u64::MAX; TRANSACTION_SLOTS];
    let entries = IN_PLACE + 64 * entries_per_block();
    let longest = StateRecord { undecided, ..record(entries as u32) };
    longest.write(&medium, SEED, &blocks[..64]).expect("write");
    assert!(read(&medium, &longest)[0] == Some(longest), "the longest record");
}

#[test]
#[should_panic = "I-19"]
fn a_record_without_room_is_never_cut_short() {
    let (medium, _) = medium();
    let _ = record(IN_PLACE as u32 + 1).write(&medium, SEED, &[]);
}

#[test]
fn one_copy_of_each_part_is_enough_and_none_is_too_few() {
    let (medium, blocks) = medium();
    let record = record(3 * entries_per_block() as u32);
    record.write(&medium, SEED, &blocks[..3]).expect("write");
    let [first, second] = offsets_in(blocks[1]);
    medium.write(first + 100, &[0x5a; 4]).expect("write");
    assert!(read(&medium, &record)[0] == Some(record.clone()), "the second copy is whole");
    medium.write(second + 300, &[0x5a; 4]).expect("write");
    assert!(read(&medium, &record) == [None, None], "no copy is whole");
}

#[test]
fn what_is_not_whole_is_no_record() {
    let (medium, _) = medium();
    let record = record(3);
    record.write(&medium, SEED, &[]).expect("write");
    let at = StateRecord::copy_at(2);
    let mut place = mapped(&*medium, at, STATE_COPY_BYTES as usize).to_vec();
    let len = HEAD_BYTES + 3 * ENTRY_BYTES + 2 * 8 + SUM_BYTES;
    for byte in 0..len - 4 {
        for bit in 0..8 {
            let mut flipped = place.clone();
            flipped[byte] ^= 1 << bit;
            assert_eq!(StateRecord::decode(&flipped, SEED), None, "byte {byte}, bit {bit}");
        }
    }
    assert_eq!(StateRecord::decode(&place, SEED + 1), None, "another database's record");
    assert_eq!(StateRecord::decode(&vec![0; STATE_COPY_BYTES as usize], SEED), None);
    // A count of entries far beyond the limit.
    place[40..48].fill(0xff);
    assert_eq!(StateRecord::decode(&place, SEED), None);
}
