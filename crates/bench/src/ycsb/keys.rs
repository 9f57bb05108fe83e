//! Which keys transactions ask for.

use crate::random::Random;

/// Zipf-distributed ranks from 0 to `n - 1` (Gray et al., "Quickly Generating
/// Billion-Record Synthetic Databases", SIGMOD 1994, as in YCSB).
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
    /// Below this, of `zeta`, the rank is 1 at most.
    second: f64,
}

/// `1 + 2^-theta + ... + n^-theta`; beyond the first terms by the integral,
/// which is exact to ten digits there.
fn zeta(n: u64, theta: f64) -> f64 {
    const EXACT: u64 = 100_000;
    let exact: f64 = (1..=n.min(EXACT)).map(|i| (i as f64).powf(-theta)).sum();
    if n <= EXACT {
        return exact;
    }
    let integral = |x: f64| x.powf(1.0 - theta) / (1.0 - theta);
    exact + integral(n as f64 + 0.5) - integral(EXACT as f64 + 0.5)
}

impl Zipf {
    /// Ranks below `n`, skewed by `theta`, which is at least 0 and below 1.
    pub fn new(n: u64, theta: f64) -> Self {
        assert!(n > 0 && (0.0..1.0).contains(&theta), "zipf of {n} ranks with theta {theta}");
        let all = zeta(n, theta);
        let eta = if n <= 2 {
            0.0
        } else {
            (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta(2, theta) / all)
        };
        Self { n: n as f64, alpha: 1.0 / (1.0 - theta), zeta: all, eta, second: 1.0 + 0.5f64.powf(theta) }
    }

    /// A rank; 0 is the most frequent.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let u = random.fraction();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < self.second {
            return (self.n > 1.0).into();
        }
        let rank = self.n * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.n as u64 - 1)
    }
}

/// Scatters ranks over keys, so that frequent ones are not neighbours; each
/// rank has a key of its own.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    n: u64,
    mask: u64,
    shift: u32,
}

impl Scatter {
    /// Of ranks below `n`.
    pub fn new(n: u64) -> Self {
        let bits = n.max(2).next_power_of_two().trailing_zeros();
        Self { n, mask: (1 << bits) - 1, shift: bits.div_ceil(2) }
    }

    /// The key of a rank.
    #[inline]
    pub fn key(&self, rank: u64) -> u64 {
        let mut key = rank;
        loop {
            // Each step can be undone within the bits of the mask, so the
            // whole is a permutation; keys beyond `n` go round again.
            key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
            key ^= key >> self.shift;
            key = key.wrapping_mul(0xd1b5_4a32_d192_ed03) & self.mask;
            key ^= key >> self.shift;
            if key < self.n {
                return key;
            }
        }
    }
}

/// How keys are chosen among those there are.
#[derive(Clone, Debug)]
pub enum Keys {
    /// All alike.
    Uniform {
        /// Number of keys.
        n: u64,
    },
    /// Zipf-distributed, scattered.
    Skewed {
        /// Ranks.
        zipf: Zipf,
        /// Keys of the ranks.
        scatter: Scatter,
    },
    /// Zipf-distributed, the newest key the most frequent.
    Latest {
        /// Ranks.
        zipf: Zipf,
    },
}

impl Keys {
    /// Of `n` keys, with this skew; `latest` if new keys are the frequent ones.
    pub fn new(n: u64, theta: f64, latest: bool) -> Self {
        if latest {
            Keys::Latest { zipf: Zipf::new(n, theta) }
        } else if theta == 0.0 {
            Keys::Uniform { n }
        } else {
            Keys::Skewed { zipf: Zipf::new(n, theta), scatter: Scatter::new(n) }
        }
    }

    /// A key; `next` is the key that will be inserted next.
    #[inline]
    pub fn draw(&self, random: &mut Random, next: u64) -> u64 {
        match self {
            Keys::Uniform { n } => random.below(*n),
            Keys::Skewed { zipf, scatter } => scatter.key(zipf.draw(random)),
            Keys::Latest { zipf } => next.saturating_sub(1 + zipf.draw(random)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(n: u64, theta: f64) -> Vec<f64> {
        let (zipf, mut random) = (Zipf::new(n, theta), Random::new(1, 1));
        let mut counts = vec![0u32; n as usize];
        for _ in 0..1_000_000 {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        counts.into_iter().map(|count| f64::from(count) / 1e6).collect()
    }

    #[test]
    fn ranks_have_the_frequencies_of_the_distribution() {
        for theta in [0.5, 0.9, 0.99] {
            let shares = shares(1000, theta);
            let zeta: f64 = (1..=1000).map(|i| f64::from(i).powf(-theta)).sum();
            let expected = |rank: usize| (rank as f64 + 1.0).powf(-theta) / zeta;
            for rank in [0, 1] {
                assert!((shares[rank] / expected(rank) - 1.0).abs() < 0.05, "{theta} {rank}");
            }
            // Beyond the first two the method is an approximation.
            for tenth in 1..10 {
                let range = tenth * 100..tenth * 100 + 100;
                let (got, want): (f64, f64) = (shares[range.clone()].iter().sum(), range.map(expected).sum());
                assert!((got / want - 1.0).abs() < 0.1, "{theta} {tenth}: {got} for {want}");
            }
        }
    }

    #[test]
    fn without_skew_all_ranks_are_alike() {
        let shares = shares(100, 0.0);
        assert!(shares.iter().all(|share| (0.008..0.012).contains(share)), "{shares:?}");
    }

    #[test]
    fn the_sum_by_integral_is_that_of_all_terms() {
        let all: f64 = (1..=1_000_000).map(|i| f64::from(i).powf(-0.9)).sum();
        assert!((zeta(1_000_000, 0.9) / all - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_smallest_sets_work() {
        let mut random = Random::new(1, 1);
        for n in 1..5 {
            for theta in [0.0, 0.5, 0.99] {
                let zipf = Zipf::new(n, theta);
                assert!((0..1000).all(|_| zipf.draw(&mut random) < n));
            }
        }
    }

    #[test]
    fn scattering_is_a_permutation_that_separates_neighbours() {
        for n in [1, 2, 3, 1000, 1024, 4097] {
            let scatter = Scatter::new(n);
            let mut keys: Vec<_> = (0..n).map(|rank| scatter.key(rank)).collect();
            if n == 1000 {
                let near = keys.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 10).count();
                assert!(near < 100, "{near}");
            }
            keys.sort_unstable();
            assert_eq!(keys, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_latest_keys_are_the_most_frequent() {
        let (keys, mut random) = (Keys::new(1000, 0.99, true), Random::new(1, 1));
        let newest = (0..10_000).filter(|_| keys.draw(&mut random, 5000) == 4999).count();
        assert!(newest > 1000, "{newest}");
        assert!((0..10_000).all(|_| (4000..5000).contains(&keys.draw(&mut random, 5000))));
    }
}
