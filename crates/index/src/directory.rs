//! A directory of the leaves by their keys, for lookups without a descent.

use std::fmt;
use std::ptr;

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::node::Node;
use crate::region::Region;

/// Entries for each node of the tree, at least.
const ENTRIES_OF_NODE: u64 = 4;
/// A tree with fewer nodes has no directory: its root and the leaf are all that a descent touches.
const LEAST_NODES: u64 = 8;
/// Entries of the smallest directory, which fill a page of memory.
const LEAST_ENTRIES: u64 = 512;
/// The low bits of an entry are the address of a leaf, the others how far it reaches.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;
const REACH_BITS: u32 = u64::BITS - ADDRESS_BITS;
const MOST_REACH: u64 = (1 << REACH_BITS) - 1;
/// A directory with this many times the entries that are needed at least gives way to a smaller one.
const SHRUNK: u64 = 16;
/// Regions that are entered for a new leaf at most.
const MOST_ENTERED: u64 = 16;
/// 2^64 divided by the golden ratio (Knuth, *The Art of Computer Programming*, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A directory of a tree's leaves by their keys, of one word each.
///
/// The values of a word are cut into *regions* of the same width, so that most leaves cover two to
/// four of them. The entry of a region names the leaf that covers its start, and how far into the
/// region that leaf reaches; what lies behind belongs to the entry of the next region. Regions
/// far apart may share an entry.
///
/// All of that is a hint. An entry may be missing, or name a leaf that has other keys by now or is
/// no leaf any more: the leaf itself tells (I8). So nobody waits for a directory, and it is never
/// repaired, only written again where it has been of no use.
#[derive(Default)]
pub(crate) struct Directory {
    table: AtomicPtr<Table>,
    /// At most one of each length, in ascending order. The memory of those that are not in use has
    /// been given back: a reader that still looks there finds old entries or none.
    #[expect(clippy::vec_box, reason = "readers have the addresses of tables")]
    tables: Mutex<Vec<Box<Table>>>,
}

struct Table {
    region: Region,
    /// A region has 2^`width` values. 64 if nobody knew how far leaves are apart: then there are no
    /// entries.
    width: AtomicU32,
    /// There are 2^`bits` entries.
    bits: u32,
}

/// What a leaf covers: from its low fence to its high fence.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Table {
    #[inline(always)]
    fn entries(&self) -> &[AtomicU64] {
        // SAFETY: the table keeps its region, which has this many words; they are only ever
        // accessed as atomics.
        unsafe { Node::at(self.region.start(), 1 << self.bits) }.words()
    }

    /// `None` if the table is of no use.
    #[inline(always)]
    fn width(&self) -> Option<u32> {
        Some(self.width.load(Ordering::Relaxed)).filter(|width| *width < u64::BITS)
    }

    /// The entry of a region. Those of neighbouring regions lie side by side, and those of regions
    /// far apart anywhere.
    #[inline(always)]
    fn entry(&self, region: u64) -> &AtomicU64 {
        let far = (region >> self.bits).wrapping_mul(GOLDEN) >> (u64::BITS - self.bits);
        &self.entries()[(region.wrapping_add(far) & ((1 << self.bits) - 1)) as usize]
    }

    /// Enters a leaf for a region. Returns false if it does not cover the start of the region.
    fn enter(&self, leaf: usize, span: Span, (region, width): (u64, u32)) -> bool {
        let start = region << width;
        let covers = region <= u64::MAX >> width && span.low <= start && start < span.high;
        if covers && leaf as u64 <= ADDRESS {
            let reach = reach((span.high - start).min(1 << width), width).min(MOST_REACH);
            self.set(region, reach << ADDRESS_BITS | leaf as u64);
        }
        covers
    }

    /// What begins so far behind the start of a region is not the matter of its entry.
    fn shorten(&self, region: u64, behind_start: u64, width: u32) {
        let (entry, reach) = (self.entry(region).load(Ordering::Relaxed), reach(behind_start, width));
        if entry >> ADDRESS_BITS > reach {
            self.set(region, reach << ADDRESS_BITS | (entry & ADDRESS));
        }
    }

    /// An entry that is so already is not written: others have its line.
    fn set(&self, region: u64, entry: u64) {
        let place = self.entry(region);
        if place.load(Ordering::Relaxed) != entry {
            place.store(entry, Ordering::Relaxed);
        }
    }

    /// The address that the entry of a region names; zero if it names none.
    fn leaf_of(&self, region: u64) -> usize {
        (self.entry(region).load(Ordering::Relaxed) & ADDRESS) as usize
    }
}

