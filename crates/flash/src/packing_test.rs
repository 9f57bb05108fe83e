use super::*;

/// Rows that are alike but for a number and a name.
fn alike(count: usize) -> Vec<Vec<u8>> {
    let names = ["Ada", "Grace", "Barbara", "Radia", "Frances"];
    let row = |n: usize| {
        format!(
            "customer {n:06}; name {}; credit: good; delivered by post to the address known",
            names[n % 5]
        )
    };
    (0..count).map(|n| row(n).into_bytes()).collect()
}

fn assert_reads_back(rows: &[Vec<u8>], dictionary: Option<&Dictionary>) -> PackedRows {
    let packed = Packer::new(dictionary, 3).and_then(|mut packer| packer.pack(rows)).expect("packed");
    let mut unpacker = Unpacker::new(dictionary).expect("an unpacker");
    let mut found = b"left from before".to_vec();
    assert_eq!(packed.len(), rows.len());
    // Each alone, in any order.
    for n in (0..rows.len()).rev() {
        unpacker.row(&packed, n, &mut found).expect("a row");
        assert_eq!(found, rows[n], "row {n}");
    }
    packed
}

#[test]
fn rows_are_read_as_they_were_with_and_without_a_dictionary() {
    let rows = alike(1000);
    let dictionary = Dictionary::train(&rows, 2048, 3).expect("a dictionary");
    let alone = assert_reads_back(&rows, None).stored_bytes();
    let with = assert_reads_back(&rows, Some(&dictionary)).stored_bytes();
    let bytes = rows.iter().map(Vec::len).sum::<usize>() as u64;
    assert!(!dictionary.bytes().is_empty() && dictionary.bytes().len() <= 2048);
    assert!(with + (dictionary.bytes().len() as u64) < bytes / 2 && with < alone, "{with} {alone} {bytes}");
}

#[test]
fn rows_that_do_not_become_smaller_stay_as_they_are() {
    let mut random = pantile_testkit::Random::new(1, 1);
    let noise = |len: usize, random: &mut pantile_testkit::Random| -> Vec<u8> {
        (0..len).map(|_| random.word() as u8).collect()
    };
    let mut rows: Vec<_> = (0..200).map(|len| noise(len, &mut random)).collect();
    let bytes = rows.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!(assert_reads_back(&rows, None).stored_bytes(), bytes + 200 * ENTRY_BYTES);
    // Beside them, one that becomes smaller.
    rows.insert(7, vec![b'x'; 500]);
    let stored = assert_reads_back(&rows, None).stored_bytes();
    assert!(stored < bytes + 201 * ENTRY_BYTES + 50, "{stored}");
    assert!(assert_reads_back(&[], None).is_empty());
}

#[test]
fn a_dictionary_is_not_learned_from_too_few_rows() {
    assert!(Dictionary::train(&alike(2), 2048, 3).is_none());
}

#[test]
fn another_dictionary_does_not_read_the_rows() {
    let rows = alike(1000);
    let dictionary = Dictionary::train(&rows, 2048, 3).expect("a dictionary");
    let packed = Packer::new(Some(&dictionary), 3).and_then(|mut packer| packer.pack(&rows)).expect("packed");
    let mut unpacker = Unpacker::new(None).expect("an unpacker");
    let mut found = Vec::new();
    let is_read = (0..rows.len()).any(|n| unpacker.row(&packed, n, &mut found).is_ok() && found == rows[n]);
    assert!(!is_read);
}
