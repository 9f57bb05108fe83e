//! The random data of TPC-C, clauses 2.1.6, 4.3.2 and 5.2.4.

use pantile_testkit::Random;

/// The constants `C` of clause 2.1.6.1, one per field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constants {
    /// For last names.
    pub last_name: u32,
    /// For customer numbers.
    pub customer: u32,
    /// For item numbers.
    pub item: u32,
}

impl Constants {
    /// Those of a run on data that was loaded with `loaded` for last names:
    /// the two must differ by 65 to 119, 96 and 112 excepted.
    pub fn for_run(loaded: u32, random: &mut Random) -> Self {
        let last_name = loop {
            let candidate = random.between(0, 255);
            let delta = candidate.abs_diff(loaded);
            if (65..=119).contains(&delta) && delta != 96 && delta != 112 {
                break candidate;
            }
        };
        Self { last_name, customer: random.between(0, 1023), item: random.between(0, 8191) }
    }
}

/// The non-uniform random number `NURand(a, low, high)` with the constant `c`.
#[inline]
pub fn non_uniform(random: &mut Random, a: u32, c: u32, low: u32, high: u32) -> u32 {
    let spread = random.between(0, a) | random.between(low, high);
    (spread + c) % (high - low + 1) + low
}

/// A short string on the stack.
#[derive(Clone, Copy)]
pub struct Text<const MAX: usize> {
    bytes: [u8; MAX],
    len: usize,
}

impl<const MAX: usize> Text<MAX> {
    /// The empty string.
    pub const EMPTY: Self = Self { bytes: [0; MAX], len: 0 };

    /// Appends as much as there is room for, whole characters only.
    pub fn push(&mut self, text: &str) {
        let mut len = text.len().min(MAX - self.len);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.bytes[self.len..self.len + len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
    }

    /// Appends a whole number in decimal digits.
    pub fn push_number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(std::str::from_utf8(&digits[at..]).unwrap_or_default());
    }

    /// The string.
    #[inline]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// A random string of letters and digits, `low` to `MAX` long.
    pub fn letters(random: &mut Random, low: u32) -> Self {
        let mut text = Self { bytes: [0; MAX], len: random.between(low, MAX as u32) as usize };
        random.fill_letters(&mut text.bytes[..text.len]);
        text
    }

    /// A random string of `MAX` digits.
    pub fn digits(random: &mut Random) -> Self {
        let mut text = Self { bytes: [0; MAX], len: MAX };
        random.fill_digits(&mut text.bytes);
        text
    }

    /// A random string that in one of ten cases contains "ORIGINAL" somewhere.
    pub fn data(random: &mut Random, low: u32) -> Self {
        const MARK: &[u8] = b"ORIGINAL";
        let mut text = Self::letters(random, low);
        if random.percent(10) {
            let at = random.below((text.len - MARK.len() + 1) as u64) as usize;
            text.bytes[at..at + MARK.len()].copy_from_slice(MARK);
        }
        text
    }
}

/// A zip code: four random digits and "11111".
pub fn zip(random: &mut Random) -> Text<9> {
    let mut zip = Text::EMPTY;
    zip.push(Text::<4>::digits(random).as_str());
    zip.push("11111");
    zip
}

/// The last name of the number, 0 to 999, in three syllables (clause 4.3.2.3).
pub fn last_name(number: u32) -> Text<16> {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let mut name = Text::EMPTY;
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        name.push(SYLLABLES[digit as usize]);
    }
    name
}

/// The kinds of transaction, in the order of their numbers.
pub const KINDS: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// Of 100 transactions, how many are of each kind.
pub const MIX: [u8; 5] = [45, 43, 4, 4, 4];

/// The deck of cards from which a client takes its transactions (clause
/// 5.2.4.2): the mix is exact in every hundred.
#[derive(Clone, Debug)]
pub struct Deck {
    cards: [u8; 100],
    left: usize,
}

impl Default for Deck {
    fn default() -> Self {
        let mut cards = [0; 100];
        let mut at = 0;
        for (kind, &count) in MIX.iter().enumerate() {
            cards[at..at + usize::from(count)].fill(kind as u8);
            at += usize::from(count);
        }
        Self { cards, left: 0 }
    }
}

impl Deck {
    /// The kind of the next transaction.
    pub fn draw(&mut self, random: &mut Random) -> usize {
        if self.left == 0 {
            random.shuffle(&mut self.cards);
            self.left = self.cards.len();
        }
        self.left -= 1;
        usize::from(self.cards[self.left])
    }
}

#[cfg(test)]
#[path = "random_test.rs"]
mod tests;
