//! Joining links over versions that are gone.
//!
//! While a long transaction runs, a tuple may get one version after another that nobody sees, and
//! the blocks of these versions are released one after the other. A link to such a version is of
//! use only as a way to that version's own link. So when a block is released, each of its links is
//! replaced by the first link further along the chain that leads to a version in a block. The links
//! in between are *passed*: no walk that begins later comes to them, since each version has one
//! successor. They are removed when no thread can be on its way to them. So the memory for kept
//! links grows with the number of rows only.

use pantile_base::{Address, Timestamp};

use crate::block::{Block, BlockId, Chunk};
use crate::kept_tiles::PassedLink;
use crate::store::Store;
use crate::tile::Link;
use pantile_base::limits::CHUNK_BYTES;

impl Store {
    /// Joins the links of a block that is being released. Those of versions that
    /// have `moved` begin no walk: the copies have them.
    pub(crate) fn join_links(&self, chunk: &Chunk, block: &Block, moved: &[Address]) {
        self.kept.set_joins();
        for address in moved {
            block.tile.replace_link(chunk.locate(*address).1, None);
        }
        for (slot, link) in block.tile.links() {
            let beyond = self.beyond(link);
            if beyond != Some(link) {
                block.tile.replace_link(slot, beyond);
            }
        }
    }

    /// The first link from here on that leads to a version in a block. Passes
    /// those before it.
    fn beyond(&self, mut link: Link) -> Option<Link> {
        while let Some(passed) = self.released(link)? {
            let next = self.kept.link(passed);
            self.kept.pass(passed);
            link = next?;
        }
        Some(link)
    }

    /// Where a link is kept that begins at the version that `link` leads to;
    /// `Some(None)` if the version is in its block, `None` if it is nowhere.
    fn released(&self, link: Link) -> Option<Option<PassedLink>> {
        if let Some(passed) = self.past.place(link) {
            return Some(Some(passed));
        }
        let (block, place) = self.place_now(link)?;
        Some((block.generation() != link.generation).then_some(place))
    }

    /// The block in which the version that `link` leads to lies if its chunk has
    /// not been taken apart since, and its place there.
    #[inline]
    pub(crate) fn place_now(&self, link: Link) -> Option<(&Block, PassedLink)> {
        let chunk = self.chunk((link.address.offset() / CHUNK_BYTES) as u32)?;
        let (index, within) = chunk.find(link.address)?;
        let place = PassedLink { id: chunk.id(index), generation: link.generation, within };
        Some((&chunk.blocks[index as usize], place))
    }

    /// Removes the links of a tuple that no index leads to any more: nobody sees
    /// a version of it. `newest` is its newest version. The caller has pinned
    /// its transaction slot and looked afterwards, so that it knows a time at
    /// which a transaction runs: `oldest`. It keeps other threads from changing
    /// the chain.
    ///
    /// Collectors that follow chains find the versions themselves, so this does
    /// nothing where links are not joined.
    pub fn forget_chain(&self, newest: Address, oldest: Timestamp) {
        if !self.kept.joins() {
            return;
        }
        let mut end = self.content_header(newest).timestamp();
        let mut next = self.link(newest);
        let (_, _, block, slot) = self.locate(newest);
        block.tile.replace_link(slot, None);
        // Older links may lead to what is no longer there.
        while let Some(link) = next.filter(|_| oldest < end) {
            next = self.take_older(link, end);
            end = link.begin_ts;
        }
    }

    /// Removes the link of the version that `link` leads to, and returns it. The version's block may be released
    /// meanwhile, and used again. `newer` is the `begin_ts` of the version that had `link`.
    fn take_older(&self, link: Link, newer: Timestamp) -> Option<Link> {
        loop {
            // A link that is kept keeps the number of its generation from being used again.
            if self.place_now(link).is_some_and(|(block, _)| self.is_namesake(block, link, newer)) {
                return None;
            }
            if let Some(passed) = self.released(link)? {
                self.kept.pass(passed);
                return self.kept.link(passed);
            }
            let Some((block, place)) = self.place_now(link) else { continue };
            let slot = place.within / block.stride();
            let found = block.tile.link(slot);
            if block.generation() != link.generation {
                continue;
            }
            // Each version has one successor, so no other version has this link, whatever the block is used for by now.
            if found.is_none_or(|found| block.tile.take_link(slot, found)) {
                return found;
            }
        }
    }

    /// The links that were passed since the last call. When no thread that was
    /// pinned now is so any more, the caller removes them.
    pub fn take_passed(&self) -> Vec<PassedLink> {
        self.kept.take_passed()
    }

    /// Removes links that no walk comes to and no thread is on its way to.
    pub fn remove_passed(&self, passed: &[PassedLink]) {
        self.keep_fewer(self.kept.remove(passed).into_iter());
    }

    /// Notes that nothing is kept any more of these generations of blocks.
    pub(crate) fn keep_fewer(&self, blocks: impl Iterator<Item = (BlockId, u16)>) {
        self.past.keep_fewer(blocks, |number| self.chunk(number));
    }
}
