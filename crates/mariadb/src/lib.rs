//! What the MariaDB plugin links: the C interface, and collectors and media by
//! name, those of the laboratory among them.
//!
//! The plugin itself is C++, in `mariadb/handler`; docs/mariadb.md says how it
//! is built and how it works.

use std::ffi::{CStr, c_char, c_int};

use pantile::{GcOptions, Pacing};
use pantile_c::{
    PANTILE_INVALID, PANTILE_MEDIUM_DAX, PANTILE_MEDIUM_DRAM, PANTILE_MEDIUM_FILE, PANTILE_OK,
    pantile_options, pantile_options_medium,
};
use pantile_nvm::NvmConfig;

/// What follows the name of a collector that is to work with published values
/// only, whatever space it takes.
const PUBLISHED: &str = ":published";

/// Sets the collector by its name, as in `tb-collect` or `tb-collect:published`.
/// Returns `PANTILE_INVALID` if there is none of this name.
///
/// # Safety
/// `options` are from `pantile_options_new`, and `name` ends with a zero byte.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // the handler hands over pointers
pub unsafe extern "C" fn pantile_server_collector(
    options: *mut pantile_options,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (options, name) = unsafe { (options.as_mut(), CStr::from_ptr(name)) };
    let (name, pacing) = pace(name.to_str().unwrap_or_default());
    match (options, pantile_rivals::by_name(name)) {
        (Some(options), Some(collector)) => {
            options.set_collector(collector);
            options.set_pacing(pacing);
            PANTILE_OK
        }
        _ => PANTILE_INVALID,
    }
}

fn pace(name: &str) -> (&str, Pacing) {
    match name.strip_suffix(PUBLISHED) {
        Some(collector) => (collector, GcOptions::published().pacing),
        None => (name, GcOptions::default().pacing),
    }
}

/// Sets the medium by its name: `file`, `dram`, `dax`, or an emulated memory as
/// in `nvm:optane`. Returns `PANTILE_INVALID` if there is none of this name.
///
/// # Safety
/// `options` are from `pantile_options_new`, and `name` ends with a zero byte.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // the handler hands over pointers
pub unsafe extern "C" fn pantile_server_medium(options: *mut pantile_options, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default();
    match name {
        "file" => pantile_options_medium(options, PANTILE_MEDIUM_FILE),
        "dram" => pantile_options_medium(options, PANTILE_MEDIUM_DRAM),
        "dax" => pantile_options_medium(options, PANTILE_MEDIUM_DAX),
        _ => {
            // SAFETY: the caller's promise.
            let options = unsafe { options.as_mut() };
            match (options, name.strip_prefix("nvm:").and_then(NvmConfig::by_name)) {
                (Some(options), Some(config)) => {
                    options.set_medium(config);
                    PANTILE_OK
                }
                _ => PANTILE_INVALID,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantile_c::{pantile_options_free, pantile_options_new};

    #[test]
    #[allow(unsafe_code)] // as the handler calls
    fn names_are_found_or_refused() {
        let options = pantile_options_new();
        for (medium, expected) in [
            (c"file", PANTILE_OK),
            (c"dram", PANTILE_OK),
            (c"dax", PANTILE_OK),
            (c"nvm:optane-40", PANTILE_OK),
            (c"nvm:E", PANTILE_OK),
            (c"nvm:E-40", PANTILE_OK),
            (c"nvm:F", PANTILE_INVALID),
            (c"E", PANTILE_INVALID),
            (c"", PANTILE_INVALID),
        ] {
            // SAFETY: `options` are from `pantile_options_new`.
            let code = unsafe { pantile_server_medium(options, medium.as_ptr()) };
            assert_eq!(code, expected, "{medium:?}");
        }
        for (collector, expected) in [
            (c"tb-collect", PANTILE_OK),
            (c"zen:published", PANTILE_OK),
            (c":published", PANTILE_INVALID),
            (c"tb-collect:", PANTILE_INVALID),
        ] {
            // SAFETY: `options` are from `pantile_options_new`.
            let code = unsafe { pantile_server_collector(options, collector.as_ptr()) };
            assert_eq!(code, expected, "{collector:?}");
        }
        pantile_options_free(options);
    }

    #[test]
    fn published_values_are_asked_for() {
        assert_eq!(pace("zen:published"), ("zen", Pacing::Fixed));
        assert_eq!(pace("tb-collect"), ("tb-collect", Pacing::Adaptive));
    }
}
