//! Which keys transactions ask for.

use std::ops::RangeInclusive;

use pantile_testkit::Random;

/// Zipf-distributed ranks from 0 to `n - 1` by rejection-inversion: exact,
/// for any skew, 1 included, and without a sum over the ranks (W. Hörmann and
/// G. Derflinger, "Rejection-Inversion to Generate Variates from Monotone
/// Discrete Distributions", ACM TOMACS 6(3), 1996).
///
/// Rank `k - 1` has the weight `h(k) = k^-theta`. A point is drawn below the
/// curve of `h` over the reals and its place rounded to a `k`; it is drawn
/// again where the curve's area around `k` is larger than the weight.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    theta: f64,
    /// Area up to the end of the first rank, less the weight of that, and up
    /// to the end of the last one: points are drawn between the two.
    area: (f64, f64),
    /// Places that are rounded up by at most so much need no second look.
    sure: f64,
}

impl Zipf {
    /// Ranks below `n`, skewed by `theta`, which is from 0 to 1.
    pub fn new(n: u64, theta: f64) -> Self {
        assert!(n > 0 && THETA.contains(&theta), "zipf of {n} ranks with theta {theta}");
        let mut zipf = Self { n: n as f64, theta, area: (0.0, 0.0), sure: 0.0 };
        zipf.area = (zipf.area_to(1.5) - 1.0, zipf.area_to(zipf.n + 0.5));
        zipf.sure = 2.0 - zipf.place_of(zipf.area_to(2.5) - zipf.weight(2.0));
        zipf
    }

    /// A rank; 0 is the most frequent.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let (first, last) = self.area;
        loop {
            let area = last + random.fraction() * (first - last);
            let place = self.place_of(area);
            let k = place.round().clamp(1.0, self.n);
            if k - place <= self.sure || area >= self.area_to(k + 0.5) - self.weight(k) {
                return k as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// The integral of the weight from 1 to `x`: `(x^(1 - theta) - 1) / (1 - theta)`,
    /// or `ln x` when theta is 1.
    fn area_to(&self, x: f64) -> f64 {
        let log = x.ln();
        let exponent = (1.0 - self.theta) * log;
        if exponent.abs() < NEARLY_NOTHING { log } else { log * exponent.exp_m1() / exponent }
    }

    /// Where the area is reached: the inverse of [`Zipf::area_to`].
    #[inline]
    fn place_of(&self, area: f64) -> f64 {
        let grown = (1.0 - self.theta) * area;
        let log = if grown.abs() < NEARLY_NOTHING { area } else { area * grown.ln_1p() / grown };
        log.exp()
    }
}

/// Skews that are possible.
pub const THETA: RangeInclusive<f64> = 0.0..=1.0;

/// Below this, `e^x - 1` and `ln(1 + x)` are `x`, as far as the area can tell.
const NEARLY_NOTHING: f64 = 1e-12;

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
        for theta in [0.5, 0.9, 0.99, 1.0 - 1e-9, 1.0] {
            let shares = shares(1000, theta);
            let zeta: f64 = (1..=1000).map(|i| f64::from(i).powf(-theta)).sum();
            let expected = |rank: usize| (rank as f64 + 1.0).powf(-theta) / zeta;
            for (rank, share) in shares.iter().enumerate().take(5) {
                assert!((share / expected(rank) - 1.0).abs() < 0.05, "{theta} {rank}");
            }
            for tenth in 0..10 {
                let range = tenth * 100..tenth * 100 + 100;
                let (got, want): (f64, f64) = (shares[range.clone()].iter().sum(), range.map(expected).sum());
                assert!((got / want - 1.0).abs() < 0.05, "{theta} {tenth}: {got} for {want}");
            }
        }
    }

    #[test]
    fn without_skew_all_ranks_are_alike() {
        let shares = shares(100, 0.0);
        assert!(shares.iter().all(|share| (0.008..0.012).contains(share)), "{shares:?}");
    }

    #[test]
    fn the_smallest_sets_work() {
        let mut random = Random::new(1, 1);
        for n in 1..5 {
            for theta in [0.0, 0.5, 0.99, 1.0] {
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
