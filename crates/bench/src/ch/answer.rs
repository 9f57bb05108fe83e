//! What a query answers.

/// One value of an answer.
#[derive(Clone, PartialEq, PartialOrd, Debug)]
pub enum Cell {
    /// A whole number; money is in hundredths, times in microseconds since 1970.
    Number(i64),
    /// A mean or a share.
    Real(f64),
    /// A string.
    Text(String),
}

/// The rows of an answer, in its order.
pub type Answer = Vec<Vec<Cell>>;

macro_rules! cell_from {
    ($($source:ty),*) => {
        $(impl From<$source> for Cell {
            fn from(number: $source) -> Self {
                Cell::Number(number.into())
            }
        })*
    };
}

cell_from!(u8, u16, u32, i64);

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Cell::Real(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

/// A column to order by.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// From small to large.
    Up(usize),
    /// From large to small.
    Down(usize),
}

/// The answer in the order of these columns, the first counting most.
pub fn ordered(mut answer: Answer, by: &[By]) -> Answer {
    answer.sort_by(|a, b| {
        let each = by.iter().map(|by| match *by {
            By::Up(column) => a[column].partial_cmp(&b[column]),
            By::Down(column) => b[column].partial_cmp(&a[column]),
        });
        each.flatten().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    answer
}

/// A row of an answer.
macro_rules! row {
    ($($cell:expr),+ $(,)?) => { vec![$(crate::ch::answer::Cell::from($cell)),+] };
}

pub(super) use row;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_ordered_by_one_column_after_the_other() {
        let answer = vec![row![1u8, "b"], row![2u8, "a"], row![2u8, "b"], row![1u8, "c"]];
        let down = ordered(answer.clone(), &[By::Down(0), By::Up(1)]);
        assert_eq!(down, [row![2u8, "a"], row![2u8, "b"], row![1u8, "b"], row![1u8, "c"]]);
        let up = ordered(answer, &[By::Up(0), By::Down(1)]);
        assert_eq!(up, [row![1u8, "c"], row![1u8, "b"], row![2u8, "b"], row![2u8, "a"]]);
    }
}
