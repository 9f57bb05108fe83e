//! The layout for keys of several words: heads, records, and a heap.
//!
//! ```text
//! tails of one length:  header | prefix | heads (cap) | values with their tails (cap) | fences
//! other tails:          header | prefix | heads (cap) | values (cap) | places (cap / 2) | fences, tails, free
//! ```
//! The *prefix* is the words that all keys of the node begin with. The *head*
//! of a key is the word after the prefix; the *tail* is the rest. Searches run
//! over the heads, and look at tails only where heads are equal. Tails of one
//! length lie beside their values, so that a look-up reads one line behind the
//! heads. Others are in the heap, and their *places* say where. The capacity in
//! entries (`cap`) is chosen whenever a node is stored, from the mean length of
//! its tails.

mod halves;
mod shape;

use std::cmp::Ordering;

use self::halves::{insert_half, remove_half};
use self::shape::{Shape, load_words, pack, part, tail, unpack, word};
use crate::arena::Class;
use crate::batch::Batch;
use crate::layout::{Content, Guess, Layout, Slot};
use crate::node::{HEADER, Locked, Node, Side, prefetch};
use crate::search::{common_prefix, compare, copy_in, lower_bound, shift_down, shift_up, upper_bound};
use pantile_base::sync::atomic::Ordering::Relaxed;

/// The longest keys, in words.
pub(crate) const MAX_KEY_WORDS: usize = 384;
/// The smallest and the largest node, in words.
const NODE_WORDS: (usize, usize) = (264, 4104);
/// How many keys and fences of the greatest length a node holds, unless that
/// makes it too large. Splits rely on six.
const MAXIMAL_KEYS: usize = 16;
const _: () = assert!(HEADER + 6 * (MAX_KEY_WORDS + 3) <= NODE_WORDS.1);
/// Cache lines to prefetch: header, prefix and most heads.
const PREFETCH_LINES: usize = 12;
/// A node with this many entries or fewer is never split before it is really
/// full.
const FEW: usize = 4;

/// Keys of up to `max_key_words` words.
#[derive(Clone, Copy)]
pub(crate) struct Wide {
    class: Class,
    max_key_words: usize,
}

impl Wide {
    /// The layout for keys of up to `max_key_words` words.
    pub(crate) fn new(max_key_words: usize) -> Self {
        let wanted = HEADER + MAXIMAL_KEYS * (max_key_words + 3);
        let words = wanted.clamp(NODE_WORDS.0, NODE_WORDS.1);
        Self { class: Class::holding(words), max_key_words }
    }

    fn reload(&self, node: Node<'_>) -> (Batch, [Option<Vec<u64>>; 2]) {
        let mut entries = Batch::new();
        entries.reserve(self.count(node) + 1, self.key_words(node) + self.max_key_words);
        self.load(node, 0..self.count(node), &mut entries);
        let fences = [Side::Low, Side::High].map(|side| {
            let mut fence = Vec::new();
            self.fence(node, side, &mut fence).then_some(fence)
        });
        (entries, fences)
    }

    /// Inserts an entry by storing the node anew: with a new prefix and a new
    /// capacity, and without dead tails.
    #[cold]
    fn insert_anew(&self, node: &Locked<'_>, pos: usize, key: &[u64], value: u64) -> bool {
        if self.is_plainly_full(**node, key) {
            return false;
        }
        let (mut entries, [low, high]) = self.reload(**node);
        entries.insert(pos, key, value);
        let range = 0..entries.len();
        let (few, low, high) = (range.len() <= FEW, low.as_deref(), high.as_deref());
        let content = Content { entries: &entries, range, is_leaf: node.level() == 0, low, high };
        let budget = if few { self.budget() } else { self.budget_anew() };
        let fits = self.cost(&content) <= budget;
        if fits {
            self.store(**node, &content);
        }
        fits
    }

    /// What a node may cost that is stored anew. That leaves some room: storing anew for every insert
    /// would be slow.
    fn budget_anew(&self) -> usize {
        self.budget() / 16 * 15
    }

