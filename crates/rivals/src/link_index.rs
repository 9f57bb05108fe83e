use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_store::{KeptLinks, Link, Tile};

/// The links of a block, one by one in a hash index (the chain consolidation of
/// OneShotGC, which TB-Collect 5.5 compares with).
#[derive(Debug)]
pub(crate) struct LinkIndex(HashMap<u32, Link, FixedState>);

impl LinkIndex {
    /// The links of a tile.
    pub fn of(tile: &Tile) -> Box<dyn KeptLinks> {
        Box::new(Self(tile.links().collect()))
    }
}

impl KeptLinks for LinkIndex {
    fn link(&self, slot: u32) -> Option<Link> {
        self.0.get(&slot).copied()
    }

    fn bytes(&self) -> u64 {
        (self.0.len() * size_of::<(u32, Link)>()) as u64
    }
}
