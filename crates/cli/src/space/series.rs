//! Measurements one after the other, of which an interruption leaves the first ones.

use pantile_bench::Error;

use crate::exit::Failure;
use crate::output;

/// Results of measurements that are made one after the other.
pub struct Series<R> {
    pub results: Vec<R>,
    /// What ended it early.
    ended: Option<Error>,
}

impl<R> Series<R> {
    /// Measures until one fails, or Ctrl-C ends it. Results from before that stay.
    pub fn of<T>(
        all: impl IntoIterator<Item = T>,
        mut measure: impl FnMut(T, &mut Vec<R>) -> Result<(), Error>,
    ) -> Self {
        let mut results = Vec::new();
        let ended = all.into_iter().find_map(|one| measure(one, &mut results).err());
        Self { results, ended }
    }

    pub fn is_interrupted(&self) -> bool {
        matches!(self.ended, Some(Error::Interrupted { .. }))
    }

    /// How the verb ends. Ctrl-C is no failure if there is something to show.
    pub fn outcome(self) -> Result<Vec<R>, Failure> {
        match self.ended {
            Some(Error::Interrupted { .. }) if !self.results.is_empty() => {
                output::note("interrupted: what was measured before that is above");
                Ok(self.results)
            }
            Some(error) => Err(error.into()),
            None => Ok(self.results),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn results_from_before_an_interruption_are_shown() {
        let until = |interrupted: u32| {
            Series::of(0..4, |n, results| {
                if n == interrupted {
                    return Err(Error::Interrupted { during: "measuring" });
                }
                results.push(n);
                Ok(())
            })
        };
        assert!(until(2).is_interrupted() && !until(9).is_interrupted());
        assert_eq!(until(2).outcome(), Ok(vec![0, 1]));
        assert_eq!(until(9).outcome(), Ok(vec![0, 1, 2, 3]));
        assert_eq!(until(0).outcome().map_err(|failure| failure.exit), Err(Exit::Failure));
    }
}