    /// Whether a node with this key as well would cost more than [`Wide::budget_anew`], if that can
    /// be told from its parts: its prefix stays if the key has it and heads differ. Most nodes that
    /// are split are told by this, and need not be loaded before.
    fn is_plainly_full(&self, node: Node<'_>, key: &[u64]) -> bool {
        let shape @ Shape { count, prefix, .. } = Shape::of(node);
        let head = |pos: usize| word(node, shape.heads_at() + pos);
        let stays = count >= FEW
            && key.len() > prefix
            && head(0) != head(count - 1)
            && compare(part(node, HEADER, prefix), &key[..prefix]).is_eq();
        if !stays {
            return false;
        }
        let new = key.len() - prefix - 1;
        let tails = (0..count).map(|pos| tail(node, shape, pos).len()).sum::<usize>() + new;
        let is_even = shape.even == Some(new);
        let fences = [Side::Low, Side::High].map(|side| unpack(node, node.get(side.word())).len());
        // If tails were of several lengths and are no longer, this is more than it would cost.
        let most_less = if shape.even.is_none() { (count + 1).div_ceil(2) } else { 0 };
        cost_of(count + 1, prefix, tails, fences.iter().sum(), is_even) > self.budget_anew() + most_less
    }
}

/// Searches by tail among the entries `from..to`, whose heads are equal.
#[inline]
fn find_tail(node: Node<'_>, shape: Shape, from: usize, to: usize, rest: &[u64]) -> Slot {
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low.midpoint(high);
        match compare(tail(node, shape, middle), rest) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => {
                return Slot { pos: middle, found: true };
            }
            Ordering::Greater => high = middle,
        }
    }
    Slot { pos: low, found: false }
}

/// How many heads are below that of `key`, whose prefix is the node's.
#[inline(always)]
fn heads_below(node: Node<'_>, shape: Shape, key: &[u64]) -> usize {
    lower_bound(part(node, shape.heads_at(), shape.count), key[shape.prefix])
}

/// Finds `key` among the entries from the first whose head is not below its own. The prefix is its own.
#[inline(always)]
fn find_from(node: Node<'_>, shape: Shape, from: usize, key: &[u64]) -> Slot {
    let (Some(&head), Some(rest)) = (key.get(shape.prefix), key.get(shape.prefix + 1..)) else {
        return Slot { pos: from, found: false };
    };
    let heads = part(node, shape.heads_at(), shape.count);
    let same = |pos: usize| heads.get(pos).is_some_and(|word| word.load(Relaxed) == head);
    match (same(from), same(from + 1)) {
        (false, _) => Slot { pos: from, found: false },
        (true, false) => find_tail(node, shape, from, from + 1, rest),
        (true, true) => find_tail(node, shape, from, from + upper_bound(&heads[from..], head), rest),
    }
}

/// Compares `key` with all keys of the node, as far as the prefix decides.
#[inline(always)]
fn compare_prefix(node: Node<'_>, shape: Shape, key: &[u64]) -> Ordering {
    if key.len() <= shape.prefix {
        // A key that is the prefix or a part of it is below all longer keys.
        return compare(part(node, HEADER, shape.prefix), key).reverse().then(Ordering::Less);
    }
    compare(part(node, HEADER, shape.prefix), &key[..shape.prefix]).reverse()
}

impl Layout for Wide {
    const ONE_WORD: bool = false;

    #[inline(always)]
    fn class(&self) -> Class {
        self.class
    }

    #[inline(always)]
    fn accepts(&self, key_words: usize) -> bool {
        (1..=self.max_key_words).contains(&key_words)
    }

    #[inline(always)]
    fn prefetch(&self, addr: usize) {
        prefetch(addr, PREFETCH_LINES);
    }

    #[inline]
    fn count(&self, node: Node<'_>) -> usize {
        Shape::of(node).count.min(self.class.words())
    }

    fn key_words(&self, node: Node<'_>) -> usize {
        let shape = Shape::of(node);
        self.count(node) * (shape.prefix + shape.record()) + shape.top.saturating_sub(shape.heap_at())
    }

    /// All keys but those whose heads are equal are told apart by their heads.
    #[inline(always)]
    fn guess(&self, leaf: Node<'_>, key: &[u64]) -> Option<Guess> {
        let shape = Shape::of(leaf);
        let is_among = compare_prefix(leaf, shape, key).is_eq();
        is_among.then(|| Guess { place: heads_below(leaf, shape, key), window: 1 })
    }

