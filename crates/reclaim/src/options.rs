use std::time::Duration;

/// How a collector works.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GcOptions {
    /// Share of a block's contents, from 0.5 to 1, that must be superseded
    /// before the block is reclaimed although space is not short (theta,
    /// TB-Collect 4.3: 0.9).
    pub theta: f64,
    /// Share of the data, from 0 to 1, that blocks waiting to be reclaimed may
    /// hold in all (TB-Collect 4.3: 0.15).
    pub queue_share: f64,
    /// Bytes of the medium that may be taken for each live byte, besides
    /// 16 MB. From 1 to 1,000. With [`Pacing::Adaptive`] the collector keeps to it:
    /// what a burst of updates takes beyond is given back within two seconds,
    /// unless a running transaction needs it. While little is updated, the 16 MB
    /// shrink to 1 MB and what is kept ready.
    ///
    /// Less space costs more writes. Under updates all over the data each byte
    /// written causes 0.23 bytes of copies at 2 (the default), 0.59 at 1.5, and
    /// 1.27 at 1.25. Below 1.06 the collector does as if it were 1.06.
    pub space_target: f64,
    /// Length of an epoch (TB-Collect 4.2: 40 ms).
    pub epoch: Duration,
    /// When the queues are processed.
    pub pacing: Pacing,
    /// Whether blocks that a long transaction bypasses are reclaimed while it
    /// runs (TB-Collect 4.4, second case).
    pub bypass: bool,
    /// How often the background thread of a collector that has one runs
    /// (Steam, Table 4: 1 ms).
    pub interval: Duration,
    /// The number of commits after which a collector that counts commits may
    /// begin an epoch; `None` for the published number (Steam, Table 4: 100, or
    /// 1 for ERMIA).
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
    /// The published values and nothing else: blocks wait in queues that hold a
    /// fixed share of the data (TB-Collect 4.3), whatever space they take.
    pub fn published() -> Self {
        Self { pacing: Pacing::Fixed, ..Self::default() }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// A sentence that names the wrong option and the values that it can have.
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
    /// When they hold their share of the data (TB-Collect 4.3).
    Fixed,
    /// Sooner the longer chains grow, the faster data is written and the less
    /// space is left, and so that the space target is kept (TB-Collect 6.2
    /// leaves this for future work).
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
