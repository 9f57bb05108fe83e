//! Which rows are updated how often.

use pantile_testkit::Random;

use super::optimum::{Class, Optimum};
use crate::ycsb::keys::{Scatter, Zipf};

/// How updates are distributed over rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Updates {
    /// All rows alike.
    Uniform,
    /// A share of the rows gets a share of the updates.
    Hot {
        /// The share of the rows.
        rows: f64,
        /// The share of the updates.
        updates: f64,
    },
    /// Zipf-distributed.
    Zipf {
        /// The skew, from 0 to 1.
        theta: f64,
    },
}

/// Ranks of their own at the head of a skewed distribution; the rest is grouped.
const SINGLE_RANKS: u64 = 1000;

impl Updates {
    /// Those that the laboratory measures.
    pub const ALL: [Updates; 3] =
        [Updates::Uniform, Updates::Hot { rows: 0.2, updates: 0.8 }, Updates::Zipf { theta: 0.9 }];

    /// The name in tables and on the command line.
    pub fn name(self) -> String {
        match self {
            Updates::Uniform => "uniform".into(),
            Updates::Hot { rows, updates } => format!("{:.0}/{:.0}", updates * 100.0, rows * 100.0),
            Updates::Zipf { theta } => format!("zipf {theta}"),
        }
    }

    /// The least that these updates of `rows` rows can cost, if a transaction
    /// draws `draws` rows and writes each of them once.
    pub fn optimum(self, rows: u64, draws: u32) -> Optimum {
        let n = rows as f64;
        let written = |chance: f64| 1.0 - (1.0 - chance).powi(draws as i32);
        let class = |rows: f64, chance: f64| Class { bytes: rows / n, updates: rows * written(chance) };
        Optimum::new(match self {
            Updates::Uniform => vec![class(n, 1.0 / n)],
            Updates::Hot { .. } => {
                let hot = self.hot_rows(rows) as f64;
                let Updates::Hot { updates, .. } = self else { unreachable!() };
                vec![class(hot, updates / hot), class(n - hot, (1.0 - updates) / (n - hot))]
            }
            Updates::Zipf { theta } => {
                let weight = |rank: u64| (rank as f64 + 1.0).powf(-theta);
                let sum: f64 = (0..rows).map(weight).sum();
                let groups = groups(rows).into_iter();
                let chance =
                    |(from, to): (u64, u64)| (from..to).map(weight).sum::<f64>() / sum / (to - from) as f64;
                groups.map(|(from, to)| class((to - from) as f64, chance((from, to)))).collect()
            }
        })
    }

    fn hot_rows(self, rows: u64) -> u64 {
        match self {
            Updates::Hot { rows: share, .. } => ((rows as f64 * share) as u64).clamp(1, rows - 1),
            _ => 0,
        }
    }

    /// What draws rows below `rows`.
    pub fn draws(self, rows: u64) -> Draws {
        let zipf = match self {
            Updates::Zipf { theta } => Some(Zipf::new(rows, theta)),
            _ => None,
        };
        Draws { updates: self, rows, hot: self.hot_rows(rows), zipf, scatter: Scatter::new(rows) }
    }
}

/// Ranks below `rows` in groups within which rates hardly differ.
fn groups(rows: u64) -> Vec<(u64, u64)> {
    let mut groups = Vec::new();
    let mut from = 0;
    while from < rows {
        let to = if from < SINGLE_RANKS { from + 1 } else { (from + from / 50).min(rows) };
        groups.push((from, to));
        from = to;
    }
    groups
}

/// Draws rows to update. Those that are drawn often are not neighbours.
#[derive(Clone, Debug)]
pub struct Draws {
    updates: Updates,
    rows: u64,
    hot: u64,
    zipf: Option<Zipf>,
    scatter: Scatter,
}

impl Draws {
    /// The next row.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let rank = match (&self.zipf, self.updates) {
            (Some(zipf), _) => zipf.draw(random),
            (None, Updates::Hot { updates, .. }) if random.fraction() < updates => random.below(self.hot),
            (None, Updates::Hot { .. }) => self.hot + random.below(self.rows - self.hot),
            (None, _) => random.below(self.rows),
        };
        self.scatter.key(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_rows_get_their_share() {
        let updates = Updates::Hot { rows: 0.2, updates: 0.8 };
        let (draws, mut random) = (updates.draws(1000), Random::new(1, 1));
        let mut counts = vec![0u32; 1000];
        (0..100_000).for_each(|_| counts[draws.draw(&mut random) as usize] += 1);
        counts.sort_unstable();
        let hot: u32 = counts[800..].iter().sum();
        assert!((78_000..82_000).contains(&hot), "{hot}");
    }

    #[test]
    fn the_more_skew_the_less_it_costs() {
        let costs = Updates::ALL.map(|updates| updates.optimum(100_000, 1).amplification(1.5));
        assert!((costs[0] - 1.72).abs() < 0.01 && (costs[1] - 1.40).abs() < 0.01, "{costs:?}");
        assert!(1.0 < costs[2] && costs[2] < costs[1], "{costs:?}");
    }

    #[test]
    fn zipf_without_skew_is_uniform() {
        let zipf = Updates::Zipf { theta: 0.0 }.optimum(10_000, 1).amplification(2.0);
        assert!((zipf - Optimum::uniform().amplification(2.0)).abs() < 1e-6, "{zipf}");
    }

    #[test]
    fn a_row_that_is_drawn_twice_in_a_transaction_is_written_once() {
        let all = Updates::Zipf { theta: 1.0 };
        // Rows that are in every transaction all have the same rate.
        let (one, many) = (all.optimum(100, 1), all.optimum(100, 100_000));
        assert!(one.amplification(1.5) < many.amplification(1.5));
        assert!((many.amplification(1.5) - 1.72).abs() < 0.01);
    }
}