    #[inline(always)]
    fn prefetch_guess(&self, leaf: Node<'_>, guess: Option<Guess>) {
        if let Some(Guess { place, .. }) = guess {
            let (shape, addr) = (Shape::of(leaf), leaf.words().as_ptr().addr());
            prefetch(addr + shape.record_at(place) * 8, 1);
            match shape.even {
                Some(len) => prefetch(addr + (shape.record_at(place) + len) * 8, 1),
                None => prefetch(addr + (shape.places_at() + place / 2) * 8, 1),
            }
        }
    }

    #[inline(always)]
    fn find_guess(&self, leaf: Node<'_>, key: &[u64], guess: Option<Guess>) -> Slot {
        match guess {
            Some(Guess { place, .. }) => find_from(leaf, Shape::of(leaf), place, key),
            None => self.find(leaf, key),
        }
    }

    #[inline]
    fn find(&self, node: Node<'_>, key: &[u64]) -> Slot {
        let shape = Shape::of(node);
        if shape.prefix > 0 {
            match compare_prefix(node, shape, key) {
                Ordering::Equal => {}
                Ordering::Less => {
                    return Slot { pos: 0, found: false };
                }
                Ordering::Greater => {
                    return Slot { pos: shape.count, found: false };
                }
            }
        }
        find_from(node, shape, heads_below(node, shape, key), key)
    }

    #[inline(always)]
    fn value(&self, node: Node<'_>, pos: usize) -> u64 {
        word(node, Shape::of(node).record_at(pos))
    }

    fn load(&self, node: Node<'_>, positions: impl Iterator<Item = usize> + Clone, out: &mut Batch) {
        let shape = Shape::of(node);
        let prefix = part(node, HEADER, shape.prefix);
        for pos in positions {
            let head = word(node, shape.heads_at() + pos);
            let rest = load_words(tail(node, shape, pos));
            out.push_parts(load_words(prefix), head, rest, word(node, shape.record_at(pos)));
        }
    }

    fn fence(&self, node: Node<'_>, side: Side, out: &mut Vec<u64>) -> bool {
        out.clear();
        out.extend(load_words(unpack(node, node.get(side.word()))));
        node.has_fence(side)
    }

    #[inline]
    fn is_below_fence(&self, leaf: Node<'_>, side: Side, key: &[u64]) -> bool {
        match leaf.has_fence(side) {
            true => compare(unpack(leaf, leaf.get(side.word())), key).is_gt(),
            false => side == Side::High,
        }
    }

    fn insert(&self, node: &Locked<'_>, pos: usize, key: &[u64], value: u64) -> bool {
        let (node_ref, shape) = (**node, Shape::of(**node));
        let Shape { count, cap, prefix, top, even } = shape;
        let fits = count > 0
            && count < cap
            && key.len() > prefix
            && match even {
                Some(len) => key.len() - prefix - 1 == len,
                None => top + key.len() - prefix - 1 <= self.class.words(),
            }
            && compare(part(node_ref, HEADER, prefix), &key[..prefix]).is_eq();
        if !fits {
            return self.insert_anew(node, pos, key, value);
        }
        let (tail, record) = (&key[prefix + 1..], shape.record());
        shift_up(part(node_ref, shape.heads_at() + pos, count + 1 - pos), 1);
        shift_up(part(node_ref, shape.record_at(pos), (count + 1 - pos) * record), record);
        node.set(shape.heads_at() + pos, key[prefix]);
        node.set(shape.record_at(pos), value);
        let (at, top) = if even.is_some() {
            (shape.record_at(pos) + 1, top)
        } else {
            let places = part(node_ref, shape.places_at(), cap.div_ceil(2));
            insert_half(places, pos, count, pack(top, tail.len()));
            (top, top + tail.len())
        };
        copy_in(&node_ref.words()[at..], tail);
        Shape { count: count + 1, top, ..shape }.write(node_ref);
        true
    }

