//! What a space target costs, as a figure: what was measured beside the least.

use pantile_bench::space::price::{Price, Settings};
use pantile_bench::space::updates::Updates;

use crate::figure::{Figure, Origin, Point, Series, Shape};

/// Where the optimum's line begins, and the step between its points.
const FIRST: f64 = 1.15;
const STEP: f64 = 0.05;

/// Bytes written for each byte updated, over the space that was really taken.
/// Runs with the published policy have no target and are left out.
pub fn figure(settings: &Settings, prices: &[Price]) -> Figure {
    let mut each: Vec<Updates> = Vec::new();
    for price in prices {
        if !each.contains(&price.updates) {
            each.push(price.updates);
        }
    }
    let targets: Vec<&Price> = prices.iter().filter(|price| price.target.is_some()).collect();
    let last = targets.iter().map(|price| price.medium.mean).fold(2.0, f64::max);
    let series = each.iter().flat_map(|&updates| {
        let ours = targets.iter().filter(|price| price.updates == updates);
        [measured(updates, ours.copied()), least(settings, updates, last)]
    });
    Figure {
        title: "What space costs".into(),
        shape: Shape::Lines { doubling: false, markers: true },
        x: "bytes of the medium per live byte".into(),
        y: "bytes written per byte updated".into(),
        series: series.collect(),
    }
}

fn measured<'a>(updates: Updates, prices: impl Iterator<Item = &'a Price>) -> Series {
    let mut points: Vec<_> =
        prices.map(|price| Point::exact(price.medium.mean, price.amplification)).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series::measured(&updates.name(), points)
}

fn least(settings: &Settings, updates: Updates, last: f64) -> Series {
    let optimum = settings.optimum(updates);
    let steps = ((last - FIRST) / STEP).ceil() as u32;
    let at = |n: u32| FIRST + STEP * f64::from(n);
    let points = (0..=steps).map(|n| Point::exact(at(n), optimum.amplification(at(n)))).collect();
    Series { name: updates.name(), origin: Origin::Model, points }
}
