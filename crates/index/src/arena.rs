//! The memory that all indexes of a database share.

use std::collections::VecDeque;
use std::fmt;

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering, fence};

use crate::region::{HUGE_PAGE, Region};

/// The size of the first region, in bytes. An empty database pays this much.
const FIRST_REGION: usize = 64 << 10;
/// Regions double up to this size.
const LARGEST_REGION: usize = 32 << 20;

/// A size class of nodes.
///
/// Sizes are an odd number of cache lines, so that the header lines of
/// neighbouring nodes fall into different cache sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class(u8);

impl Class {
    /// Words (of eight bytes) of a node, by class.
    const WORDS: [usize; 6] = [136, 264, 520, 1032, 2056, 4104];

    /// The smallest class with at least `words` words.
    pub(crate) const fn holding(words: usize) -> Self {
        let mut class = 0;
        while Self::WORDS[class] < words {
            class += 1;
        }
        Self(class as u8)
    }

    /// Words of a node of this class.
    #[inline]
    pub(crate) const fn words(self) -> usize {
        Self::WORDS[self.0 as usize]
    }

    /// Bytes of a node of this class.
    #[inline]
    pub(crate) const fn bytes(self) -> usize {
        self.words() * 8
    }
}

/// Node memory shared by the indexes of a database.
///
/// Nodes are carved from regions. The first region is small; sizes double up to
/// huge pages. A freed node goes to the free list of its size class, and any
/// index with nodes of that size can reuse it. Memory returns to the system when the arena is dropped.
pub struct NodeArena {
    carver: Mutex<Carver>,
    free: [Mutex<Vec<usize>>; Class::WORDS.len()],
    mapped: AtomicU64,
    used: AtomicU64,
    directories: AtomicU64,
}

impl NodeArena {
    /// An arena without any memory yet.
    pub fn new() -> Self {
        Self {
            carver: Mutex::new(Carver::default()),
            free: Default::default(),
            mapped: AtomicU64::new(0),
            used: AtomicU64::new(0),
            directories: AtomicU64::new(0),
        }
    }

    /// Bytes mapped from the system for nodes. The last region is touched only as it
    /// fills.
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped.load(Ordering::Relaxed)
    }

    /// Bytes of memory that the arena keeps: what has been cut into nodes, used
    /// or free, and the lists of free nodes.
    pub fn kept_bytes(&self) -> u64 {
        let lists = self.free.iter().map(|free| free.lock().capacity() * size_of::<usize>()).sum::<usize>();
        let untouched = self.carver.lock().left();
        let directories = self.directories.load(Ordering::Relaxed);
        self.mapped_bytes() - untouched as u64 + lists as u64 + directories
    }

    /// Bytes of the nodes that indexes hold, and of their directories.
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + self.directories.load(Ordering::Relaxed)
    }

    /// Bytes of the free nodes of `class`.
    pub(crate) fn free_bytes(&self, class: Class) -> u64 {
        (self.free[class.0 as usize].lock().len() * class.bytes()) as u64
    }

    /// Counts that the directory of an index has become larger by `bytes`, or smaller.
    pub(crate) fn note_directory(&self, bytes: i64) {
        self.directories.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The address of an unused node of `class`. Its words are arbitrary; its
    /// version is even.
    pub(crate) fn allocate(&self, class: Class) -> usize {
        let reused = self.free[class.0 as usize].lock().pop();
        let node = reused.unwrap_or_else(|| self.carve(class));
        self.used.fetch_add(class.bytes() as u64, Ordering::Relaxed);
        // A reader that still looks at the node's previous use sees the version
        // that ended that use before it sees what the new owner writes (I3).
        fence(Ordering::Release);
        node
    }

    /// Takes back a node that [`NodeArena::allocate`] returned for the same
    /// `class`.
    pub(crate) fn free(&self, node: usize, class: Class) {
        self.used.fetch_sub(class.bytes() as u64, Ordering::Relaxed);
        self.free[class.0 as usize].lock().push(node);
    }

    /// As [`NodeArena::allocate`], several nodes, at most `most`: for a thread that
    /// fills one after the other. New ones lie together, up to the end of a huge
    /// page: threads that touch a fresh page at the same time would each wait for a
    /// page of zeros, and all but one are thrown away.
    pub(crate) fn allocate_strip(&self, class: Class, most: usize) -> VecDeque<usize> {
        let mut free = self.free[class.0 as usize].lock();
        let kept = free.len().saturating_sub(most);
        let mut strip = VecDeque::from(free.split_off(kept));
        drop(free);
        if strip.is_empty() {
            strip = self.carve_strip(class, most);
        }
        self.used.fetch_add((strip.len() * class.bytes()) as u64, Ordering::Relaxed);
        // As in `allocate`.
        fence(Ordering::Release);
        strip
    }

    fn carve(&self, class: Class) -> usize {
        self.carve_from(&mut self.carver.lock(), class)
    }

    fn carve_strip(&self, class: Class, most: usize) -> VecDeque<usize> {
        let mut carver = self.carver.lock();
        let mut strip = VecDeque::from([self.carve_from(&mut carver, class)]);
        let end = (strip[0] + 1).next_multiple_of(HUGE_PAGE);
        while strip.len() < most && carver.next < end && carver.left() >= class.bytes() {
            strip.push_back(carver.take(class.bytes()));
        }
        strip
    }

    fn carve_from(&self, carver: &mut Carver, class: Class) -> usize {
        if carver.left() < class.bytes() {
            self.retire_rest(carver);
            self.mapped.fetch_add(carver.grow() as u64, Ordering::Relaxed);
        }
        carver.take(class.bytes())
    }

    /// Turns the rest of a region into free nodes, largest class first.
    fn retire_rest(&self, carver: &mut Carver) {
        for class in (0..Class::WORDS.len()).rev().map(|class| Class(class as u8)) {
            while carver.left() >= class.bytes() {
                let node = carver.take(class.bytes());
                self.free[class.0 as usize].lock().push(node);
            }
        }
    }
}

