//! An estimate of what a thread finds in the CPU's caches.

/// Bytes a thread is taken to have cached: a core's own cache and its share
/// of the last level on the servers that carry persistent memory. Fixed, so
/// that results compare between machines; virtual machines report last-level
/// caches that they share with strangers.
pub(crate) const CACHED_BYTES: u64 = 8 << 20;

/// Tags fetched ahead of a reader: two cache lines.
const TAGS_AHEAD: usize = 32;

/// Which units a thread touched last: one tag for each place of a
/// direct-mapped cache.
#[derive(Debug)]
pub(crate) struct CacheEstimate {
    /// Empty until the first use; then a power of two of tags.
    tags: Vec<u32>,
    places: u64,
}

impl CacheEstimate {
    /// For units of this many bytes, a power of two.
    pub(crate) fn new(unit_bytes: u64) -> Self {
        Self { tags: Vec::new(), places: CACHED_BYTES / unit_bytes }
    }

    /// Touches units `first..=last` and returns how many were not cached.
    pub(crate) fn touch(&mut self, first: u64, last: u64) -> u64 {
        if self.tags.is_empty() {
            self.tags = vec![0; self.places as usize];
        }
        let mut misses = 0;
        let mut next = first;
        while next <= last {
            let end = last.min(next | (self.places - 1));
            misses += self.touch_row(next, end);
            next = end + 1;
        }
        misses
    }

    /// Units that differ only in their place and so have one tag.
    #[inline]
    fn touch_row(&mut self, first: u64, last: u64) -> u64 {
        let place = |unit: u64| (unit & (self.places - 1)) as usize;
        let (from, to) = (place(first), place(last));
        // Zero is the tag of an empty place.
        let tag = (first / self.places) as u32 + 1;
        let mut misses = 0;
        for held in &mut self.tags[from..=to] {
            misses += u32::from(*held != tag);
            *held = tag;
        }
        self.prefetch(to + TAGS_AHEAD);
        u64::from(misses)
    }

    /// Sequential readers come here next, and what they read has pushed the tags out.
    #[inline]
    fn prefetch(&self, place: usize) {
        if let Some(tag) = self.tags.get(place) {
            prefetch(tag);
        }
    }
}

/// Fetches the line that something begins in.
#[inline]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 CPU has the instruction; it changes no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_touch_hits_until_the_place_is_taken() {
        let mut cache = CacheEstimate::new(256);
        let places = CACHED_BYTES / 256;
        assert_eq!(cache.touch(7, 9), 3);
        assert_eq!(cache.touch(8, 10), 1);
        assert_eq!(cache.touch(8 + places, 8 + places), 1);
        assert_eq!(cache.touch(7, 9), 1);
    }

    #[test]
    fn a_range_may_wrap_around_and_exceed_the_cache() {
        let mut cache = CacheEstimate::new(64);
        let places = CACHED_BYTES / 64;
        assert_eq!(cache.touch(places - 2, places + 1), 4);
        assert_eq!(cache.touch(places - 2, places + 1), 0);
        assert_eq!(cache.touch(0, 3 * places - 1), 3 * places - 2);
    }
}
