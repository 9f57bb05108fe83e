//! A line for each second while a run is measured.

use pantile_bench::record::Second;

use crate::figures::{decimals, whole};

/// Columns with fixed widths, wide enough for a large machine: each line is
/// printed before the next is known.
const COLUMNS: [(&str, usize); 10] = [
    ("second", 6),
    ("txn/s", 10),
    (QUERIES, 9),
    ("used MB", 11),
    ("live MB", 11),
    ("ratio", 6),
    ("reclaimed/s", 11),
    ("relocated/s", 11),
    ("queued", 8),
    ("chain", 7),
];

/// The column that only workloads with analytical clients have.
const QUERIES: &str = "queries/s";

/// The names of the columns, for a run with seconds like this one.
pub fn head(second: &Second) -> String {
    render(second, COLUMNS.map(|(name, _)| name.to_owned()))
}

/// The line of a second.
pub fn line(second: &Second) -> String {
    let per_second = |count: u64| whole(Some(count as f64 / second.seconds.max(1e-3)));
    let megabytes = |bytes: u64| decimals(Some(bytes as f64 / 1e6), 1);
    let cells = [
        second.second.to_string(),
        per_second(second.transactions),
        second.queries.map_or_else(String::new, per_second),
        megabytes(second.used_bytes),
        megabytes(second.live_bytes),
        decimals(second.ratio(), 2),
        per_second(second.blocks_reclaimed),
        per_second(second.survivors_relocated),
        whole(Some(second.queued_blocks as f64)),
        decimals(Some(second.chain_mean), 2),
    ];
    render(second, cells)
}

fn render(second: &Second, cells: [String; COLUMNS.len()]) -> String {
    let columns = cells.iter().zip(COLUMNS);
    let shown = columns.filter(|(_, (name, _))| *name != QUERIES || second.queries.is_some());
    let cells = shown.map(|(cell, (_, width))| format!("{cell:>width$}"));
    cells.collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_with_their_head() {
        let second = Second {
            second: 7,
            seconds: 0.5,
            transactions: 10_000,
            used_bytes: 1_234_567_890,
            live_bytes: 617_283_945,
            blocks_reclaimed: 40,
            survivors_relocated: 3,
            queued_blocks: 12,
            chain_mean: 1.25,
            ..Second::default()
        };
        let words = |second| {
            let (head, line) = (head(&second), line(&second));
            assert_eq!(head.len(), line.len());
            assert_eq!(head.contains("queries/s"), second.queries.is_some());
            line.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(words(second), ["7", "20,000", "1234.6", "617.3", "2.00", "80", "6", "12", "1.25"]);
        let second = Second { queries: Some(3), ..second };
        assert_eq!(words(second)[..4], ["7", "20,000", "6", "1234.6"]);
    }

    #[test]
    fn nothing_live_has_no_ratio() {
        assert_eq!(line(&Second::default()).len(), head(&Second::default()).len());
        assert!(!line(&Second::default()).contains("NaN"));
    }
}
