//! Drawings of figures, as SVG inside a page.
//!
//! Every element has an end tag, so that a drawing is also XML. Published
//! points are hollow. A model's lines are dashed and have no markers, and its bars
//! have a dashed outline.

mod legend;
mod markers;
mod scale;
mod shapes;
pub mod style;

use maud::{Markup, PreEscaped, html};

use crate::figure::{Figure, Origin, Point, Series, Shape};
use legend::Legend;
use scale::Scale;
use shapes::{filled, foretold, n};
use style::Hatch;

/// Width of a drawing.
const WIDTH: f64 = 760.0;
/// Height of the plot in it.
const PLOT: f64 = 270.0;
/// Room for numbers and the name of the vertical axis.
const LEFT: f64 = 78.0;
/// Room to the right of the plot.
const RIGHT: f64 = 18.0;
/// Room above.
const TOP: f64 = 14.0;
/// Room for numbers and the name of the horizontal axis.
const BELOW: f64 = 60.0;
/// This many points or fewer always have markers.
const FEW: usize = 8;
/// The share of a group of bars that is empty.
const GAP: f64 = 0.2;
/// Widest bar.
const WIDEST: f64 = 54.0;

/// The figure as a drawing.
pub fn draw(figure: &Figure) -> Markup {
    let legend = Legend::of(figure, WIDTH - LEFT - RIGHT);
    let values = || figure.series.iter().flat_map(|series| &series.points).flat_map(extent);
    let ticks = scale::ticks(values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
    let y = Scale::even((low, high), (TOP + PLOT, TOP));
    let view = format!("0 0 {} {}", n(WIDTH), n(height(figure)));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(view) role="img" aria-label=(figure.title) {
            g.grid {
                @for &tick in &ticks {
                    line x1=(n(LEFT)) x2=(n(WIDTH - RIGHT)) y1=(n(y.place(tick))) y2=(n(y.place(tick)))
                        class=(if tick == 0.0 { "base" } else { "tick" }) {}
                    text x=(n(LEFT - 7.0)) y=(n(y.place(tick) + 4.0)) text-anchor="end" { (scale::label(tick)) }
                }
            }
            @match &figure.shape {
                Shape::Bars(names) => (bars(figure, names, y)),
                Shape::Lines { doubling, markers } => (lines(figure, *doubling, *markers, y)),
            }
            text.axis x=(n(LEFT + (WIDTH - LEFT - RIGHT) / 2.0)) y=(n(TOP + PLOT + 49.0)) text-anchor="middle" {
                (figure.x)
            }
            text.axis transform=(format!("translate(15 {}) rotate(-90)", n(TOP + PLOT / 2.0))) text-anchor="middle" {
                (figure.y)
            }
            (legend.draw(LEFT, TOP + PLOT + BELOW))
        }
    }
}

/// The figure as a file of its own.
pub fn alone(figure: &Figure) -> String {
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(n(WIDTH)) height=(n(height(figure))) {
            style { (PreEscaped(style::CSS)) }
            rect width="100%" height="100%" fill="#ffffff" {}
            (draw(figure))
        }
    };
    drawing.into_string() + "\n"
}

fn height(figure: &Figure) -> f64 {
    TOP + PLOT + BELOW + Legend::of(figure, WIDTH - LEFT - RIGHT).height()
}

fn extent(point: &Point) -> [f64; 2] {
    let (low, high) = point.range.unwrap_or((point.y, point.y));
    [low.min(point.y), high.max(point.y)]
}

/// The hatching patterns that bars refer to; needed once per page.
pub fn patterns() -> Markup {
    let drawn = |hatch: Hatch| match hatch {
        Hatch::Plain => "",
        Hatch::Rising => "M0 8 L8 0 M-2 2 L2 -2 M6 10 L10 6",
        Hatch::Falling => "M0 0 L8 8 M-2 6 L2 10 M6 -2 L10 2",
        Hatch::Crossed => "M0 0 L8 8 M0 8 L8 0",
        Hatch::Level => "M0 2 L8 2 M0 6 L8 6",
    };
    html! {
        svg.patterns xmlns="http://www.w3.org/2000/svg" width="0" height="0" aria-hidden="true" {
            defs {
                @for hatch in Hatch::DRAWN {
                    @if let Some(id) = hatch.id() {
                        pattern id=(id) width="8" height="8" patternUnits="userSpaceOnUse" {
                            path d=(drawn(hatch)) stroke="#ffffff" stroke-width="1.6" {}
                        }
                    }
                }
            }
        }
    }
}

/// The interval of a point.
fn range(x: f64, point: &Point, y: Scale) -> Markup {
    html! {
        @if let Some((low, high)) = point.range {
            path.range d=(format!(
                "M{x0} {low} H{x1} M{x0} {high} H{x1} M{x} {low} V{high}",
                x0 = n(x - 3.5), x1 = n(x + 3.5), x = n(x), low = n(y.place(low)), high = n(y.place(high)),
            )) {}
        }
    }
}

