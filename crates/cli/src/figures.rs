//! Figures as people read them; empty if there is none.

/// With this many digits after the point.
pub fn decimals(figure: Option<f64>, digits: usize) -> String {
    figure.map_or(String::new(), |figure| format!("{figure:.digits$}"))
}

/// A whole number in groups of three digits.
pub fn whole(figure: Option<f64>) -> String {
    let Some(figure) = figure else { return String::new() };
    let digits = format!("{figure:.0}");
    let mut grouped = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_grouped() {
        assert_eq!(whole(Some(7.4)), "7");
        assert_eq!(whole(Some(123.0)), "123");
        assert_eq!(whole(Some(1234.0)), "1,234");
        assert_eq!(whole(Some(1_234_567.0)), "1,234,567");
        assert_eq!(whole(None), "");
    }
}
