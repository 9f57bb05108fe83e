//! Columns and pages of entries, written and read again.

use pantile_testkit::{Random, SeedNote, seeds};

use super::*;

#[test]
fn a_column_is_read_as_it_was_written() {
    for seed in seeds(1, 300) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        let (count, bits, least) = (random.index(200), random.below(65) as u32, random.word());
        let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
        let numbers: Vec<u64> = (0..count).map(|_| (least & !mask) | (random.word() & mask)).collect();
        let mut out = Vec::new();
        pack(numbers.iter().copied(), &mut out);
        out.push(7);
        let mut words = &out[..];
        let column = Column::take(&mut words, count).expect("a column");
        assert_eq!(words, [7]);
        let read: Vec<u64> = (0..count).map(|n| column.get(n)).collect();
        assert_eq!(read, numbers);
        assert!(out.len() <= count * bits as usize / 64 + 4, "{} words", out.len());
    }
}

/// Entries in order: keys of one length or of several, which end with their values or not.
fn entries(random: &mut Random) -> Vec<(Vec<u64>, u64)> {
    let (width, is_even, ends_with_value) = (1 + random.index(4), random.below(2) == 0, random.below(2) == 0);
    let range = [2, 1000, u64::MAX][random.index(3)];
    let mut entries: Vec<_> = (0..1 + random.index(300))
        .map(|_| {
            let len = if is_even { width } else { 1 + random.index(width) };
            let mut key: Vec<u64> = (0..len).map(|_| random.below(range)).collect();
            let value = random.below(1 << 20);
            if ends_with_value {
                key[len - 1] = value;
            }
            (key, value)
        })
        .collect();
    entries.sort();
    entries
}

#[test]
fn a_page_of_keys_is_read_as_it_was_written() {
    let (mut page, mut keys) = (PageOfKeys::default(), KeysOfPage::default());
    for seed in seeds(1, 300) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        let entries = entries(&mut random);
        entries.iter().for_each(|(key, value)| page.push(key, *value));
        assert!(keys.read(page.take()));
        let read: Vec<_> = (0..keys.len()).map(|n| (keys.key(n).to_vec(), keys.values[n])).collect();
        assert_eq!(read, entries);
        let key = &entries[random.index(entries.len())].0;
        assert_eq!(keys.upto(key), entries.iter().filter(|(other, _)| other <= key).count());
    }
}

/// Whatever the words are, a page is read or refused.
#[test]
fn any_words_are_read_or_refused() {
    let (mut page, mut keys) = (PageOfKeys::default(), KeysOfPage::default());
    for seed in seeds(1, 2000) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        entries(&mut random).iter().for_each(|(key, value)| page.push(key, *value));
        let mut words = page.take().to_vec();
        let at = random.index(words.len().min(12));
        words[at] = [random.word(), random.below(100), words[at] ^ (1 << random.below(64))][random.index(3)];
        words.truncate(if random.below(4) == 0 { random.index(words.len()) } else { words.len() });
        if keys.read(&words) {
            (0..keys.len()).for_each(|n| _ = keys.key(n));
        }
    }
}

/// A page has room for no more than it can hold when nothing can be left out.
#[test]
fn a_full_page_is_not_too_long() {
    for width in [1, 2, 5, 40] {
        let (mut page, mut random) = (PageOfKeys::default(), Random::new(1, 0));
        let mut key = vec![0; width];
        while page.has_room_for(&key) {
            page.push(&key, random.word());
            key.iter_mut().for_each(|word| *word = random.word());
        }
        assert!(page.take().len() <= PAGE_WORDS);
    }
}

/// Keys that many rows share take the bits of their tuple ids.
#[test]
fn shared_keys_take_few_bits() {
    let mut page = PageOfKeys::default();
    (0..1000).for_each(|tuple| page.push(&[u64::from_be_bytes(*b"a needle"), tuple], tuple));
    assert!(page.take().len() < 1000 * 10 / 64 + 16);
}
