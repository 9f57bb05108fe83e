//! What a space target costs, as a figure: what was measured beside the least.

use pantile_bench::space::optimum::Optimum;
use pantile_bench::space::price::Price;

use crate::figure::{Figure, Origin, Point, Series, Shape};

/// Where the optimum's line begins, and the step between its points.
const FIRST: f64 = 1.15;
const STEP: f64 = 0.05;

/// Bytes written for each byte updated, over the space that was really taken.
/// Runs with the published policy have no target and are left out.
pub fn figure(prices: &[Price]) -> Figure {
    let prices: Vec<&Price> = prices.iter().filter(|price| price.target.is_some()).collect();
    let last = prices.iter().map(|price| price.medium.mean).fold(2.0, f64::max);
    let mut series: Vec<Series> = Vec::new();
    for price in &prices {
        let name = price.load.name();
        if series.iter().all(|series| series.name != name) {
            let ours = prices.iter().filter(|other| other.load == price.load);
            series.push(measured(&name, ours.copied()));
            series.push(least(&name, &price.least, last));
        }
    }
    Figure {
        title: "What space costs".into(),
        shape: Shape::Lines { doubling: false, markers: true },
        x: "bytes of the medium per live byte".into(),
        y: "bytes written per byte updated".into(),
        series,
    }
}

fn measured<'a>(name: &str, prices: impl Iterator<Item = &'a Price>) -> Series {
    let mut points: Vec<_> =
        prices.map(|price| Point::exact(price.medium.mean, price.amplification)).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series::measured(name, points)
}

fn least(name: &str, optimum: &Optimum, last: f64) -> Series {
    let steps = ((last - FIRST) / STEP).ceil() as u32;
    let at = |n: u32| FIRST + STEP * f64::from(n);
    let points = (0..=steps).map(|n| Point::exact(at(n), optimum.amplification(at(n)))).collect();
    Series { name: name.into(), origin: Origin::Model, points }
}
