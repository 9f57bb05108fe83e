//! Writing an image, page after page.

use std::io::{self, Write};

use pantile_media::Beside;

use crate::image::PAGE_WORDS;
use crate::image::blocks::{self, ImageBase};
use crate::image::read::{Image, Page};
use crate::image::{ImageName, MAGIC, Section, VERSION, seed_at, seed_of, sum, to_bytes};
use crate::store::Store;

/// An image that is being written: sections one after the other, each of any
/// number of pages.
pub struct ImageWriter<'w> {
    out: &'w mut dyn Write,
    identity: u64,
    at: u64,
    sections: Vec<(Section, Vec<Page>)>,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for ImageWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageWriter").field("at", &self.at).finish_non_exhaustive()
    }
}

impl<'w> ImageWriter<'w> {
    fn new(out: &'w mut dyn Write, identity: u64) -> Self {
        Self { out, identity, at: 0, sections: Vec::new(), bytes: Vec::new() }
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.at
    }

    /// Begins a section.
    pub fn begin(&mut self, section: Section) {
        self.sections.push((section, Vec::new()));
    }

    /// Adds a page to the section.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// If there are more words than a page has, or no section was begun.
    pub fn page(&mut self, words: &[u64]) -> io::Result<()> {
        assert!(words.len() <= PAGE_WORDS, "a page has at most {PAGE_WORDS} words");
        to_bytes(words, &mut self.bytes);
        let sum = sum(seed_at(seed_of(self.identity), self.at), &self.bytes);
        let (_, pages) = self.sections.last_mut().expect("a section was begun");
        pages.push(Page { offset: self.at, words: words.len() as u64, sum });
        self.put()
    }

    /// Copies a section from another image.
    ///
    /// # Errors
    /// As [`ImageWriter::page`], and if the section cannot be read.
    pub fn copy(&mut self, from: &Image, section: Section) -> io::Result<()> {
        self.begin(section);
        let mut words = Vec::new();
        for n in 0..from.pages(section) {
            from.read(section, n, &mut words).map_err(|error| io::Error::other(error.to_string()))?;
            self.page(&words)?;
        }
        Ok(())
    }

    fn put(&mut self) -> io::Result<()> {
        self.at += self.bytes.len() as u64;
        self.out.write_all(&self.bytes)
    }

    /// Writes the directory and the trailer. Returns the image's name.
    fn finish(mut self, highest: u64, blocks: u64) -> io::Result<ImageName> {
        let mut words = vec![VERSION, self.identity, highest, blocks, self.sections.len() as u64];
        for (section, pages) in &self.sections {
            words.push(u64::from(section.kind) | u64::from(section.table) << 32);
            words.push(u64::from(section.index) | u64::from(section.part) << 32);
            words.push(pages.len() as u64);
            words.extend(pages.iter().flat_map(|page| [page.offset, page.words, page.sum]));
        }
        to_bytes(&words, &mut self.bytes);
        let (at, name) = (self.at, ImageName::of(self.identity, &self.bytes));
        self.put()?;
        to_bytes(&[MAGIC, at, words.len() as u64, name.get()], &mut self.bytes);
        self.put()?;
        Ok(name)
    }
}

impl Store {
    /// Writes an image of the blocks and of what `more` adds. A state record can
    /// name it whose sample is taken afterwards ([`Store::name_image`]).
    /// `highest` is then at or above every timestamp that the image has. Without a
    /// base, nothing changes before that record.
    ///
    /// # Errors
    /// What `more` returns, and what the system says. There is no image then.
    pub fn write_image(
        &self,
        beside: &dyn Beside,
        base: Option<&ImageBase>,
        highest: &dyn Fn() -> u64,
        more: &mut dyn FnMut(&mut ImageWriter<'_>) -> io::Result<()>,
    ) -> io::Result<ImageName> {
        let mut name = Err(io::Error::other("nothing was written"));
        beside.write(&mut |out| {
            let mut writer = ImageWriter::new(out, self.identity);
            more(&mut writer)?;
            writer.begin(Section::BLOCKS);
            let pages = blocks::encode(self, base);
            pages.iter().try_for_each(|page| writer.page(page))?;
            name = Ok(writer.finish(highest(), blocks::sum_of(self.identity, &pages))?);
            Ok(())
        })?;
        name
    }

    /// Whether the blocks are as the image has them. All that it holds is then
    /// as it was, since every change leaves a content or a superseded bit.
    pub fn is_as_in(&self, image: &Image) -> bool {
        blocks::sum_of(self.identity, &blocks::encode(self, None)) == image.blocks_sum()
    }
}
