//! A node as its readers and writers see it: words, a version and a header.

use std::ops::Deref;
use std::slice;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::{AtomicU64, Ordering, fence};
use pantile_base::sync::{hint, thread};

/// Odd while locked. Locking and unlocking each add one (I3).
const VERSION: usize = 0;
/// The read mark (leaves only).
const MARK: usize = 1;
/// Entry count and, for long keys, the shape of the node.
pub(crate) const META: usize = 2;
/// The level, which fences are set, and whether keys are spread evenly.
const KIND: usize = 3;
/// The child left of the first separator (inner nodes), or the number of the tree (leaves, I8).
const FIRST_CHILD: usize = 4;
/// Where the low fence is stored (leaves only).
pub(crate) const LOW: usize = 5;
/// Where the high fence is stored (leaves only).
pub(crate) const HIGH: usize = 6;
/// Where the last insert went, and how many inserts before it were ascending
/// neighbours.
const HINT: usize = 7;
/// Words of the header: one cache line.
pub(crate) const HEADER: usize = 8;

const LEVEL_MASK: u64 = 0xff;
const EVEN: u64 = 1 << 10;
const HINT_RUN: u64 = 0xffff;
/// Spins before a waiting thread yields its processor.
const SPINS: u32 = 50;

/// Spins first, then lets other threads run.
#[derive(Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn wait(&mut self) {
        self.0 += 1;
        if self.0 < SPINS { hint::spin_loop() } else { thread::yield_now() }
    }
}

/// One end of a leaf's range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Low,
    High,
}

impl Side {
    fn flag(self) -> u64 {
        match self {
            Self::Low => 1 << 8,
            Self::High => 1 << 9,
        }
    }

    /// The header word for this fence.
    pub(crate) fn word(self) -> usize {
        match self {
            Self::Low => LOW,
            Self::High => HIGH,
        }
    }
}

