//! Which contents of a block have been superseded (`superseded_bits`, TB-Collect 4.1).
//!
//! The bits are kept in DRAM. The medium gets a copy when a block is frozen. Recovery relies on the
//! contents themselves, so a bit can hide nothing (T4).

use pantile_base::limits::BLOCK_SLOTS;
use pantile_base::prefetch;
use pantile_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// One bit for each slot of a block.
#[derive(Debug)]
pub(crate) struct SupersededBits {
    set: AtomicU32,
    words: [AtomicU64; BLOCK_SLOTS / 64],
}

impl Default for SupersededBits {
    fn default() -> Self {
        Self { set: AtomicU32::new(0), words: [const { AtomicU64::new(0) }; BLOCK_SLOTS / 64] }
    }
}

impl SupersededBits {
    /// Sets the bit of a slot. Returns the number of bits that are set now, or
    /// `None` if it was set before.
    #[inline]
    pub fn set(&self, slot: u32) -> Option<u32> {
        let bit = 1u64 << (slot % 64);
        let before = self.words[slot as usize / 64].fetch_or(bit, Ordering::AcqRel);
        (before & bit == 0).then(|| self.set.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Clears the bit of a slot; returns whether it was set.
    pub fn unset(&self, slot: u32) -> bool {
        self.unset_some(slot / 64, 1 << (slot % 64)) == 1
    }

    /// Clears bits of the 64 from slot `64 * n` on; returns how many were set.
    pub fn unset_some(&self, n: u32, bits: u64) -> u32 {
        let before = self.words[n as usize].fetch_and(!bits, Ordering::AcqRel);
        let were_set = (before & bits).count_ones();
        self.set.fetch_sub(were_set, Ordering::AcqRel);
        were_set
    }

    /// Sets the bits of all slots below `end`. No other thread may use them.
    pub fn set_below(&self, end: u32) {
        for (n, word) in (0..end.div_ceil(64)).zip(&self.words) {
            let inside = u64::MAX >> (64 - (end - n * 64).min(64));
            let before = word.fetch_or(inside, Ordering::Relaxed);
            self.set.fetch_add((inside & !before).count_ones(), Ordering::AcqRel);
        }
    }

    pub fn is_set(&self, slot: u32) -> bool {
        self.words[slot as usize / 64].load(Ordering::Acquire) >> (slot % 64) & 1 == 1
    }

    /// Asks the CPU to fetch the bit of a slot, which will be set soon.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        prefetch(&self.words[slot as usize / 64]);
    }

    /// Bits that are set.
    pub fn count(&self) -> u32 {
        self.set.load(Ordering::Acquire)
    }

    /// The first slot from `from` on and below `end` whose bit is not set.
    pub fn next_clear(&self, from: u32, end: u32) -> Option<u32> {
        let mut at = from;
        while at < end {
            let word = self.words[at as usize / 64].load(Ordering::Acquire);
            let clear = (!word >> (at % 64)).trailing_zeros();
            if clear + at % 64 < 64 {
                return Some(at + clear).filter(|&slot| slot < end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// The first slot from `from` on and below `end` whose bit is set.
    pub fn next_set(&self, from: u32, end: u32) -> Option<u32> {
        let mut at = from;
        while at < end {
            let word = self.words[at as usize / 64].load(Ordering::Acquire) >> (at % 64);
            if word != 0 {
                return Some(at + word.trailing_zeros()).filter(|&slot| slot < end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Clears all bits. No other thread may use them.
    pub fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.set.store(0, Ordering::Release);
    }

    /// 64 bits, from slot `64 * n` on.
    pub fn word(&self, n: usize) -> u64 {
        self.words[n].load(Ordering::Acquire)
    }

    /// Sets all bits. No other thread may use them.
    pub fn restore(&self, bits: &[u64]) {
        self.words.iter().zip(bits).for_each(|(word, bits)| word.store(*bits, Ordering::Relaxed));
        self.set.store(bits.iter().map(|bits| bits.count_ones()).sum(), Ordering::Release);
    }

    /// The bits as they are written to the medium.
    pub fn write_to(&self, bytes: &mut [u8]) {
        for (word, place) in self.words.iter().zip(bytes.chunks_exact_mut(8)) {
            place.copy_from_slice(&word.load(Ordering::Acquire).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_set_once_and_found() {
        let map = SupersededBits::default();
        for (n, slot) in [0, 63, 64, 130, 199].into_iter().enumerate() {
            assert_eq!(map.set(slot), Some(n as u32 + 1));
            assert_eq!(map.set(slot), None);
        }
        let set: Vec<_> = walk(|from| map.next_set(from, 200));
        assert_eq!(set, [0, 63, 64, 130, 199]);
        let clear: Vec<_> = walk(|from| map.next_clear(from, 200));
        assert_eq!(clear.len(), 195);
        assert!(clear.iter().all(|slot| !set.contains(slot)));
        assert_eq!((map.next_clear(198, 199), map.next_set(131, 199)), (Some(198), None));
        for slot in 0..200 {
            let _ = map.set(slot);
        }
        assert_eq!((map.next_clear(0, 200), map.count()), (None, 200));
        assert_eq!((map.unset(64), map.unset(64), map.count()), (true, false, 199));
        assert_eq!(map.next_clear(0, 200), Some(64));
        map.clear();
        assert_eq!((map.next_set(0, 200), map.count()), (None, 0));
    }

    #[test]
    fn bits_change_by_the_word() {
        let map = SupersededBits::default();
        let _ = map.set(3);
        for (end, set) in [(0, 1), (5, 5), (64, 64), (130, 130), (130, 130)] {
            map.set_below(end);
            assert_eq!(map.count(), set);
            assert_eq!(map.next_clear(0, 200), Some(if end == 0 { 0 } else { end }));
        }
        map.unset_some(1, 1 << 63 | 1);
        map.unset_some(1, 1);
        map.unset_some(2, 1 << 40);
        assert_eq!((map.count(), walk(|from| map.next_clear(from, 130))), (128, vec![64, 127]));
    }

    fn walk(next: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
        std::iter::successors(next(0), |&at| next(at + 1)).collect()
    }
}
