//! The table.

use std::fmt::Write;

use pantile_bench::baseline::median;

use super::measure::Figure;

/// A table in Markdown of the medians of each store's rounds, the best of each line
/// in bold, and how the first store compares with the best other one.
pub fn table(names: &[&str], figures: &[Vec<Vec<Figure>>]) -> String {
    let mut out = format!("| | {} | {} / best other |\n", names.join(" | "), names[0]);
    let _ = writeln!(out, "|{}", " --- |".repeat(names.len() + 2));
    let Some(lines) = figures.first().and_then(|rounds| rounds.first()) else { return out };
    for (n, line) in lines.iter().enumerate() {
        let of_store = |rounds: &Vec<Vec<Figure>>| {
            let values: Vec<_> = rounds.iter().map(|round| round[n].value).collect();
            median(&values).unwrap_or(0.0)
        };
        let values: Vec<_> = figures.iter().map(of_store).collect();
        // As something of which more is better.
        let merit = |value: f64| if line.is_cost { -value } else { value };
        let best = values.iter().copied().max_by(|a, b| merit(*a).total_cmp(&merit(*b))).unwrap_or(0.0);
        let cell = |value: &f64| {
            let shown = number(*value);
            if *value == best { format!("**{shown}**") } else { shown }
        };
        let cells: Vec<_> = values.iter().map(cell).collect();
        let other = values[1..].iter().copied().max_by(|a, b| merit(*a).total_cmp(&merit(*b)));
        let ratio = other.map_or(String::new(), |other| format!("{:.2}", values[0] / other));
        let _ = writeln!(out, "| {} | {} | {ratio} |", line.what, cells.join(" | "));
    }
    out
}

/// With thousands apart, and decimals where it is small.
fn number(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let (head, tail) = digits.split_at(first);
    let groups = tail.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let all: Vec<_> =
        std::iter::once(head.to_owned()).filter(|head| !head.is_empty()).chain(groups).collect();
    all.join(",")
}