/// A view of a node's words. Reads race with writers unless the node is locked.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Node<'a> {
    /// # Safety
    /// `addr` is a node of `words` words in an arena that outlives `'a` (I1,
    /// I2).
    #[inline(always)]
    pub(crate) unsafe fn at(addr: usize, words: usize) -> Self {
        let base = std::ptr::with_exposed_provenance::<AtomicU64>(addr);
        // SAFETY: by the contract; node words are only ever accessed as atomics (I1).
        let words = unsafe { slice::from_raw_parts(base, words) };
        Self { words }
    }

    /// The address, as stored in child words.
    #[inline]
    pub(crate) fn addr(self) -> usize {
        self.words.as_ptr().expose_provenance()
    }

    /// All words.
    #[inline(always)]
    pub(crate) fn words(self) -> &'a [AtomicU64] {
        self.words
    }

    /// Word `i`, which must lie inside the node.
    #[inline(always)]
    pub(crate) fn get(self, i: usize) -> u64 {
        self.words[i].load(Ordering::Relaxed)
    }

    /// Writes word `i`. The caller holds the lock or has not yet published the
    /// node.
    #[inline(always)]
    pub(crate) fn set(self, i: usize, value: u64) {
        self.words[i].store(value, Ordering::Relaxed);
    }

    /// The version. Waits until the node is unlocked.
    #[inline(always)]
    pub(crate) fn version(self) -> u64 {
        let version = self.words[VERSION].load(Ordering::Acquire);
        if version & 1 == 0 { version } else { self.version_contended() }
    }

    #[cold]
    fn version_contended(self) -> u64 {
        let mut backoff = Backoff::default();
        loop {
            backoff.wait();
            let version = self.words[VERSION].load(Ordering::Acquire);
            if version & 1 == 0 {
                return version;
            }
        }
    }

    /// Whether everything read since `version` was taken belongs to that
    /// version.
    #[inline(always)]
    pub(crate) fn unchanged(self, version: u64) -> bool {
        fence(Ordering::Acquire);
        // Sequentially consistent for I5. On x86 it is the same instruction.
        self.words[VERSION].load(Ordering::SeqCst) == version
    }

    /// Locks the node if it still has `version`.
    #[inline]
    pub(crate) fn lock_if(self, version: u64) -> Option<Locked<'a>> {
        let (ok, err) = (Ordering::SeqCst, Ordering::Relaxed);
        self.words[VERSION].compare_exchange(version, version + 1, ok, err).ok()?;
        // A reader that sees one of the writes that follow sees the odd version
        // too.
        fence(Ordering::Release);
        Some(Locked { node: self, version })
    }

    /// Waits for the lock (see I7).
    pub(crate) fn lock(self) -> Locked<'a> {
        loop {
            if let Some(locked) = self.lock_if(self.version()) {
                return locked;
            }
        }
    }

    /// Prepares a fresh node, which has no content yet and belongs to no tree.
    pub(crate) fn init(self, level: usize, mark: u64) {
        self.set(FIRST_CHILD, 0);
        self.set(KIND, level as u64);
        self.set(HINT, 0);
        self.words[MARK].store(mark, Ordering::SeqCst);
    }

    /// Zero for leaves; one more than the level of its children for inner
    /// nodes.
    #[inline(always)]
    pub(crate) fn level(self) -> usize {
        (self.get(KIND) & LEVEL_MASK) as usize
    }

    /// Moves the node to another level. Only the root changes its level.
    pub(crate) fn set_level(self, level: usize) {
        self.set(KIND, level as u64);
        self.set(HINT, 0);
    }

    /// Whether the range is bounded on this side.
    #[inline]
    pub(crate) fn has_fence(self, side: Side) -> bool {
        self.get(KIND) & side.flag() != 0
    }

    /// Whether the range is bounded on both sides.
    #[inline(always)]
    pub(crate) fn is_bounded(self) -> bool {
        let both = Side::Low.flag() | Side::High.flag();
        self.get(KIND) & both == both
    }

    /// Records whether the range is bounded on this side.
    pub(crate) fn set_has_fence(self, side: Side, bounded: bool) {
        let kind = self.get(KIND) & !side.flag();
        self.set(KIND, if bounded { kind | side.flag() } else { kind });
    }

    /// Whether the keys were spread evenly over the range when the content was stored (leaves of narrow trees).
    #[inline(always)]
    pub(crate) fn is_even(self) -> bool {
        self.get(KIND) & EVEN != 0
    }

    pub(crate) fn set_even(self, even: bool) {
        let kind = self.get(KIND) & !EVEN;
        self.set(KIND, if even { kind | EVEN } else { kind });
    }

    /// The child left of the first separator.
    #[inline(always)]
    pub(crate) fn first_child(self) -> u64 {
        self.get(FIRST_CHILD)
    }

    /// Sets the child left of the first separator.
    pub(crate) fn set_first_child(self, child: u64) {
        self.set(FIRST_CHILD, child);
    }

    /// The number of the tree of which this is a leaf. What is read afterwards is no older than that.
    #[inline(always)]
    pub(crate) fn tree(self) -> u64 {
        self.words[FIRST_CHILD].load(Ordering::Acquire)
    }

    /// Makes the node, whose content has been stored, a leaf of a tree; zero, of none (I8).
    #[inline]
    pub(crate) fn set_tree(self, tree: u64) {
        self.words[FIRST_CHILD].store(tree, Ordering::Release);
    }

    /// The read mark.
    #[inline]
    pub(crate) fn mark(self) -> u64 {
        self.words[MARK].load(Ordering::SeqCst)
    }

    /// Raises the read mark to at least `mark`.
    #[inline]
    pub(crate) fn raise_mark(self, mark: u64) {
        if self.mark() < mark && !is_removed(Control::LeafMarks) {
            self.words[MARK].fetch_max(mark, Ordering::SeqCst);
        }
    }

    /// Records that an entry was inserted at `pos`.
    #[inline]
    pub(crate) fn note_insert(self, pos: usize) {
        let hint = self.get(HINT);
        let follows = hint >> 16 == pos as u64;
        let run = if follows { ((hint & HINT_RUN) + 1).min(HINT_RUN) } else { 0 };
        self.set(HINT, (pos as u64 + 1) << 16 | run);
    }

    /// How many of the last inserts each went right behind the one before.
    pub(crate) fn insert_run(self) -> u64 {
        self.get(HINT) & HINT_RUN
    }
}

/// A node that this thread has locked. Dropping it unlocks the node.
pub(crate) struct Locked<'a> {
    node: Node<'a>,
    version: u64,
}

impl Locked<'_> {
    /// The version that the node has once it is unlocked.
    #[inline(always)]
    pub(crate) fn next_version(&self) -> u64 {
        self.version + 2
    }
}

impl<'a> Deref for Locked<'a> {
    type Target = Node<'a>;

    #[inline(always)]
    fn deref(&self) -> &Node<'a> {
        &self.node
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.node.words[VERSION].store(self.next_version(), Ordering::Release);
    }
}

/// Prefetches `lines` cache lines from `addr` on. A wrong address does no harm.
#[inline(always)]
pub(crate) fn prefetch(addr: usize, lines: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = std::ptr::without_provenance::<i8>(addr.wrapping_add(line * 64));
        // SAFETY: a prefetch is only a hint and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (addr, lines);
}
