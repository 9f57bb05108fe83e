//! The legend of a drawing: what its colours and markers stand for.

use maud::{Markup, html};

use super::markers;
use super::shapes::{filled, foretold, n};
use super::style::{self, Style};
use crate::figure::{Figure, Origin, Shape};

/// Height of a row.
const ROW: f64 = 20.0;
/// Room for a marker, left of its name.
const MARKER: f64 = 32.0;
/// Room between two entries.
const APART: f64 = 18.0;
/// The width of a letter, rather too large than too small.
const LETTER: f64 = 7.0;

/// A legend, in rows.
pub struct Legend {
    entries: Vec<Entry>,
    rows: usize,
}

struct Entry {
    kind: Symbol,
    name: String,
    x: f64,
    row: usize,
}

#[derive(Clone, Copy)]
enum Symbol {
    Bar(Style),
    Line(Style, bool),
    Published,
    ModelBar,
    ModelLine,
}

impl Legend {
    /// The legend of a figure, in rows of the given width.
    pub fn of(figure: &Figure, width: f64) -> Self {
        let named = figure.series.iter().filter(|series| series.origin == figure.own());
        let mut named: Vec<(Symbol, String)> = named
            .map(|series| {
                let style = style::of(&series.name);
                let kind = match figure.shape {
                    Shape::Bars(_) => Symbol::Bar(style),
                    Shape::Lines { markers, .. } => Symbol::Line(style, markers),
                };
                (kind, series.name.clone())
            })
            .collect();
        let has =
            |origin| figure.series.iter().any(|series| series.origin == origin && !series.points.is_empty());
        if has(Origin::Published) {
            named.push((Symbol::Published, "as published".into()));
        }
        if has(Origin::Model) {
            let symbol = match figure.shape {
                Shape::Bars(_) => Symbol::ModelBar,
                Shape::Lines { .. } => Symbol::ModelLine,
            };
            named.push((symbol, "as a model predicts".into()));
        }
        let (mut x, mut row) = (0.0, 0);
        let place = |(kind, name): (Symbol, String)| {
            let needed = MARKER + name.chars().count() as f64 * LETTER;
            if x > 0.0 && x + needed > width {
                (x, row) = (0.0, row + 1);
            }
            let entry = Entry { kind, name, x, row };
            x += needed + APART;
            entry
        };
        let entries: Vec<_> = named.into_iter().map(place).collect();
        let rows = entries.last().map_or(0, |last| last.row + 1);
        Self { entries, rows }
    }

    /// Its height.
    pub fn height(&self) -> f64 {
        ROW * self.rows as f64 + 4.0
    }

    /// The legend, its first row at the top.
    pub fn draw(&self, left: f64, top: f64) -> Markup {
        html! {
            g.legend {
                @for entry in &self.entries {
                    @let (x, y) = (left + entry.x, top + ROW * (entry.row as f64 + 0.5));
                    (sample(entry.kind, x, y))
                    text x=(n(x + MARKER - 4.0)) y=(n(y + 4.0)) { (entry.name) }
                }
            }
        }
    }
}

fn sample(kind: Symbol, x: f64, y: f64) -> Markup {
    let line = format!("M{} {} h22", n(x), n(y));
    html! {
        @match kind {
            Symbol::Bar(style) => (filled((x + 4.0, y - 6.0), (16.0, 12.0), style)),
            Symbol::Line(style, with_markers) => {
                path d=(line) fill="none" stroke=(style.colour) stroke-width="2" stroke-dasharray=(style.dash) {}
                @if with_markers { (markers::measured(style.marker, x + 11.0, y, style.colour)) }
            }
            Symbol::Published => (markers::published(x + 11.0, y, "currentColor")),
            Symbol::ModelBar => (foretold((x + 4.0, y - 6.0), (16.0, 12.0))),
            Symbol::ModelLine => path.model d=(line) fill="none" stroke="currentColor" stroke-width="1.4" stroke-dasharray="3 4" {},
        }
    }
}