    fn remove(&self, node: &Locked<'_>, pos: usize) {
        let (node, shape) = (**node, Shape::of(**node));
        let (behind, record) = (shape.count - pos, shape.record());
        shift_down(part(node, shape.heads_at() + pos, behind), 1);
        shift_down(part(node, shape.record_at(pos), behind * record), record);
        if shape.even.is_none() {
            remove_half(part(node, shape.places_at(), shape.cap.div_ceil(2)), pos, shape.count);
        }
        Shape { count: shape.count - 1, ..shape }.write(node);
    }

    fn cost(&self, content: &Content<'_>) -> usize {
        let (count, prefix) = (content.range.len(), prefix_of(content));
        let fences = [content.low, content.high].into_iter().flatten().map(<[u64]>::len).sum::<usize>();
        cost_of(count, prefix, tails_of(content, prefix), fences, even_of(content, prefix).is_some())
    }

    fn budget(&self) -> usize {
        self.class.words()
    }

    fn store(&self, node: Node<'_>, content: &Content<'_>) {
        let (count, prefix) = (content.range.len(), prefix_of(content));
        let even = even_of(content, prefix);
        let shape = Shape { count, cap: self.places(content), prefix, top: 0, even };
        let mut heap = Heap { node, top: shape.heap_at() };
        for side in [Side::Low, Side::High] {
            let fence = content.fence(side);
            node.set_has_fence(side, fence.is_some());
            node.set(side.word(), heap.push(fence.unwrap_or(&[])));
        }
        let mut pair = 0;
        for (i, pos) in content.range.clone().enumerate() {
            let key = content.entries.key(pos);
            if i == 0 {
                copy_in(&node.words()[HEADER..], &key[..prefix]);
            }
            node.set(shape.heads_at() + i, key[prefix]);
            node.set(shape.record_at(i), content.entries.value(pos));
            let tail = &key[prefix + 1..];
            if even.is_some() {
                copy_in(&node.words()[shape.record_at(i) + 1..], tail);
                continue;
            }
            pair = pair >> 32 | heap.push(tail) << 32;
            let at = shape.places_at() + i / 2;
            node.set(at, if i & 1 == 0 { pair >> 32 } else { pair });
        }
        Shape { top: heap.top, ..shape }.write(node);
    }
}

impl Wide {
    /// The capacity to choose, if the tails to come are as long as the present
    /// ones.
    fn places(&self, content: &Content<'_>) -> usize {
        let (count, prefix) = (content.range.len(), prefix_of(content));
        let (spare, tails) = (self.budget() - self.cost(content), tails_of(content, prefix));
        let mean = if count == 0 { self.max_key_words } else { tails.div_ceil(count) };
        // In half words: four for head and value, one for the place of the tail if that is not beside the value.
        let place = usize::from(even_of(content, prefix).is_none());
        count + 2 * spare / (4 + place + 2 * mean)
    }
}

/// The words of a node with `count` entries: the header, the prefix, heads, values, places of tails unless
/// all have one length, and tails and fences.
fn cost_of(count: usize, prefix: usize, tails: usize, fences: usize, is_even: bool) -> usize {
    let places = if is_even { 0 } else { count.div_ceil(2) };
    HEADER + prefix + 2 * count + places + tails + fences
}

/// How many words the tails of all keys have.
fn tails_of(content: &Content<'_>, prefix: usize) -> usize {
    let count = content.range.len();
    content.entries.key_words(&content.range) - count * (prefix + usize::from(count > 0))
}

/// How many words every tail has, if all have as many.
fn even_of(content: &Content<'_>, prefix: usize) -> Option<usize> {
    content.entries.key_len(&content.range).map(|len| len - prefix - 1)
}

/// How many words all keys share, leaving each key at least one more.
fn prefix_of(content: &Content<'_>) -> usize {
    if content.range.is_empty() {
        return 0;
    }
    let first = content.entries.key(content.range.start);
    let last = content.entries.key(content.range.end - 1);
    common_prefix(first, last).min(first.len() - 1)
}

/// Writes runs of words one after another.
struct Heap<'a> {
    node: Node<'a>,
    top: usize,
}

impl Heap<'_> {
    fn push(&mut self, words: &[u64]) -> u64 {
        let place = pack(self.top, words.len());
        copy_in(&self.node.words()[self.top..], words);
        self.top += words.len();
        place
    }
}
