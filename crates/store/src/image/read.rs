//! Reading an image.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pantile_base::control::{Control, is_removed};
use pantile_media::{Beside, BesideFile};

use crate::image::{HEAD_WORDS, ImageName, MAGIC, PAGE_WORDS, Section, TRAILER_WORDS, VERSION};
use crate::image::{seed_at, seed_of, sum, to_words};
use crate::store::Store;

/// Where a page is, and its checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub offset: u64,
    pub words: u64,
    pub sum: u64,
}

/// A page that cannot be read, or whose checksum does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadPage {
    /// Its offset in the file.
    pub offset: u64,
}

impl fmt::Display for BadPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the index image cannot be read at offset {}", self.offset)
    }
}

impl std::error::Error for BadPage {}

/// An image that a state record has named. What it is asked for is what was
/// written, or an error.
#[derive(Debug)]
pub struct Image {
    file: Arc<dyn BesideFile>,
    seed: u64,
    name: ImageName,
    highest: u64,
    blocks_sum: u64,
    sections: BTreeMap<Section, Vec<Page>>,
}

impl Image {
    /// Opens the image with this name; any that is whole if there is no name.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(
        file: Arc<dyn BesideFile>,
        identity: u64,
        name: Option<ImageName>,
    ) -> Result<Self, &'static str> {
        const SHORT: &str = "it is too short";
        let trailer = TRAILER_WORDS as u64 * 8;
        let end = file.len().checked_sub(trailer).ok_or(SHORT)?;
        let (_, words) = read_words(&*file, end, trailer)?;
        let [magic, at, len, own_name] = words[..] else { return Err(SHORT) };
        if magic != MAGIC || len.checked_mul(8).and_then(|len| len.checked_add(at)) != Some(end) {
            return Err("it does not end as images do");
        }
        if name.is_some_and(|name| name.get() != own_name) {
            return Err("it is not the one that the last state record names");
        }
        let (bytes, words) = read_words(&*file, at, len * 8)?;
        if ImageName::of(identity, &bytes).get() != own_name {
            return Err("the checksum of its directory does not fit");
        }
        let (head, mut rest) = (words.get(..HEAD_WORDS).ok_or(SHORT)?, words[HEAD_WORDS..].iter().copied());
        let &[version, of, highest, blocks_sum, count] = head else { return Err(SHORT) };
        if version != VERSION || of != identity {
            return Err("it is of another format or database");
        }
        let sections = sections(&mut rest, count).ok_or(SHORT)?;
        let name = ImageName::new(own_name).ok_or(SHORT)?;
        Ok(Self { file, seed: seed_of(identity), name, highest, blocks_sum, sections })
    }

    /// A checksum of bytes, for those that note what a section is of.
    pub fn sum_of(bytes: &[u8]) -> u64 {
        sum(0, bytes)
    }

    /// Its name.
    pub fn name(&self) -> ImageName {
        self.name
    }

    /// No timestamp in it is higher.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.len()
    }

    pub(crate) fn blocks_sum(&self) -> u64 {
        self.blocks_sum
    }

    /// Its sections.
    pub fn sections(&self) -> impl Iterator<Item = Section> {
        self.sections.keys().copied()
    }

    /// Whether it has a section.
    pub fn has(&self, section: Section) -> bool {
        self.sections.contains_key(&section)
    }

    /// Number of pages of a section; 0 if there is no such section.
    pub fn pages(&self, section: Section) -> usize {
        self.sections.get(&section).map_or(0, Vec::len)
    }

    /// Reads and verifies a page.
    ///
    /// # Errors
    /// [`BadPage`]; `words` is of no use then.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn read(&self, section: Section, page: usize, words: &mut Vec<u64>) -> Result<(), BadPage> {
        let Page { offset, words: len, sum: expected } = self.sections[&section][page];
        let bad = BadPage { offset };
        if len as usize > PAGE_WORDS {
            return Err(bad);
        }
        let mut bytes = [0; PAGE_WORDS * 8];
        let bytes = &mut bytes[..len as usize * 8];
        self.file.read_at(offset, bytes).map_err(|_| bad)?;
        if sum(seed_at(self.seed, offset), bytes) != expected && !is_removed(Control::ImageChecksum) {
            return Err(bad);
        }
        to_words(bytes, words);
        Ok(())
    }

    /// Reads and verifies all pages. Returns the number of them.
    ///
    /// # Errors
    /// The first [`BadPage`].
    pub fn verify(&self) -> Result<u64, BadPage> {
        let mut words = Vec::new();
        let mut pages = 0;
        for (section, list) in &self.sections {
            for page in 0..list.len() {
                self.read(*section, page, &mut words)?;
                pages += 1;
            }
        }
        Ok(pages)
    }
}

fn read_words(file: &dyn BesideFile, offset: u64, len: u64) -> Result<(Vec<u8>, Vec<u64>), &'static str> {
    let mut bytes = vec![0; len as usize];
    file.read_at(offset, &mut bytes).map_err(|_| "it cannot be read")?;
    let mut words = Vec::new();
    to_words(&bytes, &mut words);
    Ok((bytes, words))
}

fn sections(words: &mut impl Iterator<Item = u64>, count: u64) -> Option<BTreeMap<Section, Vec<Page>>> {
    let mut sections = BTreeMap::new();
    for _ in 0..count {
        let (first, second, pages) = (words.next()?, words.next()?, words.next()?);
        let section = Section {
            kind: first as u32,
            table: (first >> 32) as u32,
            index: second as u32,
            part: (second >> 32) as u32,
        };
        let mut list = Vec::new();
        for _ in 0..pages {
            list.push(Page { offset: words.next()?, words: words.next()?, sum: words.next()? });
        }
        sections.insert(section, list);
    }
    Some(sections)
}

impl Store {
    /// The image that the state record in force names, if it can be read.
    pub fn named_image(&self, beside: &dyn Beside) -> Option<Image> {
        let name = self.state.lock().image;
        if name.is_none() && !is_removed(Control::ImageName) {
            return None;
        }
        let name = name.filter(|_| !is_removed(Control::ImageName));
        let [file, successor] = beside.open();
        let open = |file: Option<_>| Image::open(file?, self.identity, name).ok();
        if let Some(image) = open(successor) {
            // If that fails, the next opening finds it where it is.
            let _ = beside.adopt();
            return Some(image);
        }
        open(file)
    }
}