/// How far something lies behind the start of a region, in units that an entry can count.
#[inline(always)]
fn reach(behind_start: u64, width: u32) -> u64 {
    behind_start >> width.saturating_sub(REACH_BITS)
}

impl Directory {
    #[inline(always)]
    fn table(&self) -> Option<(&Table, u32)> {
        // SAFETY: a table lives as long as the directory once it has been published.
        let table = unsafe { self.table.load(Ordering::Acquire).as_ref() }?;
        Some((table, table.width()?))
    }

    /// Whether leaves can be entered.
    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        self.table().is_some()
    }

    /// The address of the leaf that is likely to cover the key `word`.
    #[inline(always)]
    pub(crate) fn find(&self, word: u64) -> Option<usize> {
        let (table, width) = self.table()?;
        let region = word >> width;
        let mut entry = table.entry(region).load(Ordering::Relaxed);
        if entry >> ADDRESS_BITS <= reach(word - (region << width), width) {
            entry = table.entry(region.wrapping_add(1)).load(Ordering::Relaxed);
        }
        (entry != 0).then_some((entry & ADDRESS) as usize)
    }

    /// Enters a leaf of the tree for the key `word`, for which there was no entry, or one of no use.
    /// `span_of` tells what a leaf of the tree covers. An entry that is right for another region
    /// stays, so that two that share their place do not take it from each other again and again.
    #[cold]
    pub(crate) fn note(&self, leaf: usize, span: Span, word: u64, span_of: impl Fn(usize) -> Option<Span>) {
        let Some((table, width)) = self.table() else { return };
        let region = word >> width;
        let begins_inside = span.low > region << width;
        if begins_inside {
            table.shorten(region, span.low - (region << width), width);
        }
        let region = region + u64::from(begins_inside);
        let present = table.leaf_of(region);
        let is_right = |other: Span| {
            let mut regions = (other.low >> width..=u64::MAX).take(MOST_ENTERED as usize);
            let shares = |r: &u64| *r != region && ptr::eq(table.entry(*r), table.entry(region));
            regions.any(|r| shares(&r) && other.low <= r << width && r << width < other.high)
        };
        if present == leaf || !span_of(present).is_some_and(is_right) {
            table.enter(leaf, span, (region, width));
        }
    }

    /// Enters the two halves of a leaf that has been split at the key `at`.
    pub(crate) fn split(&self, halves: [(usize, Span); 2], at: u64) {
        let Some((table, width)) = self.table() else { return };
        let region = at >> width;
        for (leaf, span) in halves {
            let _ = (region..region.saturating_add(MOST_ENTERED)).try_for_each(|region| {
                let covers = table.enter(leaf, span, (region, width));
                (covers || region << width < span.low).then_some(())
            });
        }
    }

    /// Whether a tree of this many nodes deserves another directory: it has grown, or shrunk to a
    /// small part.
    #[inline]
    pub(crate) fn is_unfit_for(&self, nodes: u64) -> bool {
        // SAFETY: as in `table`.
        let table = unsafe { self.table.load(Ordering::Acquire).as_ref() };
        let (wanted, entries) = (ENTRIES_OF_NODE * nodes, table.map_or(0, |table| 1 << table.bits));
        if entries <= LEAST_ENTRIES {
            nodes >= LEAST_NODES && wanted > entries
        } else {
            wanted > entries || wanted < entries / SHRUNK
        }
    }

    /// Makes another directory for a tree of this many nodes. It fills as keys are looked up. `gaps`
    /// are between first keys of neighbouring leaves. Does nothing if another thread is about that,
    /// or if there is no memory. Returns by how many bytes the directory has grown.
    #[cold]
    pub(crate) fn fit(&self, nodes: u64, gaps: Vec<u64>) -> i64 {
        // Its caller has locked nodes, for which others wait.
        let Some(mut tables) = self.tables.try_lock() else { return 0 };
        let entries = (ENTRIES_OF_NODE * nodes + 1).next_power_of_two().max(LEAST_ENTRIES);
        let (bits, before) = (entries.ilog2(), self.table());
        if !self.is_unfit_for(nodes) {
            return 0;
        }
        let at = match tables.binary_search_by_key(&bits, |table| table.bits) {
            Ok(at) => at,
            Err(at) => {
                let Some(region) = Region::map(entries as usize * size_of::<AtomicU64>()) else { return 0 };
                tables.insert(at, Box::new(Table { region, width: AtomicU32::new(0), bits }));
                at
            }
        };
        let table = &*tables[at];
        let width = width(gaps).or(before.map(|(_, width)| width)).unwrap_or(u64::BITS);
        table.width.store(width, Ordering::Relaxed);
        self.replace(ptr::from_ref(table).cast_mut())
    }

    /// Gives the memory of the directory back: its tree has one leaf left. Returns the negative of
    /// its bytes.
    #[cold]
    pub(crate) fn clear(&self) -> i64 {
        let _tables = self.tables.lock();
        self.replace(ptr::null_mut())
    }

    /// Puts a table in place of another, under the lock. Returns how many bytes more it has.
    fn replace(&self, table: *mut Table) -> i64 {
        let before = self.bytes() as i64;
        let old = self.table.swap(table, Ordering::AcqRel);
        // SAFETY: as in `table`.
        if let Some(old) = unsafe { old.as_ref() } {
            old.region.discard();
        }
        self.bytes() as i64 - before
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        // SAFETY: as in `table`.
        unsafe { self.table.load(Ordering::Acquire).as_ref() }.map_or(0, |table| table.region.len())
    }
}

