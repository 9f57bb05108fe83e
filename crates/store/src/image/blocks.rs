//! The blocks in use, as an image has them.

use pantile_base::control::{Control, is_removed};

use crate::block::{Block, BlockId, BlockTimes};
use crate::expectation::Expectation;
use crate::image::read::Image;
use crate::image::{PAGE_WORDS, Section, sum, to_bytes};
use crate::store::Store;

/// Words before the superseded bits of a block.
const HEAD_WORDS: usize = 8;

/// What an image says about a block.
#[derive(Debug)]
pub(crate) struct KnownBlock {
    pub id: BlockId,
    pub opened_at: u64,
    pub table: u32,
    pub fill: u32,
    pub times: BlockTimes,
    pub bits: Box<[u64]>,
}

impl KnownBlock {
    /// Whether the content in a slot had not been superseded.
    pub fn is_alive(&self, slot: u32) -> bool {
        self.bits[slot as usize / 64] >> (slot % 64) & 1 == 0
    }
}

/// The blocks of an image, in the order of their ids.
#[derive(Debug)]
pub(crate) struct KnownBlocks(Vec<KnownBlock>);

impl KnownBlocks {
    /// Reads them; `None` if that is not possible.
    pub fn read(image: &Image) -> Option<Self> {
        let (mut known, mut words) = (Vec::new(), Vec::new());
        for page in 0..image.pages(Section::BLOCKS) {
            image.read(Section::BLOCKS, page, &mut words).ok()?;
            let mut rest = &words[..];
            while !rest.is_empty() {
                let (block, after) = decode(rest)?;
                known.push(block);
                rest = after;
            }
        }
        let in_order = known.is_sorted_by(|a, b| a.id < b.id);
        in_order.then_some(Self(known))
    }

    pub fn iter(&self) -> impl Iterator<Item = &KnownBlock> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn at(&self, n: usize) -> Option<&KnownBlock> {
        self.0.get(n)
    }

    pub fn get(&self, id: BlockId) -> Option<&KnownBlock> {
        self.0.binary_search_by_key(&id, |known| known.id).ok().map(|at| &self.0[at])
    }
}

fn decode(words: &[u64]) -> Option<(KnownBlock, &[u64])> {
    let (head, rest) = words.split_at_checked(HEAD_WORDS)?;
    let fill = (head[2] >> 32) as u32;
    let (bits, rest) = rest.split_at_checked(fill.div_ceil(64) as usize)?;
    let known = KnownBlock {
        id: BlockId { chunk: head[0] as u32, index: (head[0] >> 32) as u32 },
        opened_at: head[1],
        table: head[2] as u32,
        fill,
        times: BlockTimes {
            min_ts: head[3],
            last_begin: head[4],
            last_append: head[5],
            max_ts: head[6],
            left_at: head[7],
        },
        bits: bits.into(),
    };
    Some((known, rest))
}

/// What an image of a store in use is of: what had been appended when the state
/// record in force was sampled. All of that has been decided and published.
#[derive(Debug)]
pub struct ImageBase(Expectation);

impl Store {
    /// The base of an image that is made from now on.
    pub fn image_base(&self) -> ImageBase {
        ImageBase(Expectation::new(&self.state.lock()))
    }
}

/// The pages of the blocks in use. Without a base nothing changes meanwhile, and
/// blocks are taken as they are.
pub(super) fn encode(store: &Store, base: Option<&ImageBase>) -> Vec<Vec<u64>> {
    let _chunks = store.hold_chunks();
    let (mut pages, mut page) = (Vec::new(), Vec::new());
    for (chunk, index, block) in store.used() {
        let (id, opened_at) = (chunk.id(index), block.opened_at());
        let fill = match base.filter(|_| !is_removed(Control::ImageBase)) {
            Some(ImageBase(expect)) => expect.of(id, opened_at, block.slots()).min(block.fill()),
            None => block.fill(),
        };
        let words = HEAD_WORDS + fill.div_ceil(64) as usize;
        if page.len() + words > PAGE_WORDS {
            pages.push(std::mem::take(&mut page));
        }
        let at = page.len();
        encode_block(id, opened_at, fill, block, &mut page);
        // Another generation may have begun meanwhile.
        if base.is_some() && (fill == 0 || block.opened_at() != opened_at || !block.state().is_used()) {
            page.truncate(at);
        }
    }
    pages.push(page);
    pages
}

fn encode_block(id: BlockId, opened_at: u64, fill: u32, block: &Block, out: &mut Vec<u64>) {
    let BlockTimes { min_ts, last_begin, last_append, max_ts, left_at } = block.times();
    out.push(u64::from(id.chunk) | u64::from(id.index) << 32);
    out.push(opened_at);
    out.push(u64::from(block.table().0) | u64::from(fill) << 32);
    out.extend([min_ts, last_begin, last_append, max_ts, left_at]);
    // Only of what the image knows.
    let inside = |n: u32| u64::MAX >> (64 - (fill - n * 64).min(64));
    out.extend((0..fill.div_ceil(64)).map(|n| block.map.word(n as usize) & inside(n)));
}

/// A checksum of the blocks in use, whatever image they are in.
pub(super) fn sum_of(identity: u64, pages: &[Vec<u64>]) -> u64 {
    let mut bytes = Vec::new();
    pages.iter().fold(identity, |seed, page| {
        to_bytes(page, &mut bytes);
        sum(seed, &bytes)
    })
}

impl Block {
    /// Makes the block what an image says it was. It has just been opened, in
    /// the generation that the image knows. Returns whether the image can be of
    /// this block, of which `expected` slots must be filled.
    pub(crate) fn restore(&self, known: &KnownBlock, expected: u32) -> bool {
        let fits = known.table == self.table().0
            && (known.fill <= expected || is_removed(Control::ImageName))
            && !self.recycles();
        if fits {
            self.set_fill(known.fill);
            self.set_times(known.times);
            self.map.restore(&known.bits);
        }
        fits
    }

    /// Takes everything that an image says is there as superseded, until an anchor
    /// names it.
    pub(crate) fn forget_bits(&self) {
        self.map.set_below(self.fill());
    }
}
