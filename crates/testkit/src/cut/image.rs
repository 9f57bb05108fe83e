//! The bytes of a medium, without its pages of zeros.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pantile_base::limits::GROWTH_BYTES;

use crate::Random;

pub(crate) const PAGE: u64 = 4096;

/// Bytes that are written to the first page of a chunk at a time.
const WRITTEN_AT_ONCE: usize = 32;
const SECTOR: usize = 512;

type Page = [u8; PAGE as usize];

/// What a medium holds at one moment. Clones share pages.
#[derive(Clone, Default, Debug)]
pub struct Image {
    len: u64,
    pages: BTreeMap<u64, Arc<Page>>,
    beside: Vec<Arc<Vec<u8>>>,
}

impl Image {
    /// The image of a medium with these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut image = Self::default();
        for (n, page) in (0..).zip(bytes.chunks(PAGE as usize)) {
            if page.iter().any(|byte| *byte != 0) {
                image.store(n * PAGE, page);
            }
        }
        image.grow(bytes.len() as u64);
        image
    }

    /// Bytes of the medium, in whole chunks.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the medium is new.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file beside the medium and its successor, as far as they are there.
    pub fn beside(&self) -> &[Arc<Vec<u8>>] {
        &self.beside
    }

    /// Puts files beside the medium in place of those that are there.
    pub fn set_beside(&mut self, files: Vec<Arc<Vec<u8>>>) {
        self.beside = files;
    }

    pub(crate) fn grow(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    /// Makes the medium shorter. What is beyond reads as zero when it has grown
    /// again.
    pub(crate) fn cut(&mut self, len: u64) {
        self.len = self.len.min(len);
        self.pages.split_off(&(len / PAGE));
    }

    /// Stores bytes that lie in one page. Grows the medium to hold them.
    pub(crate) fn store(&mut self, offset: u64, bytes: &[u8]) {
        self.grow((offset + 1).next_multiple_of(GROWTH_BYTES));
        let page = self.pages.entry(offset / PAGE).or_insert_with(|| Arc::new([0; PAGE as usize]));
        let at = (offset % PAGE) as usize;
        Arc::make_mut(page)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Zeroes a range. It stays part of the medium.
    pub fn clear(&mut self, range: Range<u64>) {
        let pages: Vec<u64> =
            self.pages.range(range.start / PAGE..range.end.div_ceil(PAGE)).map(|(n, _)| *n).collect();
        for number in pages {
            let (from, to) = (range.start.max(number * PAGE), range.end.min((number + 1) * PAGE));
            if to - from == PAGE {
                self.pages.remove(&number);
            } else if let Some(page) = self.pages.get_mut(&number) {
                let start = number * PAGE;
                Arc::make_mut(page)[(from - start) as usize..(to - start) as usize].fill(0);
            }
        }
    }

    /// Flips a bit somewhere outside pages of zeros, and returns which.
    pub fn flip(&mut self, random: &mut Random) -> u64 {
        // Half the flips hit the first page of a chunk, where few bytes matter
        // much.
        let in_chunk_page = random.one_in(2);
        let is_chosen = |number: u64| !in_chunk_page || super::log::in_chunk_page(number * PAGE);
        let pages = self.pages.keys().filter(|number| is_chosen(**number)).count() as u64;
        let mut chosen = self.pages.iter_mut().filter(|(number, _)| is_chosen(**number));
        let Some((&number, page)) = chosen.nth(random.below(pages.max(1)) as usize) else {
            return 0;
        };
        // Most of such a page is zeros.
        let is_written = |at: &usize| page[*at..*at + WRITTEN_AT_ONCE].iter().any(|byte| *byte != 0);
        let written: Vec<usize> = (0..PAGE as usize).step_by(WRITTEN_AT_ONCE).filter(is_written).collect();
        let bit = match in_chunk_page && !written.is_empty() && !random.one_in(4) {
            true => (*random.pick(&written) * 8) as u64 + random.below(WRITTEN_AT_ONCE as u64 * 8),
            false => random.below(PAGE * 8),
        };
        Arc::make_mut(page)[bit as usize / 8] ^= 1 << (bit % 8);
        number * PAGE * 8 + bit
    }

    /// Zeroes a sector of chunk headers and descriptors that is not zero yet, and
    /// returns its offset, or `None` if there is none.
    pub fn lose_lines(&mut self, random: &mut Random) -> Option<u64> {
        let is_written =
            |number: &u64, at: &usize| self.pages[number][*at..*at + SECTOR].iter().any(|b| *b != 0);
        let pages = self.pages.keys().filter(|number| super::log::in_lines(**number * PAGE));
        let sectors: Vec<(u64, usize)> = pages
            .flat_map(|number| (0..PAGE as usize).step_by(SECTOR).map(|at| (*number, at)))
            .filter(|(number, at)| is_written(number, at))
            .collect();
        let (number, at) = sectors.get(random.below(sectors.len().max(1) as u64) as usize)?;
        let start = number * PAGE + *at as u64;
        self.clear(start..start + SECTOR as u64);
        Some(start)
    }

    /// The pages that may be nonzero, with their offsets.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u64, &Page)> {
        self.pages.iter().map(|(number, page)| (number * PAGE, &**page))
    }

    /// The numbers of the pages in a range that may be nonzero.
    pub(crate) fn pages_in(&self, range: &Range<u64>) -> Vec<u64> {
        self.pages.range(range.start / PAGE..range.end / PAGE).map(|(number, _)| *number).collect()
    }
}
