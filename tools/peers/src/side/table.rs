//! The table.

use std::fmt::Write;

use pantile_bench::baseline::median;

use super::Measured;
use super::measure::Figure;

/// A table in Markdown of the medians of each store's rounds, the best of each line
/// in bold, how the first store compares with the best other one, and what share it
/// reaches of the floor, where there is one.
pub fn table(stores: &[Measured], floor: Option<&Vec<Vec<Figure>>>) -> String {
    let names: Vec<_> = stores.iter().map(|(name, _)| *name).collect();
    let Some((_, [first, ..])) = stores.first().map(|(name, rounds)| (name, &rounds[..])) else {
        return String::new();
    };
    let mut out = format!("| | {} | {1} / best other | {1} / floor |\n", names.join(" | "), names[0]);
    let _ = writeln!(out, "|{}", " --- |".repeat(names.len() + 3));
    for line in first {
        let of_store = |rounds: &Vec<Vec<Figure>>| {
            let of_line =
                |round: &Vec<Figure>| round.iter().find(|figure| figure.what == line.what).map(|f| f.value);
            median(&rounds.iter().filter_map(of_line).collect::<Vec<_>>())
        };
        let values: Vec<_> = stores.iter().map(|(_, rounds)| of_store(rounds).unwrap_or(0.0)).collect();
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
        let share =
            floor.and_then(of_store).map_or(String::new(), |floor| format!("{:.2}", values[0] / floor));
        let _ = writeln!(out, "| {} | {} | {ratio} | {share} |", line.what, cells.join(" | "));
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
