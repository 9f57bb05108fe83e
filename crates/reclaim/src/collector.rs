use std::fmt;
use std::hash::{Hash, Hasher};

use crate::{GcOptions, NoGc, Reclaimer, TbCollect};

/// What is known about a collector before it works.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The name that commands and records use for it.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Makes it. The number is how many sets of queues it should have.
    pub build: fn(GcOptions, usize) -> Box<dyn Reclaimer>,
}

/// Which collector frees the space of versions that no transaction can see.
///
/// This is a handle to a [`Description`]. A crate with a collector of its own defines a constant of
/// this type, which can be given to the engine like the constants below. Two handles are equal if
/// their names are equal.
///
/// ```
/// use pantile_reclaim::Collector;
/// assert_eq!(Collector::default(), Collector::TB_COLLECT);
/// assert_eq!(Collector::TB_COLLECT.to_string(), "tb-collect");
/// ```
#[derive(Clone, Copy)]
pub struct Collector(&'static Description);

impl Collector {
    /// TB-Collect: frees whole blocks, without walking a chain. The default.
    pub const TB_COLLECT: Self = Self::new(&Description {
        name: "tb-collect",
        about: "frees whole blocks, without walking a chain",
        build: |options, shards| Box::new(TbCollect::new(options, shards)),
    });

    /// TB-Collect as it was published. Every update of a version writes the header of its block to
    /// the medium.
    pub const TB_COLLECT_EAGER: Self = Self::new(&Description {
        name: "tb-collect-eager",
        about: "tb-collect as published, with a block header written for each update",
        build: |options, shards| Box::new(TbCollect::eager(options, shards)),
    });

    /// No collector: the space of old versions is never reused.
    pub const NONE: Self =
        Self::new(&Description { name: "none", about: "frees nothing", build: |_, _| Box::new(NoGc) });

    /// A handle to this description.
    pub const fn new(description: &'static Description) -> Self {
        Self(description)
    }

    /// The name that commands and records use for it.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// What it does, in one line.
    pub const fn about(self) -> &'static str {
        self.0.about
    }

    /// Makes the collector, with this many sets of queues.
    pub fn build(self, options: GcOptions, shards: usize) -> Box<dyn Reclaimer> {
        (self.0.build)(options, shards)
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self::TB_COLLECT
    }
}

impl PartialEq for Collector {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Collector {}

impl Hash for Collector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
