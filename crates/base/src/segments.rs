//! A growing array whose elements never move.

#[cfg(not(miri))]
use std::alloc::{Layout, handle_alloc_error};
use std::ptr;

#[cfg(not(miri))]
use crate::os;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Elements of the first segment. Each later segment is twice as long.
const FIRST: usize = 1 << FIRST_BITS;
const FIRST_BITS: u32 = 10;
const SEGMENTS: usize = 40 - FIRST_BITS as usize + 1;
#[cfg(not(miri))]
const HUGE_PAGE: usize = 2 << 20;

/// Types for which memory full of zero bytes is a valid value.
///
/// # Safety
/// All-zero bytes must be a valid value, and dropping one must do nothing.
pub unsafe trait Zeroed {}

// SAFETY: plain integers behind a cell.
unsafe impl Zeroed for AtomicU64 {}
// SAFETY: plain integers behind a cell.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: null; dropping an `AtomicPtr` does not touch what it points to.
unsafe impl<T> Zeroed for AtomicPtr<T> {}

/// An array of up to 2^40 elements, all of them zero initially.
///
/// A segment is created when one of its elements is first requested. The system
/// provides its memory page by page, as pages are touched.
#[derive(Debug)]
pub struct Segments<T: Zeroed> {
    segments: [AtomicPtr<T>; SEGMENTS],
}

impl<T: Zeroed> Default for Segments<T> {
    fn default() -> Self {
        Self { segments: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())) }
    }
}

/// The segment of an element, and its index there.
#[inline]
fn locate(index: u64) -> (usize, usize) {
    let shifted = index + FIRST as u64;
    let top = 63 - shifted.leading_zeros();
    ((top - FIRST_BITS) as usize, (shifted - (1 << top)) as usize)
}

const fn segment_len(segment: usize) -> usize {
    FIRST << segment
}

impl<T: Zeroed> Segments<T> {
    /// The element, if its segment exists.
    #[inline]
    pub fn get(&self, index: u64) -> Option<&T> {
        let (segment, at) = locate(index);
        let start = self.segments.get(segment)?.load(Ordering::Acquire);
        // SAFETY: a segment is allocated whole before it is published and
        // freed only with the array; `at` is below its length.
        (!start.is_null()).then(|| unsafe { &*start.add(at) })
    }

    /// Returns the element and creates its segment if necessary. Aborts the
    /// process if memory runs out, as `Vec` does.
    ///
    /// # Panics
    /// If `index` is 2^40 or more.
    #[inline]
    pub fn get_or_grow(&self, index: u64) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => self.grow(index),
        }
    }

    #[cold]
    fn grow(&self, index: u64) -> &T {
        let (segment, _) = locate(index);
        let fresh = allocate::<T>(segment_len(segment));
        let published = self.segments[segment].compare_exchange(
            ptr::null_mut(),
            fresh,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if published.is_err() {
            // SAFETY: ours, of this length, and never published.
            unsafe { release(fresh, segment_len(segment)) };
        }
        self.get(index).expect("the segment has just been created")
    }
}

impl<T: Zeroed> Drop for Segments<T> {
    fn drop(&mut self) {
        for (segment, start) in self.segments.iter_mut().enumerate() {
            if !start.get_mut().is_null() {
                // SAFETY: allocated with this length; no reference outlives the array.
                unsafe { release(*start.get_mut(), segment_len(segment)) };
            }
        }
    }
}

fn bytes_of<T>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(4096)
}

/// Zeroed memory that Miri can track.
#[cfg(miri)]
fn allocate<T>(len: usize) -> *mut T {
    // SAFETY: the layout is not empty.
    unsafe { std::alloc::alloc_zeroed(layout_of::<T>(len)).cast() }
}

/// # Safety
/// `start` must come from [`allocate`] with this length and not be used again.
#[cfg(miri)]
unsafe fn release<T>(start: *mut T, len: usize) {
    // SAFETY: by the contract.
    unsafe { std::alloc::dealloc(start.cast(), layout_of::<T>(len)) };
}

#[cfg(miri)]
fn layout_of<T>(len: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(bytes_of::<T>(len), 4096).expect("segments are smaller than memory")
}

/// Zeroed memory that costs nothing until it is touched.
#[cfg(not(miri))]
fn allocate<T>(len: usize) -> *mut T {
    let bytes = bytes_of::<T>(len);
    let Some(start) = os::map(bytes, false) else {
        handle_alloc_error(Layout::from_size_align(bytes, 4096).expect("pages"));
    };
    if bytes >= 2 * HUGE_PAGE {
        // SAFETY: the range has just been mapped.
        unsafe { os::prefer_huge_pages(start, bytes) };
    }
    start.as_ptr().cast()
}

/// # Safety
/// `start` must come from [`allocate`] with this length and not be used again.
#[cfg(not(miri))]
unsafe fn release<T>(start: *mut T, len: usize) {
    let start = ptr::NonNull::new(start.cast()).expect("no segment is at null");
    // SAFETY: by the contract.
    unsafe { os::unmap(start, bytes_of::<T>(len)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locates_without_gap_or_overlap() {
        let mut expected = (0, 0);
        for index in 0..if cfg!(miri) { 5_000 } else { 100_000 } {
            assert_eq!(locate(index), expected);
            expected.1 += 1;
            if expected.1 == segment_len(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(locate((1 << 40) - 1).0, SEGMENTS - 1);
    }

    #[test]
    fn threads_agree_on_elements() {
        const END: u64 = if cfg!(miri) { 3_000 } else { 50_000 };
        let array = Segments::<AtomicU64>::default();
        crate::sync::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for index in (0..END).step_by(7) {
                        array.get_or_grow(index).fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        for index in 0..END {
            let expected = if index % 7 == 0 { 4 } else { 0 };
            assert_eq!(array.get(index).map_or(0, |e| e.load(Ordering::Relaxed)), expected);
        }
    }
}
