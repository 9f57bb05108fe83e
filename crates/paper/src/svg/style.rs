//! How each collector looks: the same in every figure.
//!
//! Colours are those of Okabe and Ito (Color Universal Design, 2008), which
//! the colour-blind can tell apart. Marks, dashes and hatching tell apart
//! what has the same colour, and everything in black and white.

/// The look of a series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Style {
    /// Colour.
    pub colour: &'static str,
    /// Shape of its marks.
    pub mark: Mark,
    /// Dashes of its line.
    pub dash: &'static str,
    /// Hatching of its bars.
    pub hatch: Hatch,
}

/// Shapes of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A square on its corner.
    Diamond,
    /// A triangle on its side.
    Up,
    /// A triangle on its corner.
    Down,
}

/// Hatching of bars.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hatch {
    /// None.
    Plain,
    /// Lines rising to the right.
    Rising,
    /// Lines falling to the right.
    Falling,
    /// Both.
    Crossed,
    /// Lines across.
    Level,
}

impl Hatch {
    /// All that are drawn.
    pub const DRAWN: [Hatch; 4] = [Hatch::Rising, Hatch::Falling, Hatch::Crossed, Hatch::Level];

    /// The name of its pattern; `None` if there is none.
    pub fn id(self) -> Option<&'static str> {
        match self {
            Hatch::Plain => None,
            Hatch::Rising => Some("rising"),
            Hatch::Falling => Some("falling"),
            Hatch::Crossed => Some("crossed"),
            Hatch::Level => Some("level"),
        }
    }
}

const BLACK: &str = "#000000";
const ORANGE: &str = "#E69F00";
const SKY: &str = "#56B4E9";
const GREEN: &str = "#009E73";
const YELLOW: &str = "#F0E442";
const BLUE: &str = "#0072B2";
const VERMILLION: &str = "#D55E00";
const PURPLE: &str = "#CC79A7";

const fn style(colour: &'static str, mark: Mark, dash: &'static str, hatch: Hatch) -> Style {
    Style { colour, mark, dash, hatch }
}

/// The look of the collector of this name.
pub fn of(name: &str) -> Style {
    match name {
        "tb-collect" => style(BLUE, Mark::Circle, "none", Hatch::Plain),
        "tb-collect-eager" => style(BLUE, Mark::Square, "7 3", Hatch::Rising),
        "tb-collect-hash" => style(BLUE, Mark::Up, "2 3", Hatch::Crossed),
        "zen" => style(VERMILLION, Mark::Diamond, "none", Hatch::Falling),
        "one-shot" => style(GREEN, Mark::Up, "none", Hatch::Rising),
        "n2db" => style(ORANGE, Mark::Square, "none", Hatch::Level),
        "steam" => style(PURPLE, Mark::Down, "none", Hatch::Plain),
        "steam-watermark" => style(PURPLE, Mark::Square, "7 3", Hatch::Falling),
        "hana" => style(SKY, Mark::Circle, "none", Hatch::Plain),
        "hekaton" => style(SKY, Mark::Diamond, "7 3", Hatch::Rising),
        "deuteronomy" => style(YELLOW, Mark::Up, "none", Hatch::Plain),
        "ermia" => style(YELLOW, Mark::Square, "7 3", Hatch::Crossed),
        "hyper" => style(GREEN, Mark::Down, "7 3", Hatch::Level),
        _ => style(BLACK, Mark::Circle, "none", Hatch::Plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 14] = [
        "none",
        "tb-collect",
        "tb-collect-eager",
        "tb-collect-hash",
        "zen",
        "one-shot",
        "n2db",
        "steam",
        "steam-watermark",
        "hana",
        "hekaton",
        "deuteronomy",
        "ermia",
        "hyper",
    ];

    #[test]
    fn no_two_collectors_look_alike() {
        for (n, one) in NAMES.iter().enumerate() {
            for other in &NAMES[..n] {
                let (a, b) = (of(one), of(other));
                assert!((a.colour, a.mark) != (b.colour, b.mark), "{one} and {other} as marks");
                assert!((a.colour, a.dash) != (b.colour, b.dash), "{one} and {other} as lines");
                assert!((a.colour, a.hatch) != (b.colour, b.hatch), "{one} and {other} as bars");
            }
        }
    }
}
