use super::*;

const SEED: u64 = 77;

fn record(entries: u32) -> StateRecord {
    let entry =
        |n| PartlyFilled { chunk: n, index: n % 63, fill: n % 1921, opened_at: u64::MAX - u64::from(n) };
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
        partly_filled: (0..entries).map(entry).collect(),
    }
}

fn place_of(record: &StateRecord) -> Vec<u8> {
    let mut place = record.encode(SEED);
    place.resize(STATE_COPY_BYTES as usize, 0);
    place
}

#[test]
fn a_record_is_read_as_it_was_written() {
    for entries in [0, 1, 63, 5000] {
        let record = record(entries);
        assert!(record.fits());
        assert_eq!(StateRecord::decode(&place_of(&record), SEED), Some(record));
    }
    let relaxed = StateRecord { relaxed: true, closed: false, ..record(2) };
    assert_eq!(StateRecord::decode(&place_of(&relaxed), SEED), Some(relaxed));
    let emulated = StateRecord { emulated: true, closed: false, ..record(2) };
    assert_eq!(StateRecord::decode(&place_of(&emulated), SEED), Some(emulated));
}

#[test]
fn the_longest_record_fits_and_no_longer_one() {
    let undecided = 8 * record(0).undecided.len();
    let most = (STATE_COPY_BYTES as usize - HEAD_BYTES - undecided - 8) / ENTRY_BYTES;
    let longest = record(most as u32);
    assert!(longest.fits() && longest.encode(SEED).len() <= STATE_COPY_BYTES as usize);
    assert!(!record(most as u32 + 1).fits());
    assert_eq!(StateRecord::decode(&place_of(&longest), SEED), Some(longest));
}

#[test]
fn what_is_not_whole_is_no_record() {
    let place = place_of(&record(3));
    let len = record(3).encode(SEED).len();
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
    let mut absurd = place;
    absurd[40..48].fill(0xff);
    assert_eq!(StateRecord::decode(&absurd, SEED), None);
}
