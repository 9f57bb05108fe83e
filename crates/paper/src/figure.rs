//! Figures as data: what a plot shows and the table behind it tells.

use crate::numbers::Spread;

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Bars or lines.
    pub shape: Shape,
    /// What is on the horizontal axis, with its unit.
    pub x: String,
    /// What is on the vertical axis, with its unit and the medium.
    pub y: String,
    /// What is compared.
    pub series: Vec<Series>,
}

/// How a figure is drawn.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// A group of bars for each of these names; x is the number of the name.
    Bars(Vec<String>),
    /// Lines between points.
    Lines {
        /// Whether the axis doubles from step to step.
        doubling: bool,
        /// Whether single points are marked: not of series in time.
        marks: bool,
    },
}

/// Where a series comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Measured here.
    Measured,
    /// Read off the publication.
    Published,
    /// Computed by a model from costs measured here.
    Model,
}

/// The points of one collector.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The collector, which decides the colour.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// The points, by x.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// Smallest and largest repetition, where there are any.
    pub range: Option<(f64, f64)>,
}

impl Point {
    /// The median of repetitions.
    pub fn measured(x: f64, spread: Spread) -> Self {
        let range = (spread.count > 1).then_some((spread.low, spread.high));
        Self { x, y: spread.median, range }
    }

    /// A single figure.
    pub fn exact(x: f64, y: f64) -> Self {
        Self { x, y, range: None }
    }
}

impl Series {
    /// What was measured of a collector.
    pub fn measured(name: &str, points: Vec<Point>) -> Self {
        Self { name: name.into(), origin: Origin::Measured, points }
    }

    /// What was published of a collector.
    pub fn published(name: &str, points: &[(f64, f64)]) -> Self {
        let points = points.iter().map(|&(x, y)| Point::exact(x, y)).collect();
        Self { name: name.into(), origin: Origin::Published, points }
    }
}

impl Figure {
    /// Whether nothing in it was measured.
    pub fn is_empty(&self) -> bool {
        !self.series.iter().any(|series| series.origin != Origin::Published && !series.points.is_empty())
    }

    /// Whether all of it comes from a model.
    pub fn is_foretold(&self) -> bool {
        self.series.iter().all(|series| series.origin == Origin::Model)
    }

    /// Whether no two series were measured at the same place: each stands for itself.
    pub fn is_single(&self) -> bool {
        let ours = || self.series.iter().filter(|series| series.origin != Origin::Published);
        let at = |x: f64| ours().flat_map(|series| &series.points).filter(|point| point.x == x).count();
        matches!(self.shape, Shape::Bars(_)) && self.positions().into_iter().all(|x| at(x) <= 1)
    }

    /// All x that any series has, in order.
    pub fn positions(&self) -> Vec<f64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let mut all: Vec<_> = points.map(|point| point.x).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }
}
