//! When to kill: a plan that follows from the seed. What a kill then hits is
//! up to the machine.

use std::time::Duration;

use pantile_testkit::Random;

/// At what a kill is aimed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Aim {
    /// The opening, this share of its usual time after it began.
    Opening(f64),
    /// Transactions, so long after the first is acknowledged.
    Working(Duration),
    /// This change of a definition, so long after it began.
    Defining(u64, Duration),
    /// The closing, which begins after so much work; this share of its usual
    /// time after it began.
    Closing(Duration, f64),
}

/// Beyond the usual time of a step, so that its end is hit as well.
const BEYOND: f64 = 1.2;

impl Aim {
    /// One aimed at an opening.
    pub fn opening(random: &mut Random) -> Self {
        Aim::Opening(random.fraction() * BEYOND)
    }

    /// One aimed at what a database does once it is open.
    fn at_work(random: &mut Random) -> Self {
        let micros = |random: &mut Random, most| Duration::from_micros(random.below(most));
        match random.below(10) {
            0..5 => Aim::Working(micros(random, 300_000)),
            5..8 => Aim::Defining(random.below(5), micros(random, 1_500)),
            _ => Aim::Closing(micros(random, 150_000), random.fraction() * BEYOND),
        }
    }

    /// The kills of a round, after which the database is verified: one at
    /// work, and often more, most of which hit the recovery from the last.
    /// The first kill of a new database often hits its making.
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
