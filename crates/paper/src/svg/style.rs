//! The look of each collector, which is the same in every figure.
//!
//! The colours are those of Okabe and Ito (Color Universal Design, 2008), which
//! the colour-blind can distinguish. Markers, dashes and hatching distinguish
//! series of one colour, and all series in black and white.

/// The style sheet of drawings.
pub const CSS: &str = "
svg { font: 12.5px system-ui, Arial, sans-serif; }
svg { --drawn: #222; --grid: #e1e1e1; --base: #555; color: #000; }
svg text { fill: var(--drawn); } svg text.axis { font-size: 13px; }
svg .tick { stroke: var(--grid); stroke-width: 1; } svg .base { stroke: var(--base); stroke-width: 1.2; }
svg .range { fill: none; stroke: var(--drawn); stroke-width: 1.1; }
";

/// What a page adds for a dark background. Drawings of their own have a white one.
pub const DARK: &str = "
@media (prefers-color-scheme: dark) { @media screen {
  svg { --drawn: #e3e3e3; --grid: #3a3a3a; --base: #aaa; color: #fff; }
} }
";

/// The look of a series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Style {
    /// Colour.
    pub colour: &'static str,
    /// The shape of its markers.
    pub marker: Marker,
    /// The dashes of its line.
    pub dash: &'static str,
    /// The hatching of its bars.
    pub hatch: Hatch,
}

/// Shapes of markers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marker {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A square on its corner.
    Diamond,
    /// A triangle that points up.
    Up,
    /// A triangle that points down.
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
    /// Horizontal lines.
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

/// Black, or white on a dark page.
const INK: &str = "currentColor";
const ORANGE: &str = "#E69F00";
const SKY: &str = "#56B4E9";
const GREEN: &str = "#009E73";
const YELLOW: &str = "#F0E442";
const BLUE: &str = "#0072B2";
const VERMILLION: &str = "#D55E00";
const PURPLE: &str = "#CC79A7";

const fn style(colour: &'static str, marker: Marker, dash: &'static str, hatch: Hatch) -> Style {
    Style { colour, marker, dash, hatch }
}

/// The look of the collector, design or store of this name, of updates so distributed, or of a run beside another.
pub fn of(name: &str) -> Style {
    match name {
        "tb-collect" => style(BLUE, Marker::Circle, "none", Hatch::Plain),
        "tb-collect-eager" => style(BLUE, Marker::Square, "7 3", Hatch::Rising),
        "tb-collect-hash" => style(BLUE, Marker::Up, "2 3", Hatch::Crossed),
        "zen" => style(VERMILLION, Marker::Diamond, "none", Hatch::Falling),
        "one-shot" => style(GREEN, Marker::Up, "none", Hatch::Rising),
        "n2db" => style(ORANGE, Marker::Square, "none", Hatch::Level),
        "steam" => style(PURPLE, Marker::Down, "none", Hatch::Plain),
        "steam-watermark" => style(PURPLE, Marker::Square, "7 3", Hatch::Falling),
        "hana" => style(SKY, Marker::Circle, "none", Hatch::Plain),
        "hekaton" => style(SKY, Marker::Diamond, "7 3", Hatch::Rising),
        "deuteronomy" => style(YELLOW, Marker::Up, "none", Hatch::Plain),
        "ermia" => style(YELLOW, Marker::Square, "7 3", Hatch::Crossed),
        "hyper" => style(GREEN, Marker::Down, "7 3", Hatch::Level),
        "zen-naive" => style(VERMILLION, Marker::Square, "7 3", Hatch::Rising),
        "mmdb" => style(SKY, Marker::Square, "2 3", Hatch::Crossed),
        "wbl" => style(GREEN, Marker::Circle, "2 3", Hatch::Plain),
        "foedus" => style(PURPLE, Marker::Up, "2 3", Hatch::Level),
        "remote" => style(VERMILLION, Marker::Down, "2 3", Hatch::Plain),
        "naive" => style(ORANGE, Marker::Diamond, "7 3", Hatch::Rising),
        "soft" => style(SKY, Marker::Down, "8 3 2 3", Hatch::Falling),
        "local" => style(BLUE, Marker::Diamond, "8 3 2 3", Hatch::Level),
        "in-place" => style(YELLOW, Marker::Diamond, "2 3", Hatch::Level),
        "redo-log" => style(ORANGE, Marker::Up, "2 3", Hatch::Falling),
        "beside" => style(BLUE, Marker::Circle, "none", Hatch::Plain),
        "uniform" => style(BLUE, Marker::Circle, "none", Hatch::Plain),
        "80/20" => style(VERMILLION, Marker::Diamond, "none", Hatch::Plain),
        "zipf 0.9" => style(GREEN, Marker::Up, "none", Hatch::Plain),
        "tpc-c" => style(ORANGE, Marker::Square, "none", Hatch::Plain),
        _ => style(INK, Marker::Circle, "none", Hatch::Plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 24] = [
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
        "zen-naive",
        "mmdb",
        "wbl",
        "foedus",
        "remote",
        "naive",
        "soft",
        "local",
        "in-place",
        "redo-log",
    ];

    #[test]
    fn no_two_names_look_alike() {
        for (n, one) in NAMES.iter().enumerate() {
            for other in &NAMES[..n] {
                let (a, b) = (of(one), of(other));
                assert!((a.colour, a.marker) != (b.colour, b.marker), "{one} and {other} as markers");
                assert!((a.colour, a.dash) != (b.colour, b.dash), "{one} and {other} as lines");
                assert!((a.colour, a.hatch) != (b.colour, b.hatch), "{one} and {other} as bars");
            }
        }
    }
}
