//! A data file without its zeros.
//!
//! A number of 8 bytes, the length of the data file, and then records: offset
//! (8 bytes), length (4 bytes), and a byte. The byte is 0 if that many bytes
//! follow, or 1 if one byte follows that is repeated. Little-endian.

use std::ops::Range;

/// Shorter gaps and repetitions are not worth a record.
const LEAST: usize = 32;

/// A whole data file, and which of its bytes are not zero.
pub struct ImageFile {
    pub bytes: Vec<u8>,
    pub ranges: Vec<Range<usize>>,
}

pub fn encode(data: &[u8]) -> Vec<u8> {
    let mut out = (data.len() as u64).to_le_bytes().to_vec();
    let mut at = 0;
    let mut literal = 0..0;
    while at < data.len() {
        let same = data[at..].iter().take_while(|b| **b == data[at]).count();
        if same < LEAST {
            literal.end = at + same;
        } else {
            put(&mut out, literal.start, 0, &data[literal.clone()], literal.len());
            if data[at] != 0 {
                put(&mut out, at, 1, &data[at..=at], same);
            }
            literal = at + same..at + same;
        }
        at += same;
    }
    put(&mut out, literal.start, 0, &data[literal.clone()], literal.len());
    out
}

fn put(out: &mut Vec<u8>, offset: usize, kind: u8, bytes: &[u8], len: usize) {
    if len > 0 {
        out.extend_from_slice(&(offset as u64).to_le_bytes());
        out.extend_from_slice(&(len as u32).to_le_bytes());
        out.push(kind);
        out.extend_from_slice(bytes);
    }
}

pub fn decode(mut stored: &[u8]) -> ImageFile {
    let mut take = |n: usize| {
        let (taken, rest) = stored.split_at_checked(n)?;
        stored = rest;
        Some(taken)
    };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b));
    let len = number(take(8).expect("a length"));
    let mut file = ImageFile { bytes: vec![0; len], ranges: Vec::new() };
    while let Some(offset) = take(8).map(number) {
        let len = number(take(4).expect("a length"));
        let range = offset..offset + len;
        if take(1).expect("a kind") == [0] {
            file.bytes[range.clone()].copy_from_slice(take(len).expect("bytes"));
        } else {
            file.bytes[range.clone()].fill(take(1).expect("a byte")[0]);
        }
        file.ranges.push(range);
    }
    file
}
