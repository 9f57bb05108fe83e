//! Reading contents through the cache of rows, if there is one.

use std::cell::Cell;

use elsa::FrozenVec;
use pantile_base::{Address, TupleId};
use pantile_store::{Content, KeptContent};

use crate::engine::core::Core;

/// Bytes that a transaction may hold of the cache. From there on it reads where contents lie, so
/// that one that reads much, or stays open for long, holds little.
const MOST_HELD: usize = 1 << 20;

/// Copies that a transaction has read. They stay until it ends, because rows are borrowed from it, whether the cache
/// still has them or not (I-3).
pub(super) struct RowsInUse {
    /// Whether it reads through the cache.
    pub is_cached: bool,
    held: FrozenVec<KeptContent>,
    bytes: Cell<usize>,
}

impl RowsInUse {
    /// Of a transaction that begins.
    pub fn new(core: &Core) -> Self {
        let is_cached = core.row_cache.as_ref().is_some_and(|cache| cache.is_of_use(&core.store));
        Self { is_cached, held: FrozenVec::new(), bytes: Cell::new(0) }
    }

    /// The content at an address that is protected while it is read, copied or where it lies.
    #[inline(always)]
    pub fn content<'t>(&'t self, core: &'t Core, address: Address) -> Content<'t> {
        if self.is_cached { self.content_through(core, address) } else { core.store.content(address) }
    }

    /// What `look` makes of its header, which is all that it may look at.
    #[inline(always)]
    pub fn look<T>(&self, core: &Core, address: Address, look: impl Fn(Content<'_>) -> T) -> T {
        match self.is_cached {
            true => self.look_through(core, address, look),
            false => look(core.store.content_header(address)),
        }
    }

    /// Whether the content at an address is one of a tuple. Only its header is looked at.
    #[inline(always)]
    pub fn is_of(&self, core: &Core, address: Address, tuple: TupleId) -> bool {
        match self.is_cached {
            true => self.look_through(core, address, |content| content.tuple() == tuple),
            false => core.store.is_of(address, tuple),
        }
    }

    /// Whether that content is a tombstone.
    #[inline(always)]
    pub fn is_tombstone(&self, core: &Core, address: Address) -> bool {
        match self.is_cached {
            true => self.look_through(core, address, |content| content.flags().is_tombstone()),
            false => core.store.is_tombstone(address),
        }
    }

    /// Whether there is a content at an address and it is a row. Only its header is looked at.
    #[inline(always)]
    pub fn is_row(&self, core: &Core, address: Address) -> bool {
        !address.is_none() && self.look(core, address, |content| !content.flags().is_tombstone())
    }

    /// Whether reading the content at an address will find a copy, and nothing else looks where it lies.
    pub fn has(&self, core: &Core, address: Address) -> bool {
        let is_kept = |cache| core.store.is_kept(cache, address);
        self.is_cached
            && !core.options.verify_reads
            && self.may_hold()
            && core.row_cache.as_ref().is_some_and(is_kept)
    }

    /// Makes no copy: a look at a header does not make a row one that is read often.
    #[cold]
    fn look_through<T>(&self, core: &Core, address: Address, look: impl Fn(Content<'_>) -> T) -> T {
        let kept = core.row_cache.as_ref().and_then(|cache| core.store.kept(cache, address));
        match kept {
            Some(kept) => look(Content::of_kept(&kept)),
            None => look(core.store.content_header(address)),
        }
    }

    #[cold]
    fn content_through<'t>(&'t self, core: &'t Core, address: Address) -> Content<'t> {
        let store = &core.store;
        let kept = core
            .row_cache
            .as_ref()
            .filter(|_| self.may_hold())
            .and_then(|cache| store.kept(cache, address).or_else(|| store.keep(cache, address)));
        match kept {
            Some(kept) => self.hold(kept),
            None => {
                if store.may_wait() {
                    store.fetch_across(address);
                }
                store.content(address)
            }
        }
    }

    fn may_hold(&self) -> bool {
        self.bytes.get() < MOST_HELD
    }

    fn hold(&self, kept: KeptContent) -> Content<'_> {
        self.bytes.set(self.bytes.get() + size_of::<KeptContent>() + kept.len());
        Content::of_kept(self.held.push_get(kept))
    }
}
