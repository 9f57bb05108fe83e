//! The index that other crates use: one interface over three layouts.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::arena::NodeArena;
use crate::batch::Batch;
use crate::bulk::{Parts, Unsorted};
use crate::finger::Finger;
use crate::layout::Layout;
use crate::narrow::Narrow;
use crate::pairs::Pairs;
use crate::scan::Scan;
use crate::tree::{Insert, Tree};
use crate::wide::{MAX_KEY_WORDS, Wide};

/// An ordered map from keys of `u64` words to `u64` values for many threads.
///
/// See the crate's documentation for keys, read marks and the algorithm.
pub struct Index(AnyTree);

enum AnyTree {
    Narrow(Tree<Narrow>),
    Pairs(Tree<Pairs>),
    Wide(Tree<Wide>),
}

/// The keys that an index is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyForm {
    /// Of up to this many words, from one to [`Index::MAX_KEY_WORDS`]. If that is one, every key has
    /// exactly one word.
    UpTo(usize),
    /// Of exactly two words, of which the second is the value.
    Pairs,
}

impl KeyForm {
    /// Whether an entry is one of these.
    pub fn has(self, key: &[u64], value: u64) -> bool {
        match self {
            Self::UpTo(1) => key.len() == 1,
            Self::UpTo(words) => (1..=words).contains(&key.len()),
            Self::Pairs => key.len() == 2 && key[1] == value,
        }
    }
}

/// Up to this many words.
impl From<usize> for KeyForm {
    fn from(words: usize) -> Self {
        Self::UpTo(words)
    }
}

/// Calls the same method on the tree of any layout.
macro_rules! dispatch {
    ($index:expr, $tree:ident => $call:expr) => {
        match &$index.0 {
            AnyTree::Narrow($tree) => $call,
            AnyTree::Pairs($tree) => $call,
            AnyTree::Wide($tree) => $call,
        }
    };
}

impl Index {
    /// The longest key an index can hold, in words.
    pub const MAX_KEY_WORDS: usize = MAX_KEY_WORDS;

    /// An empty index for such keys; a number stands for [`KeyForm::UpTo`].
    ///
    /// # Panics
    /// If that number is not in `1..=`[`Index::MAX_KEY_WORDS`].
    pub fn new(keys: impl Into<KeyForm>, arena: &Arc<NodeArena>) -> Self {
        Self(match checked(keys) {
            KeyForm::UpTo(1) => AnyTree::Narrow(Tree::new(Narrow, arena)),
            KeyForm::UpTo(words) => AnyTree::Wide(Tree::new(Wide::new(words), arena)),
            KeyForm::Pairs => AnyTree::Pairs(Tree::new(Pairs, arena)),
        })
    }

    /// An index of entries in strictly ascending key order. Each node is filled
    /// to the fraction `fill` (between one half and one) of its capacity.
    ///
    /// # Errors
    /// If the entries are not in order.
    ///
    /// # Panics
    /// If a key is none of these, as in [`Index::new`] and [`Index::insert`].
    pub fn bulk_load<K: AsRef<[u64]>>(
        keys: impl Into<KeyForm>,
        arena: &Arc<NodeArena>,
        entries: impl IntoIterator<Item = (K, u64)>,
        fill: f64,
    ) -> Result<Self, Unsorted> {
        Ok(Self(match checked(keys) {
            KeyForm::UpTo(1) => AnyTree::Narrow(Tree::bulk_load(Narrow, arena, entries, fill)?),
            KeyForm::UpTo(words) => AnyTree::Wide(Tree::bulk_load(Wide::new(words), arena, entries, fill)?),
            KeyForm::Pairs => AnyTree::Pairs(Tree::bulk_load(Pairs, arena, entries, fill)?),
        }))
    }

    /// The same from entries in parts, on this many threads. `None` if the
    /// entries are not in strictly ascending order or a part cannot be read.
    ///
    /// # Panics
    /// As [`Index::bulk_load`].
    pub fn bulk_load_parts(
        keys: impl Into<KeyForm>,
        arena: &Arc<NodeArena>,
        parts: &impl Parts,
        threads: usize,
        fill: f64,
    ) -> Option<Self> {
        Some(Self(match checked(keys) {
            KeyForm::UpTo(1) => AnyTree::Narrow(Tree::bulk_load_parts(Narrow, arena, parts, threads, fill)?),
            KeyForm::UpTo(words) => {
                AnyTree::Wide(Tree::bulk_load_parts(Wide::new(words), arena, parts, threads, fill)?)
            }
            KeyForm::Pairs => AnyTree::Pairs(Tree::bulk_load_parts(Pairs, arena, parts, threads, fill)?),
        }))
    }

    /// The value of `key`.
    ///
    /// If there is none and `mark` is given, raises the read mark of the key's
    /// leaf to `mark`: from then on an insert of the key with an older
    /// timestamp is forbidden. Lookup and mark are one atomic step.
    ///
    /// # Panics
    /// If the index is not for such a key ([`KeyForm`]).
    #[inline]
    pub fn get(&self, key: &[u64], mark: Option<u64>) -> Option<u64> {
        dispatch!(self, tree => { check_key(tree, key); tree.get(key, mark) })
    }

    /// The values of keys, looked up side by side, each at its own moment. Leaves no
    /// marks: who relies on a key's absence looks for it again by [`Index::get`].
    ///
    /// # Panics
    /// As [`Index::get`], and if `found` is not as long as `keys`.
    pub fn get_many(&self, keys: &[&[u64]], found: &mut [Option<u64>]) {
        dispatch!(self, tree => {
            keys.iter().for_each(|key| check_key(tree, key));
            tree.get_many(keys, found);
        });
    }

