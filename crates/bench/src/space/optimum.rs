//! The least that log-structured cleaning can cost at a given space
//! (`docs/design.md`, "Space").
//!
//! Rows of one class die like `exp(-x)`, where `x` counts their mean lifetimes.
//! Blocks that are emptied at the age `x` take `s = x / (1 - exp(-x))` bytes for
//! each live byte and cost `A = 1 / (1 - exp(-x))` writes per write. Space is
//! worth the same everywhere when all classes are emptied at one marginal price.

/// Rows that are updated alike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Class {
    /// Their share of the live bytes; none for versions that die together, which
    /// cost no copies.
    pub bytes: f64,
    /// Their share of the bytes updated.
    pub updates: f64,
}

/// The optimum for rows of some classes that lie apart from each other.
#[derive(Clone, PartialEq, Debug)]
pub struct Optimum {
    classes: Vec<Class>,
}

/// Prices of space between which all that are of interest lie.
const PRICES: (f64, f64) = (1e-12, 1e12);
/// Halvings of that range, which leave nothing of it.
const HALVINGS: u32 = 100;

impl Optimum {
    /// For these classes, whose shares are made to add up to 1.
    pub fn new(mut classes: Vec<Class>) -> Self {
        let sum = |of: fn(&Class) -> f64| classes.iter().map(of).sum::<f64>();
        let (bytes, updates) = (sum(|class| class.bytes), sum(|class| class.updates));
        for class in &mut classes {
            class.bytes /= bytes;
            class.updates /= updates;
        }
        Self { classes }
    }

    /// For rows that are all updated alike.
    pub fn uniform() -> Self {
        Self::new(vec![Class { bytes: 1.0, updates: 1.0 }])
    }

    /// Bytes written for each byte that is updated, if `space` bytes are taken
    /// for each live byte. Infinite where `space` leaves no room.
    pub fn amplification(&self, space: f64) -> f64 {
        if space <= 1.0 {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (PRICES.0.ln(), PRICES.1.ln());
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.space_at(middle.exp()) > space { low = middle } else { high = middle }
        }
        self.cost_at(high.exp())
    }

    /// Bytes taken for each live byte if blocks are emptied at this price.
    fn space_at(&self, price: f64) -> f64 {
        let live = self.classes.iter().filter(|class| class.bytes > 0.0);
        live.map(|class| class.bytes * space_of(class.age_at(price))).sum()
    }

    fn cost_at(&self, price: f64) -> f64 {
        let updated = self.classes.iter().filter(|class| class.updates > 0.0);
        updated.map(|class| class.updates * cost_of(class.age_at(price))).sum()
    }
}

impl Class {
    /// The age, in mean lifetimes, at which one more byte of space would save
    /// `price` bytes of copies: `exp(x) - 1 - x = rate / price`.
    fn age_at(self, price: f64) -> f64 {
        if self.bytes > 0.0 { age_of(self.updates / self.bytes / price) } else { f64::INFINITY }
    }
}

/// The `x` at which `exp(x) - 1 - x` is `y`, by Newton's method from above.
fn age_of(y: f64) -> f64 {
    let mut x = (2.0 * y).sqrt().min(y.ln_1p() + 1.0);
    for _ in 0..50 {
        if x < 1e-6 {
            break;
        }
        let next = x - (x.exp_m1() - x - y) / x.exp_m1();
        if (next - x).abs() <= 1e-14 * x {
            break;
        }
        x = next;
    }
    x
}

fn space_of(age: f64) -> f64 {
    if age < 1e-9 { 1.0 } else { age * cost_of(age) }
}

fn cost_of(age: f64) -> f64 {
    -1.0 / (-age).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_classes(bytes: f64, updates: f64) -> Optimum {
        Optimum::new(vec![Class { bytes, updates }, Class { bytes: 1.0 - bytes, updates: 1.0 - updates }])
    }

    #[track_caller]
    fn assert_costs(optimum: &Optimum, expected: [f64; 4]) {
        let costs = [1.25, 1.5, 2.0, 3.0].map(|space| optimum.amplification(space));
        for (cost, expected) in costs.iter().zip(expected) {
            assert!((cost - expected).abs() < 0.0051, "{costs:?} for {expected}");
        }
    }

    #[test]
    fn the_bounds_are_those_of_the_design() {
        assert_costs(&Optimum::uniform(), [2.69, 1.72, 1.26, 1.06]);
        assert_costs(&two_classes(0.2, 0.8), [2.00, 1.40, 1.13, 1.03]);
        assert_costs(&two_classes(0.1, 0.9), [1.48, 1.18, 1.05, 1.01]);
    }

    #[test]
    fn classes_that_are_updated_alike_are_one() {
        assert_costs(&two_classes(0.3, 0.3), [2.69, 1.72, 1.26, 1.06]);
    }

    #[test]
    fn rows_that_are_never_updated_leave_their_space_to_others() {
        // Half of the rows take 1.5 bytes per byte if the others take 1.
        let half_idle = two_classes(0.5, 1.0).amplification(1.25);
        assert!((half_idle - 1.72).abs() < 0.01, "{half_idle}");
    }

    #[test]
    fn versions_that_die_together_cost_no_copies() {
        let classes = vec![Class { bytes: 1.0, updates: 1.0 }, Class { bytes: 0.0, updates: 1.0 }];
        let half = Optimum::new(classes).amplification(1.5);
        assert!((half - f64::midpoint(1.72, 1.0)).abs() < 0.01, "{half}");
    }

    /// No other division of the space between two classes costs less.
    #[test]
    fn no_division_of_space_is_better() {
        let (bytes, updates, space) = (0.2, 0.8, 1.5);
        let best = two_classes(bytes, updates).amplification(space);
        let cost = |hot_space: f64| {
            let cold_space = (space - bytes * hot_space) / (1.0 - bytes);
            let uniform = Optimum::uniform();
            updates * uniform.amplification(hot_space) + (1.0 - updates) * uniform.amplification(cold_space)
        };
        let least = (101..300).map(|n| cost(f64::from(n) / 100.0)).fold(f64::INFINITY, f64::min);
        assert!((least - best).abs() < 1e-3 && best <= least + 1e-9, "{best} {least}");
    }

    #[test]
    fn no_space_and_much_space_are_the_limits() {
        assert_eq!(Optimum::uniform().amplification(1.0), f64::INFINITY);
        assert!(Optimum::uniform().amplification(1.001) > 400.0);
        assert!((Optimum::uniform().amplification(20.0) - 1.0).abs() < 1e-6);
    }
}
