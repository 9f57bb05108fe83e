//! Damaged and forged files made from a few bytes: what the fuzzer mutates,
//! and what its corpus holds (`fuzz/`).
//!
//! The bytes are operations on a sound data file. Each begins with a byte that
//! says which; `part` is 2 bytes, the number of a part of the file:
//!
//! | byte modulo 8 | then | does |
//! | --- | --- | --- |
//! | 0 to 4 | part, count, count times (offset of 2 bytes, value) | sets bytes of the part and makes its checksum fit |
//! | 5 | the same | sets bytes, the checksum stays |
//! | 6 | part, part | copies a sector of 512 bytes from one to the other |
//! | 7 | part | cuts the file off there |

use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::layout::{Part, parts};
use super::look;
use crate::format::image_file::decode;
use pantile_testkit::ScratchDir;

const STORED: &[u8] = include_bytes!("../format/data/format-3.image");

const SECTOR: usize = 512;

/// A directory with a data file that is forged and healed again and again.
pub struct Forge {
    dir: ScratchDir,
    file: File,
    sound: Vec<u8>,
    parts: Vec<Part>,
    now: Vec<u8>,
    changed: Vec<Range<usize>>,
}

/// The rest of the operations.
struct Tape<'t>(&'t [u8]);

impl Tape<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<usize> {
        Some(usize::from(self.byte()?) | usize::from(self.byte()?) << 8)
    }
}

impl Forge {
    pub fn new() -> Self {
        let sound = decode(STORED).bytes;
        let dir = ScratchDir::new();
        let path = dir.path().join("pantile.data");
        fs::write(&path, &sound).expect("written");
        let file = OpenOptions::new().write(true).open(path).expect("opened");
        Self { dir, file, parts: parts(&sound), now: sound.clone(), sound, changed: Vec::new() }
    }

    /// Does the operations and then reads the file in every way. Returns
    /// whether the file can be read.
    pub fn run(&mut self, operations: &[u8]) -> bool {
        let mut tape = Tape(operations);
        let mut len = self.sound.len();
        while self.operate(&mut tape, &mut len).is_some() {}
        self.file.set_len(len as u64).expect("cut off");
        for at in &self.changed {
            let at = at.start.min(len)..at.end.min(len);
            self.file.write_all_at(&self.now[at.clone()], at.start as u64).expect("written");
        }
        let can_be_read = look::at_file(self.dir.path());
        self.heal(len);
        can_be_read
    }

    fn operate(&mut self, tape: &mut Tape<'_>, len: &mut usize) -> Option<()> {
        let what = tape.byte()? % 8;
        let part = tape.number()? % self.parts.len();
        let bytes = self.parts[part].bytes.clone();
        match what {
            0..6 => {
                for _ in 0..tape.byte()? % 16 {
                    let at = bytes.start + tape.number()? % bytes.len();
                    self.now[at] = tape.byte()?;
                }
                if what < 5 {
                    self.parts[part].seal(&mut self.now);
                }
                self.changed.push(bytes);
            }
            6 => {
                let to = self.parts[tape.number()? % self.parts.len()].bytes.start / SECTOR * SECTOR;
                let from = bytes.start / SECTOR * SECTOR;
                self.now.copy_within(from..from + SECTOR, to);
                self.changed.push(to..to + SECTOR);
            }
            _ => *len = bytes.start,
        }
        Some(())
    }

    fn heal(&mut self, len: usize) {
        self.file.set_len(self.sound.len() as u64).expect("grown");
        if len < self.sound.len() {
            self.file.write_all_at(&self.sound[len..], len as u64).expect("written");
        }
        for at in self.changed.drain(..) {
            self.now[at.clone()].copy_from_slice(&self.sound[at.clone()]);
            self.file.write_all_at(&self.sound[at.clone()], at.start as u64).expect("written");
        }
    }
}
