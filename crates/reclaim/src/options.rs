use std::time::Duration;

/// Settings of a collector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GcOptions {
    /// The share of a block's contents that must be superseded before the block is reclaimed even
    /// though space is not short. From 0.5 to 1 (theta, TB-Collect 4.3: 0.9).
    pub theta: f64,
    /// The share of the data that all blocks waiting to be reclaimed may hold together. From 0 to 1
    /// (TB-Collect 4.3: 0.15).
    pub queue_share: f64,
    /// How many bytes of the medium may be taken for each live byte, in addition to 16 MB. From 1
    /// to 1,000.
    ///
    /// With [`Pacing::Adaptive`] the collector keeps to this target. If a burst of updates takes
    /// more, the excess is given back within two seconds, unless a running transaction needs it.
    /// While little is updated, the 16 MB shrink to 1 MB and what is kept ready.
    ///
    /// Less space costs more writes. If updates are spread over all the data, each byte written
    /// causes 0.23 bytes of copies at 2 (the default), 0.59 at 1.5, and 1.27 at 1.25. A target
    /// below 1.06 works as if it were 1.06.
    pub space_target: f64,
    /// Length of an epoch (TB-Collect 4.2: 40 ms).
    pub epoch: Duration,
    /// When the collector processes its queues.
    pub pacing: Pacing,
    /// Whether blocks that a long transaction bypasses are reclaimed while it runs (TB-Collect 4.4,
    /// second case).
    pub bypass: bool,
    /// How often the background thread runs, in a collector that has one (Steam, Table 4: 1 ms).
    pub interval: Duration,
    /// After how many commits a new epoch may begin, in a collector that counts commits. `None` is
    /// the published number (Steam, Table 4: 100, or 1 for ERMIA).
    pub epoch_commits: Option<u64>,
}

impl Default for GcOptions {
    fn default() -> Self {
        Self {
            theta: 0.9,
            queue_share: 0.15,
            space_target: 2.0,
            epoch: Duration::from_millis(40),
            pacing: Pacing::Adaptive,
            bypass: true,
            interval: Duration::from_millis(1),
            epoch_commits: None,
        }
    }
}

impl GcOptions {
    /// The published values only. Blocks wait in queues that hold a fixed share of the data
    /// (TB-Collect 4.3), no matter how much space they take.
    pub fn published() -> Self {
        Self { pacing: Pacing::Fixed, ..Self::default() }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// A sentence that names the wrong option and its valid range.
    pub fn check(&self) -> Result<(), String> {
        if !(0.5..=1.0).contains(&self.theta) {
            return Err(format!("theta is {}; it can be from 0.5 to 1", self.theta));
        }
        if !(0.0..=1.0).contains(&self.queue_share) {
            return Err(format!("queue_share is {}; it can be from 0 to 1", self.queue_share));
        }
        if !(1.0..=1000.0).contains(&self.space_target) {
            return Err(format!("space_target is {}; it can be from 1 to 1000", self.space_target));
        }
        if self.epoch < Duration::from_micros(100) || self.epoch > Duration::from_secs(10) {
            return Err(format!("epoch is {:?}; it can be from 100 us to 10 s", self.epoch));
        }
        if self.interval < Duration::from_micros(100) || self.interval > Duration::from_secs(60) {
            return Err(format!("interval is {:?}; it can be from 100 us to 60 s", self.interval));
        }
        if self.epoch_commits == Some(0) {
            return Err("epoch_commits is 0; it can be 1 or more".into());
        }
        Ok(())
    }
}

/// When a collector processes its queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Pacing {
    /// When the queues hold their share of the data (TB-Collect 4.3).
    Fixed,
    /// Earlier than `Fixed`, as chains grow longer, as data is written faster, and as less space is
    /// left. The space target is also kept. (TB-Collect 6.2 leaves this for future work.)
    #[default]
    Adaptive,
}

impl Pacing {
    /// All of them.
    pub const ALL: &'static [Pacing] = &[Pacing::Fixed, Pacing::Adaptive];

    /// The name that commands and records use for it.
    pub fn name(self) -> &'static str {
        match self {
            Pacing::Fixed => "fixed",
            Pacing::Adaptive => "adaptive",
        }
    }
}
