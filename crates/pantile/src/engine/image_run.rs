//! The keys of an index in an image: sorted runs of pages, and above them the
//! first keys of the pages below, up to a single page.

use std::io;
use std::iter::Peekable;
use std::sync::Arc;

use pantile_base::{TableId, TupleId};
use pantile_index::{Index as Tree, KeyForm, NodeArena, Parts};
use pantile_store::{BadPage, Image, ImageWriter, Section};

use crate::engine::changed::Changed;
use crate::engine::image_page::{KeysOfPage, PageOfKeys};
use crate::engine::sorted_keys::{Merge, SortedKeys};

/// The kind of the sections that hold runs. Their part is the level.
const RUN: u32 = 4;

/// The number of the primary index among a table's indexes.
pub(crate) const PRIMARY: u32 = 0;

/// How full nodes are made.
const FILL: f64 = 0.9;

/// How many tuples ahead is fetched whether they have changed.
const AHEAD: usize = 32;

/// Parts of a run per thread that loads it.
const PARTS_PER_THREAD: usize = 4;

fn section(table: TableId, index: u32, level: u32) -> Section {
    Section { kind: RUN, table: table.0, index, part: level }
}

/// Writes the run of an index, in order of keys.
pub(crate) struct RunWriter<'a, 'w> {
    writer: &'a mut ImageWriter<'w>,
    table: TableId,
    index: u32,
    level: u32,
    page: PageOfKeys,
    /// The first key of each page.
    firsts: Vec<Vec<u64>>,
}

impl<'a, 'w> RunWriter<'a, 'w> {
    pub fn new(writer: &'a mut ImageWriter<'w>, table: TableId, index: u32) -> Self {
        writer.begin(section(table, index, 0));
        Self { writer, table, index, level: 0, page: PageOfKeys::default(), firsts: Vec::new() }
    }

    /// What it writes with.
    pub fn writer(&self) -> &ImageWriter<'w> {
        self.writer
    }

    pub fn push(&mut self, key: &[u64], value: u64) -> io::Result<()> {
        if !self.page.has_room_for(key) {
            self.writer.page(self.page.take())?;
        }
        if self.page.is_empty() {
            self.firsts.push(key.to_vec());
        }
        self.page.push(key, value);
        Ok(())
    }

    /// Writes the rest, and the levels above.
    pub fn finish(mut self) -> io::Result<()> {
        loop {
            if !self.page.is_empty() {
                self.writer.page(self.page.take())?;
            }
            if self.firsts.len() <= 1 {
                return Ok(());
            }
            self.level += 1;
            self.writer.begin(section(self.table, self.index, self.level));
            for (n, first) in (0..).zip(std::mem::take(&mut self.firsts)) {
                self.push(&first, n)?;
            }
        }
    }
}

/// Copies the run of an index from another image.
pub(crate) fn copy_run(
    writer: &mut ImageWriter<'_>,
    from: &Image,
    table: TableId,
    index: u32,
) -> io::Result<()> {
    let levels = (0..).map(|level| section(table, index, level)).take_while(|level| from.has(*level));
    levels.into_iter().try_for_each(|level| writer.copy(from, level))
}

/// The run of an index in an image.
#[derive(Clone)]
pub(crate) struct StoredRun {
    image: Arc<Image>,
    table: TableId,
    index: u32,
}

impl StoredRun {
    /// `None` if the image has no run of this index.
    pub fn new(image: &Arc<Image>, table: TableId, index: u32) -> Option<Self> {
        let has = image.has(section(table, index, 0));
        has.then(|| Self { image: Arc::clone(image), table, index })
    }

    fn level(&self, level: u32) -> Section {
        section(self.table, self.index, level)
    }

    fn top(&self) -> u32 {
        let above = (1..).take_while(|level| self.image.has(self.level(*level)));
        above.last().unwrap_or(0)
    }

    /// The value of a key.
    pub fn get(&self, key: &[u64]) -> Result<Option<u64>, BadPage> {
        let (mut page, mut words, mut keys) = (0, Vec::new(), KeysOfPage::default());
        for level in (0..=self.top()).rev() {
            if page >= self.image.pages(self.level(level)) {
                return Ok(None);
            }
            self.image.read(self.level(level), page, &mut words)?;
            if !keys.read(&words) {
                return Ok(None);
            }
            let Some(last) = keys.upto(key).checked_sub(1) else { return Ok(None) };
            if level == 0 {
                return Ok((keys.key(last) == key).then(|| keys.values[last]));
            }
            page = keys.values[last] as usize;
        }
        Ok(None)
    }