/// The width of regions where leaves lie so far apart: a quarter to a half of most gaps.
fn width(mut gaps: Vec<u64>) -> Option<u32> {
    gaps.sort_unstable();
    let gap = gaps.get(gaps.len() / 2)?;
    Some(gap.checked_ilog2()?.saturating_sub(1))
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("bytes", &self.bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pantile_testkit::Random;

    use crate::arena::NodeArena;
    use crate::finger::Finger;
    use crate::narrow::Narrow;
    use crate::tree::Tree;

    /// Dense keys, random ones, and keys of many dense groups, entered in order or one for each
    /// group in turn.
    const KEYS: [fn(u64, u64) -> u64; 4] = [
        |i, _| i,
        |_, random| random,
        |i, random| (random % 100) << 40 | i,
        |i, _| (i % 10) << 48 | (i / 10 % 10) << 40 | (i / 100),
    ];

    #[test]
    #[cfg_attr(miri, ignore = "too many keys")]
    fn most_keys_are_found_without_a_descent_once_they_have_been_looked_up() {
        let n = 100_000;
        for key in KEYS {
            let tree = Tree::new(Narrow, &Arc::new(NodeArena::new()));
            let mut random = Random::new(1, 0);
            let keys: Vec<_> = (0..n).map(|i| [key(i, random.word())]).collect();
            for key in &keys {
                tree.insert(key, key[0], 0, &Finger::default());
            }
            let wanted: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            let mut found = vec![None; keys.len()];
            tree.get_many(&wanted, &mut found);
            assert!(found.iter().zip(&keys).all(|(found, key)| *found == Some(key[0])));
            let is_known = |key: &&[u64; 1]| {
                // SAFETY: leaves of this tree.
                let leaf = tree.directory.find(key[0]).map(|addr| unsafe { tree.node(addr) });
                leaf.and_then(|leaf| tree.version_of(leaf, *key)).is_some()
            };
            let known = keys.iter().filter(is_known).count();
            assert!(known > keys.len() / 4 * 3, "{known} of {n}");
            let bytes = tree.directory.bytes() as u64;
            assert!(bytes > 0 && bytes < 2 * n, "{bytes} for {n}");
            let (few, others) = keys.split_at(keys.len() / 100);
            for key in others {
                assert!(tree.remove(key, key[0], || 0));
            }
            assert!(tree.directory.bytes() < 100 * few.len(), "{} for {}", tree.directory.bytes(), few.len());
            for key in few {
                assert!(tree.remove(key, key[0], || 0));
            }
            assert_eq!(tree.directory.bytes(), 0);
        }
    }
}
