//! Reading contents through the cache of rows, if there is one.

use std::cell::Cell;

use elsa::FrozenVec;
use pantile_base::{Address, TupleId};
use pantile_store::{Content, HEADER_BYTES, KeptContent, RowCache};

use crate::engine::core::Core;

/// Bytes that a transaction may hold of the cache. From there on it reads where contents lie, so
/// that one that reads much, or stays open for long, holds little.
const MOST_HELD: usize = 1 << 20;

/// Copies that a transaction has read. They stay until it ends, because rows are borrowed from it, whether the cache
/// still has them or not (I-3).
pub(super) struct RowsInUse {
    /// Whether there is a cache.
    pub is_cached: bool,
    held: FrozenVec<KeptContent>,
    bytes: Cell<usize>,
}

impl RowsInUse {
    pub fn new(is_cached: bool) -> Self {
        Self { is_cached, held: FrozenVec::new(), bytes: Cell::new(0) }
    }

    /// The content at an address that is protected while it is read, copied or where it lies.
    #[inline(always)]
    pub fn content<'t>(&'t self, core: &'t Core, address: Address) -> Content<'t> {
        if self.is_cached { self.content_through(core, address) } else { core.store.content(address) }
    }

    /// The same, of which only the header may be looked at.
    #[inline(always)]
    pub fn header<'t>(&'t self, core: &'t Core, address: Address) -> Content<'t> {
        if self.is_cached { self.header_through(core, address) } else { core.store.content_header(address) }
    }

    /// Whether the content at an address is one of a tuple. Only its header is looked at.
    #[inline(always)]
    pub fn is_of(&self, core: &Core, address: Address, tuple: TupleId) -> bool {
        match self.is_cached {
            true => self.header_through(core, address).tuple() == tuple,
            false => core.store.is_of(address, tuple),
        }
    }

    #[cold]
    fn content_through<'t>(&'t self, core: &'t Core, address: Address) -> Content<'t> {
        let store = &core.store;
        let Some(cache) = core.row_cache.as_ref().filter(|cache| self.may_use(cache, core)) else {
            return store.content(address);
        };
        let kept = store.kept(cache, address).or_else(|| store.keep(cache, address));
        kept.map_or_else(|| store.content(address), |kept| self.hold(kept))
    }

    #[cold]
    fn header_through<'t>(&'t self, core: &'t Core, address: Address) -> Content<'t> {
        let cache = core.row_cache.as_ref().filter(|cache| self.may_use(cache, core));
        // A header alone does not make a row one that is read often.
        let kept = cache.and_then(|cache| core.store.kept(cache, address));
        kept.map_or_else(|| core.store.content_header(address), |kept| self.hold(kept))
    }

    fn may_use(&self, cache: &RowCache, core: &Core) -> bool {
        self.bytes.get() < MOST_HELD && cache.is_of_use(&core.store)
    }

    fn hold(&self, kept: KeptContent) -> Content<'_> {
        let more = size_of::<KeptContent>() + kept.len().max(HEADER_BYTES);
        self.bytes.set(self.bytes.get() + more);
        Content::of_kept(self.held.push_get(kept))
    }
}