impl Default for NodeArena {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for NodeArena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeArena")
            .field("mapped_bytes", &self.mapped_bytes())
            .field("used_bytes", &self.used_bytes())
            .finish()
    }
}

/// Cuts nodes off the newest region.
#[derive(Default)]
struct Carver {
    regions: Vec<Region>,
    next: usize,
    end: usize,
}

impl Carver {
    fn left(&self) -> usize {
        self.end - self.next
    }

    fn take(&mut self, bytes: usize) -> usize {
        let node = self.next;
        self.next += bytes;
        node
    }

    /// Maps the next region and returns its size.
    fn grow(&mut self) -> usize {
        let last = self.regions.last().map_or(FIRST_REGION / 2, Region::len);
        let region = Region::map_or_abort((last * 2).min(LARGEST_REGION));
        let len = region.len();
        (self.next, self.end) = (region.start(), region.start() + len);
        self.regions.push(region);
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALLEST: Class = Class(0);

    /// Two strips begin in the same huge page only if it is larger than a strip may be.
    #[test]
    fn a_strip_ends_with_its_huge_page() {
        let arena = NodeArena::new();
        let (mut ends, mut nodes) = (Vec::new(), Vec::new());
        while arena.mapped_bytes() < 8 * HUGE_PAGE as u64 {
            let strip = arena.allocate_strip(SMALLEST, usize::MAX);
            let page = strip[0] / HUGE_PAGE;
            assert!(strip.iter().all(|node| node / HUGE_PAGE == page));
            ends.push(page);
            nodes.extend(strip);
        }
        let strips = ends.len();
        ends.dedup();
        // Regions below the size of a huge page lie anywhere.
        assert!(strips - ends.len() <= 6, "{strips} strips in {} huge pages", ends.len());
        let count = nodes.len();
        nodes.sort_unstable();
        assert!(nodes.windows(2).all(|two| two[0] + SMALLEST.bytes() <= two[1]));
        assert_eq!(arena.used_bytes(), (count * SMALLEST.bytes()) as u64);
        nodes.into_iter().for_each(|node| arena.free(node, SMALLEST));
        // What is free is used first.
        let mapped = arena.mapped_bytes();
        let mut again = 0;
        while again < count {
            let strip = arena.allocate_strip(SMALLEST, 1000.min(count - again));
            again += strip.len();
        }
        assert_eq!((again, arena.mapped_bytes()), (count, mapped));
    }
}