fn bars(figure: &Figure, names: &[String], y: Scale) -> Markup {
    let of = |origin: Origin| figure.series.iter().filter(move |series| series.origin == origin);
    let ours: Vec<&Series> = of(figure.own()).collect();
    let group = (WIDTH - LEFT - RIGHT) / names.len().max(1) as f64;
    // Where every group is a single bar, the bar is in the middle.
    let single = figure.is_single();
    let count = if single { 1 } else { ours.len() };
    let width = (group * (1.0 - GAP) / count as f64).min(WIDEST);
    let left = |position: f64, bar: usize| {
        let bar = if single { 0 } else { bar };
        LEFT + group * (position + 0.5) + width * (bar as f64 - count as f64 / 2.0)
    };
    html! {
        @for (bar, series) in ours.iter().enumerate() {
            @let style = style::of(&series.name);
            @for point in &series.points {
                @let x = left(point.x, bar);
                @let (top, bottom) = (y.place(point.y.max(0.0)), y.place(point.y.min(0.0)));
                @let (corner, extent) = ((x + width * 0.06, top), (width * 0.88, bottom - top));
                (filled(corner, extent, style))
                @if series.origin == Origin::Model { (foretold(corner, extent)) }
                (range(x + width / 2.0, point, y))
            }
        }
        @for series in of(Origin::Published) {
            @if let Some(bar) = ours.iter().position(|own| own.name == series.name).or(single.then_some(0)) {
                @for point in &series.points {
                    (markers::published(left(point.x, bar) + width / 2.0, y.place(point.y), "currentColor"))
                }
            }
        }
        @for (position, name) in names.iter().enumerate() {
            @let x = LEFT + group * (position as f64 + 0.5);
            @for (row, part) in broken(name, group).iter().enumerate() {
                text x=(n(x)) y=(n(TOP + PLOT + 17.0 + 13.0 * row as f64)) text-anchor="middle" { (part) }
            }
        }
    }
}

/// Width of a letter under a bar.
const LETTER: f64 = 6.6;

/// A name on one line, or on two if it is wider than its bars.
fn broken(name: &str, width: f64) -> Vec<String> {
    let fits = name.chars().count() as f64 * LETTER <= width;
    let middle = name.len() / 2;
    let breaks = name.match_indices([' ', '-']).map(|(at, _)| at);
    match breaks.min_by_key(|at| at.abs_diff(middle)).filter(|_| !fits) {
        Some(at) => vec![name[..=at].trim_end().to_owned(), name[at + 1..].to_owned()],
        None => vec![name.to_owned()],
    }
}

fn lines(figure: &Figure, doubling: bool, with_markers: bool, y: Scale) -> Markup {
    let positions = figure.positions();
    let (first, last) =
        (positions.first().copied().unwrap_or_default(), positions.last().copied().unwrap_or(1.0));
    let room = (LEFT + 14.0, WIDTH - RIGHT - 14.0);
    let x = match doubling {
        true => Scale::doubling((first, last), room),
        false => Scale::even((first, last), room),
    };
    html! {
        @for position in labels(&positions, x) {
            text x=(n(x.place(position))) y=(n(TOP + PLOT + 17.0)) text-anchor="middle" { (scale::label(position)) }
        }
        @for series in &figure.series {
            @let style = style::of(&series.name);
            @let path = path(&series.points, x, y);
            @match series.origin {
                Origin::Measured => {
                    path d=(path) fill="none" stroke=(style.colour) stroke-width="2" stroke-dasharray=(style.dash) {}
                    @if with_markers || positions.len() <= FEW {
                        @for point in &series.points {
                            (range(x.place(point.x), point, y))
                            (markers::measured(style.marker, x.place(point.x), y.place(point.y), style.colour))
                        }
                    }
                }
                Origin::Published => {
                    @for point in &series.points {
                        (markers::published(x.place(point.x), y.place(point.y), style.colour))
                    }
                }
                Origin::Model => {
                    path.model d=(path) fill="none" stroke=(style.colour) stroke-width="1.4" stroke-dasharray="3 4" {}
                    @if figure.is_foretold() {
                        @for point in &series.points {
                            (markers::measured(style.marker, x.place(point.x), y.place(point.y), style.colour))
                        }
                    }
                }
            }
        }
    }
}

fn path(points: &[Point], x: Scale, y: Scale) -> String {
    let place = |point: &Point| format!("{} {}", n(x.place(point.x)), n(y.place(point.y)));
    let places: Vec<_> = points.iter().map(place).collect();
    if places.is_empty() { String::new() } else { format!("M{}", places.join(" L")) }
}

/// The positions to label: all that have points if they are few, else round
/// ones.
fn labels(positions: &[f64], x: Scale) -> Vec<f64> {
    match positions {
        [first, .., last] if positions.len() > FEW => labelled(&scale::round_between(*first, *last), x),
        _ => labelled(positions, x),
    }
}

/// The positions whose labels do not overlap.
fn labelled(positions: &[f64], x: Scale) -> Vec<f64> {
    let mut labelled: Vec<f64> = Vec::new();
    for &position in positions {
        if labelled.last().is_none_or(|&last| x.place(position) - x.place(last) >= 34.0) {
            labelled.push(position);
        }
    }
    labelled
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
