//! The laboratory's collectors: the published ones that TB-Collect is compared
//! with, as `docs/collectors.md` describes them.
//!
//! An application does not link this crate. It depends on the product, which
//! does not know it. Each file here defines one constant of the type
//! [`Collector`], to be given to the engine's options.
//!
//! ```
//! assert_eq!(pantile_rivals::by_name("steam"), Some(pantile_rivals::STEAM));
//! assert!(pantile_rivals::all().contains(&pantile_rivals::Collector::TB_COLLECT));
//! ```

mod deuteronomy;
mod ermia;
mod free_slots;
mod freeing;
mod hana;
mod hekaton;
mod hyper;
mod link_index;
mod lists;
mod n2db;
mod one_shot;
mod steam;
mod tb_collect_hash;
mod version_by_version;
mod zen;

pub use deuteronomy::DEUTERONOMY;
pub use ermia::ERMIA;
pub use free_slots::FreeSlots;
pub use hana::HANA;
pub use hekaton::HEKATON;
pub use hyper::HYPER;
pub use n2db::N2DB;
pub use one_shot::ONE_SHOT;
pub use pantile_reclaim::Collector;
pub use steam::{STEAM, STEAM_WATERMARK};
pub use tb_collect_hash::TB_COLLECT_HASH;
pub use zen::ZEN;

/// Every collector, in the order in which they are listed and compared.
const ALL: &[Collector] = &[
    Collector::NONE,
    HYPER,
    HEKATON,
    HANA,
    DEUTERONOMY,
    ERMIA,
    STEAM,
    STEAM_WATERMARK,
    N2DB,
    ZEN,
    ONE_SHOT,
    Collector::TB_COLLECT_EAGER,
    TB_COLLECT_HASH,
    Collector::TB_COLLECT,
];

/// Every collector: those of this crate and those of the product.
pub fn all() -> &'static [Collector] {
    ALL
}

/// The collector of this name.
pub fn by_name(name: &str) -> Option<Collector> {
    ALL.iter().copied().find(|collector| collector.name() == name)
}
