//! Reading contents through the cache of rows, if there is one.

use std::cell::Cell;

use elsa::FrozenVec;
use pantile_base::Address;
use pantile_store::{Content, HEADER_BYTES, KeptContent, RowCache};

use crate::engine::core::Core;

/// Bytes that a transaction may hold of the cache. From there on it reads where contents lie, so
/// that one that reads much, or stays open for long, holds little.
const MOST_HELD: usize = 1 << 20;

/// Copies that a transaction has read. They stay until it ends, because rows are borrowed from it, whether the cache
/// still has them or not (I-3).
#[derive(Default)]
pub(super) struct RowsInUse {
    held: FrozenVec<KeptContent>,
    bytes: Cell<usize>,
}

impl RowsInUse {
    /// The content at an address that is protected while it is read, copied or where it lies.
    #[inline(always)]
    pub fn content<'t>(&'t self, core: &'t Core, address: Address) -> Content<'t> {
        match &core.row_cache {
            None => core.store.content(address),
            Some(cache) => self.through(cache, core, address),
        }
    }

    /// The same, of which only the header may be looked at.
    #[inline(always)]
    pub fn header<'t>(&'t self, core: &'t Core, address: Address) -> Content<'t> {
        match &core.row_cache {
            None => core.store.content_header(address),
            Some(cache) => self.header_through(cache, core, address),
        }
    }

    #[inline(never)]
    fn through<'t>(&'t self, cache: &RowCache, core: &'t Core, address: Address) -> Content<'t> {
        let store = &core.store;
        if !self.may_use(cache, core) {
            return store.content(address);
        }
        let kept = store.kept(cache, address).or_else(|| store.keep(cache, address));
        kept.map_or_else(|| store.content(address), |kept| self.hold(kept))
    }

    #[inline(never)]
    fn header_through<'t>(&'t self, cache: &RowCache, core: &'t Core, address: Address) -> Content<'t> {
        let kept = self.may_use(cache, core).then(|| core.store.kept(cache, address)).flatten();
        // A header alone does not make a row one that is read often.
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
