//! Markers of points.

use maud::{Markup, html};

use super::shapes::n;
use super::style::Marker;

/// The marker of a measured point: filled.
pub fn measured(marker: Marker, x: f64, y: f64, colour: &str) -> Markup {
    html! {
        @match marker {
            Marker::Circle => circle cx=(n(x)) cy=(n(y)) r="4.6" fill=(colour) stroke="#333333" stroke-width="0.8" {},
            Marker::Square => (polygon(&[(x - 4.2, y - 4.2), (x + 4.2, y - 4.2), (x + 4.2, y + 4.2), (x - 4.2, y + 4.2)], colour)),
            Marker::Diamond => (polygon(&[(x, y - 5.8), (x + 5.8, y), (x, y + 5.8), (x - 5.8, y)], colour)),
            Marker::Up => (polygon(&[(x, y - 5.4), (x + 5.4, y + 4.2), (x - 5.4, y + 4.2)], colour)),
            Marker::Down => (polygon(&[(x, y + 5.4), (x + 5.4, y - 4.2), (x - 5.4, y - 4.2)], colour)),
        }
    }
}

fn polygon(corners: &[(f64, f64)], colour: &str) -> Markup {
    let points: Vec<_> = corners.iter().map(|&(x, y)| format!("{},{}", n(x), n(y))).collect();
    html! { polygon points=(points.join(" ")) fill=(colour) stroke="#333333" stroke-width="0.8" {} }
}

/// The marker of a published point: a hollow diamond, visible on any
/// background.
pub fn published(x: f64, y: f64, colour: &str) -> Markup {
    let path = format!("M{} {} l6.5 6.5 l-6.5 6.5 l-6.5 -6.5 Z", n(x), n(y - 6.5));
    html! {
        path d=(path) fill="#ffffff" fill-opacity="0.35" stroke="#ffffff" stroke-width="4" {}
        path.published d=(path) fill="none" stroke="#222222" stroke-width="2.6" {}
        path d=(path) fill="none" stroke=(colour) stroke-width="1.4" {}
    }
}
