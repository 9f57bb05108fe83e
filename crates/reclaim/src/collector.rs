use std::fmt;

use pantile_store::Layout;

use crate::deuteronomy::Deuteronomy;
use crate::ermia::Ermia;
use crate::hana::Hana;
use crate::hekaton::Hekaton;
use crate::hyper::Hyper;
use crate::n2db::N2db;
use crate::one_shot::OneShot;
use crate::steam::Steam;
use crate::zen::Zen;
use crate::{GcOptions, NoGc, Reclaimer, TbCollect};

/// Which collector frees the space of versions that nobody can see.
///
/// `docs/collectors.md` says how each works, what it costs and where it
/// differs from its paper.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Collector {
    /// None: space of old versions is never used again.
    None,
    /// HyPer: global lists of transactions, a watermark at each commit.
    Hyper,
    /// Hekaton: found in the background, removed in the foreground.
    Hekaton,
    /// SAP HANA: found by intervals and removed in the background.
    Hana,
    /// Deuteronomy: epochs without end, a new one every 100 transactions.
    Deuteronomy,
    /// ERMIA: epochs in three phases.
    Ermia,
    /// Steam: each update prunes the chain that it makes longer.
    Steam,
    /// Steam without eager pruning.
    SteamWatermark,
    /// N2DB: pruning at commit, with batched writes to the medium.
    N2db,
    /// Zen: per-thread queues, scanned in the background.
    Zen,
    /// OneShotGC: old versions in time partitions that are freed at once.
    OneShot,
    /// TB-Collect as it was published: a block's header goes to the medium
    /// with every update of one of its versions.
    TbCollectEager,
    /// TB-Collect with OneShotGC's hash index for long transactions.
    TbCollectHash,
    /// TB-Collect: whole blocks, without walking a chain.
    #[default]
    TbCollect,
}

impl Collector {
    /// All collectors.
    pub const ALL: &'static [Collector] = &[
        Collector::None,
        Collector::Hyper,
        Collector::Hekaton,
        Collector::Hana,
        Collector::Deuteronomy,
        Collector::Ermia,
        Collector::Steam,
        Collector::SteamWatermark,
        Collector::N2db,
        Collector::Zen,
        Collector::OneShot,
        Collector::TbCollectEager,
        Collector::TbCollectHash,
        Collector::TbCollect,
    ];

    /// The name by which commands and records know it.
    pub fn name(self) -> &'static str {
        match self {
            Collector::None => "none",
            Collector::Hyper => "hyper",
            Collector::Hekaton => "hekaton",
            Collector::Hana => "hana",
            Collector::Deuteronomy => "deuteronomy",
            Collector::Ermia => "ermia",
            Collector::Steam => "steam",
            Collector::SteamWatermark => "steam-watermark",
            Collector::N2db => "n2db",
            Collector::Zen => "zen",
            Collector::OneShot => "one-shot",
            Collector::TbCollectEager => "tb-collect-eager",
            Collector::TbCollectHash => "tb-collect-hash",
            Collector::TbCollect => "tb-collect",
        }
    }

    /// The collector of this name.
    ///
    /// ```
    /// use pantile_reclaim::Collector;
    /// assert_eq!(Collector::by_name("tb-collect"), Some(Collector::TbCollect));
    /// ```
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.name() == name)
    }

    /// How the versions lie that it collects.
    pub fn layout(self) -> Layout {
        match self {
            Collector::None | Collector::TbCollectEager | Collector::TbCollectHash | Collector::TbCollect => {
                Layout::Append
            }
            Collector::OneShot => Layout::Delta,
            _ => Layout::Recycle,
        }
    }

    /// The collector itself, with so many sets of queues.
    pub fn build(self, options: GcOptions, shards: usize) -> Box<dyn Reclaimer> {
        match self {
            Collector::None => Box::new(NoGc),
            Collector::Hyper => Box::new(Hyper::new(options)),
            Collector::Hekaton => Box::new(Hekaton::new(options)),
            Collector::Hana => Box::new(Hana::new(options)),
            Collector::Deuteronomy => Box::new(Deuteronomy::new(options)),
            Collector::Ermia => Box::new(Ermia::new(options)),
            Collector::Steam => Box::new(Steam::new(options)),
            Collector::SteamWatermark => Box::new(Steam::watermark_only(options)),
            Collector::N2db => Box::new(N2db::new(options)),
            Collector::Zen => Box::new(Zen::new(options)),
            Collector::OneShot => Box::new(OneShot::new(options)),
            Collector::TbCollectEager => Box::new(TbCollect::eager(options, shards)),
            Collector::TbCollectHash => Box::new(TbCollect::with_hash_index(options, shards)),
            Collector::TbCollect => Box::new(TbCollect::new(options, shards)),
        }
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
