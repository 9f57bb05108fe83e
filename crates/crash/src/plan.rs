//! When to kill. The plan follows from the seed; what a kill then hits depends
//! on the machine.

use std::time::Duration;

use pantile_testkit::Random;

/// The target of a kill.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Aim {
    /// The opening, this share of its usual duration after it began.
    Opening(f64),
    /// Transactions, this long after the first was acknowledged.
    Working(Duration),
    /// This change of a definition, this long after it began.
    Defining(u64, Duration),
    /// The closing, which begins after this much work; this share of its usual
    /// duration after it began.
    Closing(Duration, f64),
}

/// Beyond the usual duration of a step, so that kills hit its end as well.
const BEYOND: f64 = 1.2;

impl Aim {
    /// A kill during an opening.
    pub fn opening(random: &mut Random) -> Self {
        Aim::Opening(random.fraction() * BEYOND)
    }

    /// A kill while the database is open.
    fn at_work(random: &mut Random) -> Self {
        let micros = |random: &mut Random, most| Duration::from_micros(random.below(most));
        match random.below(10) {
            0..5 => Aim::Working(micros(random, 300_000)),
            5..8 => Aim::Defining(random.below(5), micros(random, 1_500)),
            _ => Aim::Closing(micros(random, 150_000), random.fraction() * BEYOND),
        }
    }

    /// The kills of a round, after which the database is verified: one during
    /// work, and often more, most of which hit the recovery from the previous
    /// kill. The first kill of a new database often hits its creation.
    pub fn round(random: &mut Random, new: bool) -> Vec<Aim> {
        let mut aims = Vec::new();
        if new && random.percent(75) {
            aims.push(Self::opening(random));
        }
        aims.push(Self::at_work(random));
        for _ in 0..random.below(3) {
            aims.push(if random.percent(70) { Self::opening(random) } else { Self::at_work(random) });
        }
        aims
    }

    /// How long a life works before it closes the database by itself.
    pub fn close_after(self) -> Option<Duration> {
        match self {
            Aim::Closing(after, _) => Some(after),
            _ => None,
        }
    }
}
