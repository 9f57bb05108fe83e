//! Bounds of options.

use std::ops::RangeInclusive;

use pantile_base::control::{Control, is_removed};

use crate::types::error::{Error, Result};

/// Checks a number, if it is given.
pub(crate) fn check_bounds(option: &str, value: Option<u64>, bounds: RangeInclusive<u64>) -> Result<()> {
    match value {
        Some(value) if !bounds.contains(&value) && !is_removed(Control::OptionBounds) => {
            Err(Error::InvalidOption(format!(
                "{option} is {value}; it can be from {} to {}",
                bounds.start(),
                bounds.end()
            )))
        }
        _ => Ok(()),
    }
}
