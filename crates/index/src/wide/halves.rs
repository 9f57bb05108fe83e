//! Arrays of half words, two per atomic word.

use pantile_base::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Inserts a half word at `pos` among `count`.
pub(super) fn insert_half(words: &[AtomicU64], pos: usize, count: usize, half: u64) {
    let (first, last) = (pos / 2, count / 2);
    for i in (first + 1..=last).rev() {
        let carry = words[i - 1].load(Relaxed) >> 32;
        words[i].store(words[i].load(Relaxed) << 32 | carry, Relaxed);
    }
    let old = words[first].load(Relaxed);
    let new = if pos & 1 == 0 { old << 32 | half } else { old as u32 as u64 | half << 32 };
    words[first].store(new, Relaxed);
}

/// Removes the half word at `pos` among `count`.
pub(super) fn remove_half(words: &[AtomicU64], pos: usize, count: usize) {
    let (first, last) = (pos / 2, (count - 1) / 2);
    for i in first..=last {
        let old = words[i].load(Relaxed);
        let carry = words.get(i + 1).map_or(0, |next| next.load(Relaxed) << 32);
        let kept = if i == first && pos & 1 == 1 { old as u32 as u64 } else { old >> 32 };
        words[i].store(kept | carry, Relaxed);
    }
}
