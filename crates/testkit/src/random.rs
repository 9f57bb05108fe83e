//! Random numbers: fast, seeded, the same on every machine.

/// A generator of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

const LETTERS_AND_DIGITS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Random {
    /// A generator of its own for each `stream` (a client, a unit of loading)
    /// of a run with this `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut word = seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03).rotate_left(32);
        let state = std::array::from_fn(|_| {
            word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(word)
        });
        Self { state }
    }

    /// Any 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `n - 1`.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(n)) >> 64) as u64
    }

    /// An index of something that has `n` items.
    #[inline]
    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// One of several items.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// Whether an event happens that happens once in `calls` calls.
    #[inline]
    pub fn one_in(&mut self, calls: u64) -> bool {
        self.below(calls) == 0
    }

    /// A number from `low` to `high`, both included.
    #[inline]
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(u64::from(high - low) + 1) as u32
    }

    /// Whether an event of this many percent happens.
    #[inline]
    pub fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < u64::from(chance)
    }

    /// A number from 0 up to, without, 1.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Fills with letters and digits.
    pub fn fill_letters(&mut self, out: &mut [u8]) {
        for part in out.chunks_mut(8) {
            let word = self.word();
            for (n, byte) in part.iter_mut().enumerate() {
                let random = (word >> (8 * n)) & 0xff;
                *byte = LETTERS_AND_DIGITS[(random as usize * LETTERS_AND_DIGITS.len()) >> 8];
            }
        }
    }

    /// Fills with digits.
    pub fn fill_digits(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = b'0' + self.below(10) as u8;
        }
    }

    /// Puts the items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for n in (1..items.len()).rev() {
            items.swap(n, self.below(n as u64 + 1) as usize);
        }
    }
}

/// Spreads the bits of a number (the finalizer of SplitMix64).
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_stream_give_the_same_numbers() {
        let words = |seed, stream| {
            let mut random = Random::new(seed, stream);
            std::array::from_fn::<u64, 8, _>(|_| random.word())
        };
        assert_eq!(words(7, 1), words(7, 1));
        assert_ne!(words(7, 1), words(7, 2));
        assert_ne!(words(7, 1), words(8, 1));
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_both_ends() {
        let mut random = Random::new(1, 0);
        let mut seen = [0u32; 16];
        for _ in 0..16_000 {
            seen[random.between(5, 15) as usize] += 1;
        }
        assert!(seen[..5].iter().all(|&n| n == 0));
        assert!(seen[5..].iter().all(|&n| (1_200..1_700).contains(&n)), "{seen:?}");
    }

    #[test]
    fn fractions_are_uniform() {
        let mut random = Random::new(1, 0);
        let sum: f64 = (0..100_000).map(|_| random.fraction()).sum();
        assert!((sum / 100_000.0 - 0.5).abs() < 0.01);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(3, 3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn letters_are_letters_and_digits() {
        let mut text = [0; 1001];
        Random::new(3, 3).fill_letters(&mut text);
        assert!(text.iter().all(u8::is_ascii_alphanumeric));
        Random::new(3, 3).fill_digits(&mut text);
        assert!(text.iter().all(u8::is_ascii_digit));
    }
}
