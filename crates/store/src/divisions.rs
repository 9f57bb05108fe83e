//! How chunks were divided into blocks before they were taken apart, as long as links of these
//! blocks are kept.
//!
//! A chunk goes back to the system when all its blocks are free. A long transaction may still walk
//! along links that were kept of these blocks. A link names a place by its offset. The division
//! that the chunk had at that time says which block the place was in, and where in the block.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::RwLock;
use pantile_base::sync::atomic::{AtomicUsize, Ordering};

use crate::block::{BlockId, Chunk};
use crate::geometry::Geometry;
use crate::kept_tiles::PassedLink;
use crate::tile::Link;

/// A division of a chunk, and the generations that its blocks had in it: from
/// `first` on, before `end`. No two divisions of a chunk share a generation, and the generations of
/// a block do not begin again within one ([`Refused::GenerationsUsedUp`](crate::Refused::GenerationsUsedUp)).
#[derive(Debug)]
struct Division {
    geometry: Geometry,
    first: u16,
    end: u16,
    /// Number of generations of blocks of which links are kept.
    kept: u32,
}

impl Division {
    fn has(&self, generation: u16) -> bool {
        generation.wrapping_sub(self.first) < self.end.wrapping_sub(self.first)
    }
}

/// The past divisions, by chunk.
#[derive(Debug, Default)]
pub(crate) struct PastDivisions {
    by_chunk: RwLock<HashMap<u32, Vec<Division>, FixedState>>,
    /// Number of divisions, so that walks need no lock where there are none.
    count: AtomicUsize,
}

impl PastDivisions {
    /// Remembers the division of a chunk that is about to be taken apart, if
    /// links of its blocks are kept.
    pub fn note(&self, chunk: &Chunk, end: u16) {
        let mut by_chunk = self.by_chunk.write();
        let kept = chunk.kept_tiles.load(Ordering::Acquire);
        if kept > 0 {
            let division = Division { geometry: chunk.geometry, first: chunk.first_generation, end, kept };
            by_chunk.entry(chunk.number).or_default().push(division);
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether blocks had this generation in a past division of a chunk.
    pub fn have(&self, chunk: u32, generation: u16) -> bool {
        self.count.load(Ordering::Acquire) > 0
            && self.by_chunk.read().get(&chunk).is_some_and(|all| all.iter().any(|one| one.has(generation)))
    }

    /// Where the links are kept of the version that `link` leads to, if it lay in
    /// a past division.
    pub fn place(&self, link: Link) -> Option<PassedLink> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let number = (link.address.offset() / CHUNK_BYTES) as u32;
        let by_chunk = self.by_chunk.read();
        let division = by_chunk.get(&number)?.iter().find(|division| division.has(link.generation))?;
        let (index, within) = division.geometry.find(link.address)?;
        Some(PassedLink { id: BlockId { chunk: number, index }, generation: link.generation, within })
    }

    /// Notes that nothing is kept any more of these generations of blocks.
    /// `chunk` finds the chunks as they are divided now.
    pub fn keep_fewer<'c>(
        &self,
        blocks: impl Iterator<Item = (BlockId, u16)>,
        chunk: impl Fn(u32) -> Option<&'c Chunk>,
    ) {
        let mut blocks = blocks.peekable();
        if blocks.peek().is_none() {
            return;
        }
        // No chunk is taken apart meanwhile.
        let mut by_chunk = self.by_chunk.write();
        for (id, generation) in blocks {
            let divisions = by_chunk.get_mut(&id.chunk);
            let past = divisions.and_then(|all| all.iter_mut().find(|division| division.has(generation)));
            match past {
                Some(division) => division.kept -= 1,
                None => {
                    if let Some(chunk) = chunk(id.chunk) {
                        chunk.kept_tiles.fetch_sub(1, Ordering::AcqRel);
                    }
                }
            }
        }
        by_chunk.retain(|_, divisions| {
            divisions.retain(|division| division.kept > 0);
            !divisions.is_empty()
        });
        self.count.store(by_chunk.values().map(Vec::len).sum(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Class;

    #[test]
    fn generations_of_past_divisions_are_known_while_links_are_kept() {
        let past = PastDivisions::default();
        let chunk = Chunk::new(3, Geometry::new(3, Class::SMALLEST), u16::MAX);
        past.note(&chunk, 2);
        assert!(!past.have(3, 0), "nothing is kept");
        chunk.kept_tiles.store(1, Ordering::Relaxed);
        past.note(&chunk, 2);
        let had = [u16::MAX - 1, u16::MAX, 0, 1, 2].map(|generation| past.have(3, generation));
        assert_eq!(had, [false, true, true, true, false]);
        assert!(!past.have(4, 0), "another chunk");
        past.keep_fewer([(chunk.id(0), u16::MAX)].into_iter(), |_| None);
        assert!(!past.have(3, 0), "nothing is kept any more");
    }
}
