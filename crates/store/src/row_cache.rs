//! A row cache: copies of single contents in memory, for a medium whose reads wait.
//!
//! It follows the Met-Cache of Zen+ (Zhong et al., VLDB Journal 2023, section 3.2): it keeps a row
//! and not the page around it, and what was not read for long gives way. Contents never change
//! (I-3), so a copy is never out of date. But an address may come to name another content, when its
//! block is freed and opened again. So a copy belongs to an address in one generation of its block.

use std::sync::Arc;

use foldhash::fast::FixedState;
use pantile_base::Address;
use pantile_base::control::{Control, is_removed};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::content::{Content, HEADER_BYTES};
use crate::store::Store;

/// What a copy takes beside its bytes: its entry, and the headers of its allocation.
const OVERHEAD: u64 = 112;

/// Parts with a lock of their own. In the smallest cache each has room for a row of any size.
const SHARDS: usize = 16;

/// Bytes of a row with its header, as it is taken when room for entries is planned.
const USUAL_BYTES: u64 = 256;

/// The bytes of a content, header and row.
pub type KeptContent = Arc<[u8]>;

/// Copies of contents. It replaces them by a form of CLOCK (`quick_cache`: Clock-Pro with
/// parts of S3-FIFO), so that one scan does not drive out what is read again and again.
#[derive(Debug)]
pub struct RowCache {
    /// By address, with when its block was opened.
    kept: Cache<Address, (u64, KeptContent), ByBytes, FixedState>,
    /// Whether each read of the medium is worth it, and not only those that may wait for a device.
    always: bool,
}

/// What the cache has done since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowCacheStats {
    /// Bytes that it takes.
    pub bytes: u64,
    /// Looks for a content that found it.
    pub hits: u64,
    /// Those that did not.
    pub misses: u64,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Address, (u64, KeptContent)> for ByBytes {
    fn weight(&self, _: &Address, (_, bytes): &(u64, KeptContent)) -> u64 {
        bytes.len() as u64 + OVERHEAD
    }
}

impl RowCache {
    /// A cache of this many bytes in front of the medium of a store.
    ///
    /// # Panics
    /// If slots are rewritten within a generation of their block.
    pub fn new(bytes: u64, store: &Store) -> Self {
        assert!(store.options.reuse.is_none(), "a copy is of an address in one generation of its block");
        let usual = (bytes / (USUAL_BYTES + OVERHEAD)) as usize;
        let always = store.medium().facts().cached_in.is_none();
        // The same on each machine, so that what happened can be repeated.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(usual)
            .weight_capacity(bytes)
            .shards(SHARDS)
            .build()
            .expect("both capacities are given");
        let kept = Cache::with_options(options, ByBytes, FixedState::default(), DefaultLifecycle::default());
        Self { kept, always }
    }

    /// Whether it is of use now. In front of a file that fits into memory it is not.
    #[inline]
    pub fn is_of_use(&self, store: &Store) -> bool {
        self.always || store.may_wait()
    }

    /// Bytes, hits and misses.
    pub fn stats(&self) -> RowCacheStats {
        RowCacheStats { bytes: self.kept.weight(), hits: self.kept.hits(), misses: self.kept.misses() }
    }
}

impl Store {
    /// The copy of a content, if there is one. The caller sees to it that the content stays.
    pub fn kept(&self, cache: &RowCache, address: Address) -> Option<KeptContent> {
        let opened_at = self.generation_of(address);
        let (of, bytes) = cache.kept.get(&address)?;
        (of == opened_at || is_removed(Control::GenerationOfCopies)).then_some(bytes)
    }

    /// Whether there is a copy. Does not count as a use of it.
    pub fn is_kept(&self, cache: &RowCache, address: Address) -> bool {
        cache.kept.peek(&address).is_some_and(|(of, _)| of == self.generation_of(address))
    }

    /// Copies a content, unless it is damaged. The caller sees to it that it stays until then.
    pub fn keep(&self, cache: &RowCache, address: Address) -> Option<KeptContent> {
        if self.may_wait() {
            self.fetch_across(address);
        }
        let bytes = self.copy(cache, address)?;
        self.charge_read(address.offset(), bytes.len() as u64);
        Some(bytes)
    }

    /// A version is superseded by one that was just written. If it has a copy, the other one has one from now on.
    pub fn keep_successor(&self, cache: &RowCache, superseded: Address, successor: Address) {
        if cache.kept.remove(&superseded).is_some() {
            self.copy(cache, successor);
        }
    }

    fn copy(&self, cache: &RowCache, address: Address) -> Option<KeptContent> {
        let bytes = KeptContent::from(self.whole_content(address)?.bytes());
        cache.kept.insert(address, (self.generation_of(address), Arc::clone(&bytes)));
        Some(bytes)
    }

    /// When the block of a content was opened.
    fn generation_of(&self, address: Address) -> u64 {
        let (_, _, block, _) = self.locate(address);
        block.opened_at()
    }
}

impl<'a> Content<'a> {
    /// The content that was copied.
    pub fn of_kept(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() >= HEADER_BYTES);
        Self::new(bytes)
    }
}