    /// Appends to `found` the values of the first entries of ranges that go forward, at most `most` of
    /// each, looked up side by side. Only to bring in what they lead to: beside writers, some of the
    /// entries may be missing.
    pub fn first_values(&self, ranges: &mut [Scan], most: usize, found: &mut Vec<u64>) {
        dispatch!(self, tree => tree.first_values(ranges, most, found));
    }

    /// Inserts an entry, unless its key is present or a reader newer than `ts`
    /// found the key absent.
    ///
    /// # Panics
    /// If the index is not for such a key ([`KeyForm`]).
    #[inline]
    pub fn insert(&self, key: &[u64], value: u64, ts: u64) -> Insert {
        self.insert_near(&Finger::default(), key, value, ts)
    }

    /// The same. Looks first at the leaf into which the last insert with this finger has put its
    /// key.
    ///
    /// # Panics
    /// As [`Index::insert`].
    #[inline]
    pub fn insert_near(&self, finger: &Finger, key: &[u64], value: u64, ts: u64) -> Insert {
        dispatch!(self, tree => {
            check_key(tree, key);
            assert!(tree.layout.holds(key, value), "the second word of a key is not its value");
            tree.insert(key, value, ts, finger)
        })
    }

    /// Puts a finger where each of some keys is to be inserted. The cache misses of their descents
    /// overlap. Of keys that belong into the same leaf, only the first finds its finger right.
    ///
    /// # Panics
    /// As [`Index::get`], and if there are not as many fingers as keys.
    pub fn put_fingers(&self, keys: &[&[u64]], fingers: &[Finger]) {
        dispatch!(self, tree => {
            keys.iter().for_each(|key| check_key(tree, key));
            tree.put_fingers(keys, fingers);
        });
    }

    /// Whether [`Index::insert_near`] would need no descent, unless the leaf of the finger is full
    /// or changes first.
    ///
    /// # Panics
    /// If the index is not for such a key ([`KeyForm`]).
    #[inline]
    pub fn is_near(&self, finger: &Finger, key: &[u64]) -> bool {
        dispatch!(self, tree => { check_key(tree, key); tree.at_finger(finger, key).is_some() })
    }

    /// The read mark of the key's leaf. Of all who found the key absent before it
    /// was entered, none has a newer timestamp.
    ///
    /// # Panics
    /// If the index is not for such a key ([`KeyForm`]).
    pub fn mark(&self, key: &[u64]) -> u64 {
        dispatch!(self, tree => { check_key(tree, key); tree.mark(key) })
    }

    /// Removes `key` if its value is `value`. Returns whether it did. In the
    /// same atomic step it calls `floor` and raises the read mark of the leaf to
    /// what that returns.
    ///
    /// # Panics
    /// If the index is not for such a key ([`KeyForm`]).
    #[inline]
    pub fn remove(&self, key: &[u64], value: u64, floor: impl Fn() -> u64) -> bool {
        dispatch!(self, tree => { check_key(tree, key); tree.remove(key, value, floor) })
    }

    /// The number of entries, exact while nobody writes. Visits every leaf.
    pub fn len(&self) -> usize {
        dispatch!(self, tree => tree.len())
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many entries lie in a range, from the nodes on the way to its
    /// ends and a few between them: exact if it is short, and fast however long it
    /// is.
    pub fn estimate(&self, lower: Bound<&[u64]>, upper: Bound<&[u64]>) -> u64 {
        dispatch!(self, tree => tree.estimate(lower, upper))
    }

    /// Bytes of memory that the index's nodes occupy.
    pub fn bytes(&self) -> u64 {
        dispatch!(self, tree => tree.bytes())
    }

    /// Bytes of free nodes of the arena that the index can take. Indexes with nodes of the same
    /// size share them.
    pub fn spare_bytes(&self) -> u64 {
        dispatch!(self, tree => tree.arena.free_bytes(tree.layout.class()))
    }
}

impl Scan {
    /// Replaces `out` with the next entries in scan order, all from one leaf at
    /// one moment. There may be none although more follow. Returns false, with
    /// `out` empty, once the range is exhausted.
    ///
    /// If `mark` is given, the leaf's read mark is raised to it, whether or not
    /// there were entries. From then on, inserts with older timestamps into the
    /// part of the range read so far are refused.
    pub fn next_batch(&mut self, index: &Index, mark: Option<u64>, out: &mut Batch) -> bool {
        dispatch!(index, tree => tree.scan(self, mark, out))
    }
}

impl Batch {
    /// Whether the leaf that the last [`Scan::next_batch`] has read is unchanged since. Then no entry has come to the part
    /// of it that was read, nor gone. Also true if nothing was read.
    pub fn is_current(&self, index: &Index) -> bool {
        self.leaf.is_none_or(|seen| dispatch!(index, tree => tree.is_as_seen(seen)))
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = match &self.0 {
            AnyTree::Narrow(_) => "narrow",
            AnyTree::Pairs(_) => "pairs",
            AnyTree::Wide(_) => "wide",
        };
        f.debug_struct("Index").field("layout", &layout).field("bytes", &self.bytes()).finish()
    }
}

fn checked(keys: impl Into<KeyForm>) -> KeyForm {
    let keys = keys.into();
    if let KeyForm::UpTo(words) = keys {
        assert!((1..=MAX_KEY_WORDS).contains(&words), "an index cannot hold keys of {words} words");
    }
    keys
}

#[inline(always)]
fn check_key<L: Layout>(tree: &Tree<L>, key: &[u64]) {
    assert!(tree.layout.accepts(key.len()), "a key has {} words", key.len());
}
