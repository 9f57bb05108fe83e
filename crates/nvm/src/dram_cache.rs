//! What DRAM in front of the memory has copies of.

use super::cache::prefetch;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Pieces of which one makes room for a new one.
const WAYS: usize = 8;

/// Most pieces: 8 GiB of 256 bytes.
const MOST: usize = 1 << 25;

/// Set in a tag when its piece is used, and cleared when the hand of the clock passes.
const USED: u64 = 1;

/// A part of the medium that is in DRAM as a whole or not at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

impl Piece {
    fn number(self) -> u64 {
        self.start / self.bytes
    }
}

/// Which pieces of the medium have copies, in sets of eight with a clock each: a piece that was
/// used since the hand last passed it stays (CLOCK, as in Zen+ 3.2, there over all entries of a thread).
/// The copies themselves are not made: the DRAM that stands in for the memory has them.
#[derive(Debug)]
pub(crate) struct DramCache {
    /// Twice the number of a piece plus one, and whether it was used; zero if there is none.
    tags: Vec<AtomicU64>,
    piece_bytes: u64,
    /// Sets in use.
    sets: AtomicUsize,
}

impl DramCache {
    /// Nothing yet, in pieces of this many bytes.
    pub(crate) fn new(piece_bytes: u64) -> Self {
        Self { tags: zeros(MOST), piece_bytes, sets: AtomicUsize::new(0) }
    }

    /// It has room for this many bytes from here on.
    pub(crate) fn resize(&self, bytes: u64) {
        let sets = (bytes / self.piece_bytes) as usize / WAYS;
        let sets = sets.clamp(1, MOST / WAYS);
        self.sets.store(sets, Ordering::Relaxed);
    }

    /// The set of a piece. Few pieces come into another set when there are more or fewer sets (linear hashing).
    fn set(&self, number: u64) -> &[AtomicU64] {
        let sets = self.sets.load(Ordering::Relaxed).max(1);
        let all = sets.next_power_of_two();
        let hash = spread(number) as usize;
        let set = Some(hash & (all - 1)).filter(|set| *set < sets).unwrap_or_else(|| hash & (all / 2 - 1));
        &self.tags[set * WAYS..][..WAYS]
    }

    /// Uses the pieces that these bytes lie in, which are in it afterwards. Calls `miss` for each that was not.
    pub(crate) fn touch_all(&self, offset: u64, len: u64, mut miss: impl FnMut(Piece)) {
        // Side by side, or the emulator would wait for DRAM several times where it emulates one read.
        self.pieces(offset, len).for_each(|piece| prefetch(&self.set(piece.number())[0]));
        self.pieces(offset, len).filter(|piece| !self.touch(*piece)).for_each(&mut miss);
    }

    /// The pieces that these bytes lie in.
    fn pieces(&self, offset: u64, len: u64) -> impl Iterator<Item = Piece> + use<> {
        let bytes = self.piece_bytes;
        let end = (offset + len).div_ceil(bytes);
        (offset / bytes..end).map(move |n| Piece { start: n * bytes, bytes })
    }

    /// Uses a piece. Returns whether it was there; it is afterwards.
    fn touch(&self, piece: Piece) -> bool {
        let number = piece.number();
        let tags = self.set(number);
        let wanted = (number + 1) << 1;
        let is_wanted = |tag: &&AtomicU64| tag.load(Ordering::Relaxed) & !USED == wanted;
        if let Some(tag) = tags.iter().find(is_wanted) {
            if tag.load(Ordering::Relaxed) & USED == 0 {
                tag.fetch_or(USED, Ordering::Relaxed);
            }
            return true;
        }
        // The hand begins anywhere, and gives each piece that was used one more turn.
        let hand = spread(wanted) as usize % WAYS;
        let order = (0..WAYS).map(|n| &tags[(hand + n) % WAYS]);
        let mut unused = order.filter(|tag| tag.fetch_and(!USED, Ordering::Relaxed) & USED == 0);
        let victim = unused.next().unwrap_or(&tags[hand]);
        victim.store(wanted | USED, Ordering::Relaxed);
        false
    }
}

/// A number in which all bits depend on all bits of `n` (the finaliser of SplitMix64).
pub(crate) fn spread(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// Memory that the system gives when it is used.
fn zeros(len: usize) -> Vec<AtomicU64> {
    let mut zeros = std::mem::ManuallyDrop::new(vec![0u64; len]);
    // SAFETY: the parts are those of a vector of `u64`, of which `AtomicU64` has the layout, and the
    // vector is not dropped.
    unsafe { Vec::from_raw_parts(zeros.as_mut_ptr().cast(), len, zeros.capacity()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: u64 = 256;

    fn cache(pieces: u64) -> DramCache {
        let cache = DramCache::new(PIECE);
        cache.resize(pieces * PIECE);
        cache
    }

    fn touch(cache: &DramCache, offset: u64, len: u64) -> usize {
        let mut missed = 0;
        cache.touch_all(offset, len, |_| missed += 1);
        missed
    }

    /// As before anything has been written to the medium.
    #[test]
    fn one_without_room_has_one_set() {
        let cache = DramCache::new(PIECE);
        assert_eq!((touch(&cache, 0, 10 * PIECE), touch(&cache, 9 * PIECE, PIECE)), (10, 0));
    }

    #[test]
    fn what_was_used_is_there() {
        let cache = cache(1024);
        assert_eq!(touch(&cache, 1000, 300), 3, "of the pieces at 768, 1,024 and 1,280");
        assert_eq!(touch(&cache, 1000, 300), 0);
        assert_eq!(touch(&cache, 768, 1024), 1, "its end was not there");
    }

    #[test]
    fn most_of_it_stays_when_it_grows() {
        let cache = cache(4096);
        assert_eq!((0..1024).map(|n| touch(&cache, n * PIECE, PIECE)).sum::<usize>(), 1024);
        cache.resize(4096 * PIECE * 17 / 16);
        let lost: usize = (0..1024).map(|n| touch(&cache, n * PIECE, PIECE)).sum();
        assert!(lost < 128, "{lost} of 1,024");
    }

    #[test]
    fn uniform_reads_hit_as_often_as_the_cache_is_large() {
        for ratio in [2, 4, 16] {
            let (pieces, cache) = (1 << 16, cache((1 << 16) / ratio));
            let reads = 8 * pieces;
            let misses: usize = (0..reads).map(|n| touch(&cache, spread(n) % pieces * PIECE, PIECE)).sum();
            let share = (1.0 - misses as f64 / reads as f64) * ratio as f64;
            assert!((0.85..=1.05).contains(&share), "{share} of what 1/{ratio} has");
        }
    }

    #[test]
    fn what_is_used_often_stays_beside_a_scan() {
        let cache = cache(4096);
        let (mut misses, reads) = (0, 1 << 16);
        for n in 0..reads {
            misses += touch(&cache, n % 256 * PIECE, PIECE);
            touch(&cache, (1 << 30) + n * PIECE, PIECE);
        }
        assert!(misses < reads as usize / 10, "{misses} of {reads}");
    }
}
