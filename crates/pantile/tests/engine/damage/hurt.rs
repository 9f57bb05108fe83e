//! Ways in which a file is damaged.

use std::ops::Range;

use super::layout::{HEAD, What};
use super::subject::Subject;
use pantile_testkit::Random;

/// Bytes that have changed.
#[derive(Clone, Debug)]
pub struct Hurt {
    pub name: String,
    /// Offsets, and the bytes that are there now.
    pub edits: Vec<(usize, Vec<u8>)>,
    /// The present length of the file.
    pub len: usize,
}

impl Hurt {
    fn new(subject: &Subject, name: String, edits: Vec<(usize, Vec<u8>)>) -> Self {
        Self { name, edits, len: subject.data.len() }
    }

    pub fn bit(subject: &Subject, at: usize, bit: u8) -> Self {
        Self::new(subject, format!("bit {bit} of byte {at}"), vec![(at, vec![subject.data[at] ^ (1 << bit)])])
    }

    pub fn over(subject: &Subject, at: usize, bytes: Vec<u8>) -> Self {
        Self::new(subject, format!("{} bytes at {at}", bytes.len()), vec![(at, bytes)])
    }

    fn zeroed(subject: &Subject, at: usize, len: usize) -> Self {
        Self::new(subject, format!("{len} zeros at {at}"), vec![(at, vec![0; len])])
    }

    fn copied(subject: &Subject, from: usize, to: usize, len: usize) -> Self {
        let bytes = subject.data[from..from + len].to_vec();
        Self::new(subject, format!("{len} bytes at {to} from {from}"), vec![(to, bytes)])
    }

    fn swapped(subject: &Subject, a: usize, b: usize, len: usize) -> Self {
        let bytes = |at: usize| subject.data[at..at + len].to_vec();
        Self::new(subject, format!("{len} bytes at {a} and {b} swapped"), vec![(a, bytes(b)), (b, bytes(a))])
    }

    /// A file with some bytes inserted before it.
    fn shifted(subject: &Subject, by: usize) -> Self {
        let mut bytes = vec![0x5a; by];
        bytes.extend_from_slice(&subject.data[..subject.data.len() - by]);
        Self::new(subject, format!("{by} bytes before everything"), vec![(0, bytes)])
    }

    fn truncated(len: usize) -> Self {
        Self { name: format!("truncated to {len}"), edits: Vec::new(), len }
    }

    /// Whether it has changed any of these bytes.
    pub fn touches(&self, subject: &Subject, bytes: &Range<usize>) -> bool {
        let changed = |(at, new): &(usize, Vec<u8>)| {
            let (from, to) = (bytes.start.max(*at), bytes.end.min(at + new.len()));
            from < to && subject.data[from..to] != new[from - at..to - at]
        };
        bytes.end > self.len || self.edits.iter().any(changed)
    }
}

/// A bit of something that has a meaning, each kind with equal chance, or from
/// time to time any bit.
pub fn any_bit(subject: &Subject, random: &mut Random) -> Hurt {
    let bit = random.below(8) as u8;
    if random.below(8) == 0 {
        // Near something that has a meaning, or most hits would be in long
        // stretches of zeros.
        let part = &subject.parts[random.below(subject.parts.len() as u64) as usize];
        let at = part.bytes.start + random.below(4096) as usize;
        return Hurt::bit(subject, at.min(subject.data.len() - 1), bit);
    }
    let kinds = [
        What::Superblock,
        What::Record,
        What::ChunkHeader,
        What::Descriptor,
        What::Copy,
        What::FrozenFlag,
        What::Content,
        What::Content,
        What::Content,
        What::Content,
    ];
    loop {
        let kind = kinds[random.below(kinds.len() as u64) as usize];
        let parts: Vec<_> = subject.parts.iter().filter(|part| part.what == kind).collect();
        if !parts.is_empty() {
            let bytes = &parts[random.below(parts.len() as u64) as usize].bytes;
            return Hurt::bit(subject, bytes.start + random.below(bytes.len() as u64) as usize, bit);
        }
    }
}

/// A part with changed bytes and a checksum that fits nevertheless, as only a
/// bug or a forger leaves it.
pub fn any_forgery(subject: &Subject, random: &mut Random) -> Hurt {
    let mut bytes = subject.data.clone();
    let mut edits = Vec::new();
    let mut name = "forged".to_owned();
    for _ in 0..1 + random.below(3) {
        let kind = &subject.parts[random.below(subject.parts.len() as u64) as usize].what;
        let parts: Vec<_> = subject.parts.iter().filter(|part| part.what == *kind).collect();
        let part = parts[random.below(parts.len() as u64) as usize];
        for _ in 0..1 + random.below(4) {
            let header = random.below(2) == 0;
            let len = if header { part.bytes.len().min(40) } else { part.bytes.len() };
            let at = part.bytes.start + random.below(len as u64) as usize;
            bytes[at] = [0, 1, 0x7f, 0xff, random.below(256) as u8][random.below(5) as usize];
        }
        part.seal(&mut bytes);
        name = format!("{name} {:?} at {:?}", part.what, part.bytes);
        edits.push((part.bytes.start, bytes[part.bytes.clone()].to_vec()));
    }
    Hurt::new(subject, name, edits)
}

/// What devices and people do to files, besides flipping bits.
pub fn any_other(subject: &Subject, random: &mut Random) -> Hurt {
    let mut pick = |align: usize| {
        let part = &subject.parts[random.below(subject.parts.len() as u64) as usize];
        (part.bytes.start + random.below(part.bytes.len() as u64) as usize) / align * align
    };
    let chunk = pick(HEAD);
    let kind = pick(1) % 11;
    match kind {
        0 => Hurt::zeroed(subject, pick(512), 512),
        1 => Hurt::zeroed(subject, pick(4096), 4096),
        2 => Hurt::copied(subject, pick(512), pick(512), 512),
        3 => Hurt::copied(subject, pick(4096), pick(4096), 4096),
        4 => Hurt::copied(subject, chunk, pick(HEAD), HEAD),
        5 => Hurt::swapped(subject, pick(4096), pick(4096), 4096),
        6 => Hurt::swapped(subject, pick(512), pick(512), 512),
        7 => Hurt::swapped(subject, chunk, pick(HEAD), HEAD),
        8 => Hurt::truncated(pick(HEAD)),
        9 => Hurt::truncated(pick(1)),
        _ => Hurt::shifted(subject, 1 + pick(1) % 9000),
    }
}
