//! Something that is noted of each 64 KB of a file.

use crate::data_file::DataFile;
use pantile_base::Segments;
use pantile_base::limits::GROWTH_BYTES;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use std::io;

/// Pieces of a word of the set.
const OF_A_WORD: u64 = u64::BITS as u64;

/// A set of pieces of `GROWTH_BYTES`. None is in it at first.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Segments<AtomicU64>);

impl Pieces {
    /// The word and the bit of a piece.
    #[inline]
    fn of(&self, piece: u64) -> (&AtomicU64, u64) {
        (self.0.get_or_grow(piece / OF_A_WORD), 1 << (piece % OF_A_WORD))
    }

    #[inline]
    fn has(&self, piece: u64) -> bool {
        let (word, bit) = self.of(piece);
        word.load(Ordering::Acquire) & bit != 0
    }

    fn set(&self, piece: u64, is_in: bool) {
        let (word, bit) = self.of(piece);
        match is_in {
            true => word.fetch_or(bit, Ordering::Release),
            false => word.fetch_and(!bit, Ordering::Release),
        };
    }

    /// Puts whole pieces into the set, or takes them out.
    pub(crate) fn note(&self, offset: u64, len: u64, is_in: bool) {
        (offset / GROWTH_BYTES..(offset + len) / GROWTH_BYTES).for_each(|piece| self.set(piece, is_in));
    }

    /// Puts in the pieces in which some bytes are. Costs a load where they are there.
    #[inline]
    pub(crate) fn add(&self, offset: u64, len: u64) {
        for piece in pieces_of(offset, len) {
            if !self.has(piece) {
                self.set(piece, true);
            }
        }
    }

    /// Empties the set of a file of `len` bytes, and calls `each` with ranges that have all that
    /// was in it.
    pub(crate) fn take(&self, len: u64, mut each: impl FnMut(u64, u64)) {
        let span = OF_A_WORD * GROWTH_BYTES;
        for at in 0..len.div_ceil(span) {
            let word = self.0.get(at);
            if word
                .is_some_and(|word| word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::AcqRel) != 0)
            {
                each(at * span, span.min(len - at * span));
            }
        }
    }
}

/// The pieces in which some bytes are.
fn pieces_of(offset: u64, len: u64) -> std::ops::Range<u64> {
    offset / GROWTH_BYTES..(offset + len).div_ceil(GROWTH_BYTES)
}

/// The pieces of a file that the file system has promised space for.
///
/// A store through a mapping can fail only by SIGBUS, so space is found before the
/// first store to a piece since opening. That costs nothing where the space is
/// there, and lets a copy of a file that has holes work as well.
#[derive(Debug, Default)]
pub(crate) struct Promised(Pieces);

impl Promised {
    /// Notes that whole pieces have space, or have none any more.
    pub(crate) fn note(&self, offset: u64, len: u64, is_promised: bool) {
        self.0.note(offset, len, is_promised);
    }

    /// Makes the file system promise space for the pieces of some bytes, unless it has.
    ///
    /// # Errors
    /// The end of the piece for which there is none, and what the system says.
    #[inline]
    pub(crate) fn ensure(&self, file: &DataFile, offset: u64, len: u64) -> Result<(), (u64, io::Error)> {
        for piece in pieces_of(offset, len) {
            if !self.0.has(piece) {
                let at = piece * GROWTH_BYTES;
                file.promise(at, GROWTH_BYTES).map_err(|error| (at + GROWTH_BYTES, error))?;
                self.0.set(piece, true);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_covers_what_was_added_and_is_taken_once() {
        let pieces = Pieces::default();
        let span = OF_A_WORD * GROWTH_BYTES;
        let len = 5 * span + GROWTH_BYTES;
        let taken = || {
            let mut all = Vec::new();
            pieces.take(len, |at, len| all.push((at, len)));
            all
        };
        assert_eq!(taken(), []);
        pieces.add(GROWTH_BYTES - 1, 2);
        pieces.add(2 * span, 1);
        pieces.add(len - 1, 1);
        pieces.note(3 * span, span, true);
        pieces.note(3 * span, span, false);
        assert_eq!(taken(), [(0, span), (2 * span, span), (5 * span, GROWTH_BYTES)]);
        assert_eq!(taken(), []);
        // Words lie in segments, which are made one by one.
        let far = 20_000 * span;
        pieces.add(far, 1);
        let mut found = Vec::new();
        pieces.take(far + span, |at, _| found.push(at));
        assert_eq!(found, [far]);
    }
}
