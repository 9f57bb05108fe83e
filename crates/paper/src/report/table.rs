//! The table behind a figure.

use maud::{Markup, html};

use crate::figure::{Figure, Origin, Point, Series, Shape};
use crate::numbers;

/// Most rows. A longer time series is sampled at regular intervals.
const ROWS: usize = 24;

/// The figure in numbers: the median of the repetitions, the interval of the true
/// value, and the published one.
pub fn draw(figure: &Figure) -> Markup {
    if figure.is_single() { one_by_one(figure) } else { side_by_side(figure) }
}

/// One row per position, where each position has one collector.
fn one_by_one(figure: &Figure) -> Markup {
    let find = |x: f64, published: bool| {
        let wanted = move |series: &&Series| (series.origin == Origin::Published) == published;
        figure.series.iter().filter(wanted).find_map(|series| at(series, x))
    };
    let told = |figure: Option<f64>| figure.map_or(String::new(), numbers::figure);
    let any_published = figure.series.iter().any(|series| series.origin == Origin::Published);
    html! {
        div.scroll {
            table.data {
                thead {
                    tr {
                        th scope="col" { (figure.x) }
                        th scope="col" { "ours" }
                        th scope="col" { "95 % interval" }
                        @if any_published {
                            th scope="col" { "published" }
                            th scope="col" { "difference" }
                        }
                    }
                }
                tbody {
                    @for x in figure.positions() {
                        @let (ours, published) = (find(x, false), find(x, true));
                        @let range = ours.and_then(|ours| ours.range);
                        @let difference = ours.zip(published).map(|(ours, there)| difference(ours.y, there.y));
                        tr {
                            th scope="row" { (place(&figure.shape, x)) }
                            td { (told(ours.map(|ours| ours.y))) }
                            td { (range.map(interval).unwrap_or_default()) }
                            @if any_published {
                                td { (told(published.map(|there| there.y))) }
                                td { (difference.unwrap_or_default()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One row per position, and one column per collector.
fn side_by_side(figure: &Figure) -> Markup {
    let columns: Vec<&Series> =
        figure.series.iter().filter(|series| series.origin != Origin::Published).collect();
    let mut positions = figure.positions();
    positions.retain(|&x| columns.iter().any(|series| at(series, x).is_some()));
    let every = positions.len().div_ceil(ROWS).max(1);
    html! {
        div.scroll {
            table.data {
                thead {
                    tr {
                        th scope="col" { (figure.x) }
                        @for series in &columns {
                            th scope="col" { (series.name) @if series.origin == Origin::Model { " (model)" } }
                        }
                    }
                }
                tbody {
                    @for &x in positions.iter().step_by(every) {
                        tr {
                            th scope="row" { (place(&figure.shape, x)) }
                            @for series in &columns { (cell(figure, series, x)) }
                        }
                    }
                }
            }
        }
    }
}

fn cell(figure: &Figure, series: &Series, x: f64) -> Markup {
    let Some(point) = at(series, x) else { return html! { td {} } };
    let published = figure.series.iter().find(|other| {
        other.origin == Origin::Published && other.name == series.name && at(other, x).is_some()
    });
    let published = published.filter(|_| series.origin == Origin::Measured).and_then(|other| at(other, x));
    html! {
        td {
            (numbers::figure(point.y))
            @if let Some(range) = point.range { small { (interval(range)) } }
            @if let Some(published) = published {
                small.there { "published " (numbers::figure(published.y)) }
            }
        }
    }
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", numbers::figure(low), numbers::figure(high))
}

/// The signed difference between our number and a published one.
fn difference(ours: f64, published: f64) -> String {
    let difference = ours - published;
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", numbers::figure(difference.abs()))
}

fn at(series: &Series, x: f64) -> Option<&Point> {
    series.points.iter().find(|point| point.x == x)
}

fn place(shape: &Shape, x: f64) -> String {
    match shape {
        Shape::Bars(names) => names.get(x as usize).cloned().unwrap_or_default(),
        Shape::Lines { .. } => numbers::figure(x),
    }
}
