//! What several parts of a drawing are made of.

use maud::{Markup, html};

use super::style::Style;

/// A length in the drawing, with no more digits than are visible.
pub fn n(length: f64) -> String {
    format!("{length:.1}")
}

/// A rectangle in a collector's colour and hatching.
pub fn filled((x, y): (f64, f64), (width, height): (f64, f64), style: Style) -> Markup {
    html! {
        rect x=(n(x)) y=(n(y)) width=(n(width)) height=(n(height)) fill=(style.colour) stroke="#333333"
            stroke-width="0.7" {}
        @if let Some(id) = style.hatch.id() {
            rect x=(n(x)) y=(n(y)) width=(n(width)) height=(n(height)) fill=(format!("url(#{id})")) {}
        }
    }
}

/// The dashed outline of a bar that a model predicts.
pub fn foretold((x, y): (f64, f64), (width, height): (f64, f64)) -> Markup {
    html! {
        rect.model x=(n(x)) y=(n(y)) width=(n(width)) height=(n(height)) fill="none" stroke="currentColor"
            stroke-width="1.4" stroke-dasharray="3 4" {}
    }
}
