//! A row of figures as a line of small bars.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last `width` figures; the greatest of them has the highest bar.
pub fn sparkline(figures: &[f64], width: usize) -> String {
    let shown = &figures[figures.len().saturating_sub(width)..];
    let most = shown.iter().copied().fold(0.0, f64::max);
    let bar = |figure: &f64| {
        let share = if most > 0.0 { figure / most } else { 0.0 };
        BARS[((share * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    shown.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn bars_are_relative_to_the_greatest() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0], 10), "▁▅█");
        assert_eq!(sparkline(&[9.0, 0.0, 50.0, 100.0], 3), "▁▅█");
        assert_eq!(sparkline(&[0.0, 0.0], 10), "▁▁");
        assert_eq!(sparkline(&[], 10), "");
    }
}