    /// The tree of the run, brought up to date; `None` if it cannot be read, or if it no longer `goes_on`.
    pub fn load(
        &self,
        wanted: KeyForm,
        arena: &Arc<NodeArena>,
        threads: usize,
        update: Option<Update<'_>>,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<Tree> {
        let pages = self.image.pages(self.level(0));
        let count = pages.min(threads * PARTS_PER_THREAD);
        let (mut page, mut keys) = (Vec::new(), KeysOfPage::default());
        let mut firsts = Vec::new();
        let starts: Vec<usize> = (0..count).map(|part| part * pages / count).collect();
        for &start in &starts {
            self.image.read(self.level(0), start, &mut page).ok()?;
            let is_page = keys.read(&page) && keys.len() > 0;
            firsts.push(is_page.then(|| keys.key(0).to_vec())?);
        }
        if let (Some(update), Some(first)) = (&update, firsts.first_mut()) {
            // New keys may come before those of the image.
            let lowest = update.fresh.iter().filter_map(|keys| keys.first()).min();
            if let Some(lowest) = lowest.filter(|lowest| *lowest < &first[..]) {
                *first = lowest.to_vec();
            }
        }
        if let (Some(update), 0) = (&update, pages) {
            return Tree::bulk_load(wanted, arena, Merge::new(update.fresh.iter().copied()), FILL).ok();
        }
        let parts = PartsOfRun { run: self, wanted, starts, end: pages, firsts, update, goes_on };
        Tree::bulk_load_parts(wanted, arena, &parts, threads, FILL)
    }
}

/// What a run is brought up to date with.
pub(crate) struct Update<'u> {
    /// The tuples whose entries in the run do not count.
    pub changed: &'u Changed,
    /// Their entries.
    pub fresh: Vec<&'u SortedKeys>,
}

impl Update<'_> {
    /// Whether each of some tuples has changed.
    fn are_changed<'t>(&'t self, tuples: &'t [u64]) -> impl Iterator<Item = bool> + 't {
        tuples.iter().enumerate().map(|(n, &tuple)| {
            if let Some(&ahead) = tuples.get(n + AHEAD) {
                self.changed.prefetch(TupleId(ahead));
            }
            self.changed.contains(TupleId(tuple))
        })
    }

    /// The entries whose keys are at or above `from`, in order.
    fn fresh_from(&self, from: &[u64]) -> Peekable<Merge<'_>> {
        Merge::from(self.fresh.iter().copied(), from).peekable()
    }
}

/// A run in parts of whole pages.
struct PartsOfRun<'r> {
    run: &'r StoredRun,
    /// What its keys must be.
    wanted: KeyForm,
    /// The first page of each part.
    starts: Vec<usize>,
    end: usize,
    firsts: Vec<Vec<u64>>,
    update: Option<Update<'r>>,
    goes_on: &'r (dyn Fn() -> bool + Sync),
}

impl Parts for PartsOfRun<'_> {
    fn count(&self) -> usize {
        self.starts.len()
    }

    fn first(&self, part: usize) -> &[u64] {
        &self.firsts[part]
    }

    fn each(&self, part: usize, push: &mut impl FnMut(&[u64], u64) -> bool) -> bool {
        let end = self.starts.get(part + 1).copied().unwrap_or(self.end);
        let (mut words, mut keys) = (Vec::new(), KeysOfPage::default());
        let mut fresh = self.update.as_ref().map(|update| update.fresh_from(&self.firsts[part]));
        let mut changed = Vec::new();
        for page in self.starts[part]..end {
            let is_read =
                (self.goes_on)() && self.run.image.read(self.run.level(0), page, &mut words).is_ok();
            if !is_read || !keys.read(&words) {
                return false;
            }
            // Before anything else, so that the cache misses of many overlap.
            changed.clear();
            match &self.update {
                Some(update) => changed.extend(update.are_changed(&keys.values)),
                None => changed.resize(keys.len(), false),
            }
            let mut one = |n: usize| {
                let (key, tuple) = (keys.key(n), keys.values[n]);
                while let Some((next, tuple)) = fresh.as_mut().and_then(|f| f.next_if(|f| f.0 < key)) {
                    if !push(next, tuple) {
                        return false;
                    }
                }
                self.wanted.has(key, tuple) && (changed[n] || push(key, tuple))
            };
            if !(0..keys.len()).all(&mut one) {
                return false;
            }
        }
        let high = self.firsts.get(part + 1);
        while let Some((key, tuple)) =
            fresh.as_mut().and_then(|f| f.next_if(|f| high.is_none_or(|high| f.0 < &high[..])))
        {
            if !push(key, tuple) {
                return false;
            }
        }
        true
    }
}
