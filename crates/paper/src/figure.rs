//! Figures as data: the basis of a plot and of the table behind it.

use crate::numbers::Spread;

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The title.
    pub title: String,
    /// Bars or lines.
    pub shape: Shape,
    /// The quantity on the horizontal axis, with its unit.
    pub x: String,
    /// The quantity on the vertical axis, with its unit and the medium.
    pub y: String,
    /// The series to compare.
    pub series: Vec<Series>,
}

/// How a figure is drawn.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// A group of bars for each name; x is the index of the name.
    Bars(Vec<String>),
    /// Lines between points.
    Lines {
        /// Whether the axis is logarithmic, each step double the last.
        doubling: bool,
        /// Whether points have markers. Time series have none.
        markers: bool,
    },
}

/// Where a series comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Measured here.
    Measured,
    /// Read from the publication.
    Published,
    /// Computed by a model from costs measured here.
    Model,
}

/// The points of one collector.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The collector; it determines the colour.
    pub name: String,
    /// Where the series comes from.
    pub origin: Origin,
    /// The points, in order of x.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// The position.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The interval that contains the true value, if there are enough repetitions.
    pub range: Option<(f64, f64)>,
}

impl Point {
    /// A point at the median of the repetitions.
    pub fn measured(x: f64, spread: Spread) -> Self {
        Self { x, y: spread.median, range: spread.interval }
    }

    /// A single value without repetitions.
    pub fn exact(x: f64, y: f64) -> Self {
        Self { x, y, range: None }
    }
}

impl Series {
    /// The measured points of a collector.
    pub fn measured(name: &str, points: Vec<Point>) -> Self {
        Self { name: name.into(), origin: Origin::Measured, points }
    }

    /// The published points of a collector.
    pub fn published(name: &str, points: &[(f64, f64)]) -> Self {
        let points = points.iter().map(|&(x, y)| Point::exact(x, y)).collect();
        Self { name: name.into(), origin: Origin::Published, points }
    }
}

impl Figure {
    /// Whether it contains nothing measured.
    pub fn is_empty(&self) -> bool {
        !self.series.iter().any(|series| series.origin != Origin::Published && !series.points.is_empty())
    }

    /// Whether all of it comes from a model.
    pub fn is_foretold(&self) -> bool {
        self.series.iter().all(|series| series.origin == Origin::Model)
    }

    /// Where the series come from that the figure is about: a model, or what was measured here.
    pub fn own(&self) -> Origin {
        if self.is_foretold() { Origin::Model } else { Origin::Measured }
    }

    /// Whether no two series have a measured point at the same position.
    pub fn is_single(&self) -> bool {
        let ours = || self.series.iter().filter(|series| series.origin != Origin::Published);
        let at = |x: f64| ours().flat_map(|series| &series.points).filter(|point| point.x == x).count();
        matches!(self.shape, Shape::Bars(_)) && self.positions().into_iter().all(|x| at(x) <= 1)
    }

    /// The x positions of all series, in order.
    pub fn positions(&self) -> Vec<f64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let mut all: Vec<_> = points.map(|point| point.x).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }
}
