//! What the MariaDB plugin links: the C interface, and collectors and media by
//! name; with the feature `laboratory`, those of the laboratory among them.
//!
//! The plugin itself is C++, in `mariadb/handler`; docs/mariadb.md says how it
//! is built and how it works.

use std::ffi::{CStr, c_char, c_int};

use pantile::{Collector, GcOptions};
use pantile_c::{
    PANTILE_MEDIUM_DAX, PANTILE_MEDIUM_DRAM, PANTILE_MEDIUM_FILE, PANTILE_OK, misuse, pantile_options,
    pantile_options_medium,
};

#[cfg(feature = "laboratory")]
mod laboratory;
#[cfg(feature = "laboratory")]
use laboratory as offered;
#[cfg(not(feature = "laboratory"))]
mod product;
#[cfg(not(feature = "laboratory"))]
use product as offered;

/// What follows the name of a collector that is to work with published values
/// only, whatever space it takes.
const PUBLISHED: &str = "published";

/// Sets the collector by its name, as in `tb-collect`, `tb-collect:published`, or `tb-collect:published:0.5` for
/// another theta than the published one. Returns `PANTILE_MISUSE` if there is none of this name, and notes which there
/// are.
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
    let (options, name) = unsafe { (&mut *options, CStr::from_ptr(name)) };
    let name = name.to_string_lossy();
    let all = offered::collectors();
    let by_name = |(name, gc)| Some((all.iter().find(|one| one.name() == name)?, gc));
    let Some((collector, gc)) = understand(&name).and_then(by_name) else {
        let all: Vec<_> = all.iter().copied().map(Collector::name).collect();
        return refuse("collector", &name, "pantile_gc", &all.join(", "));
    };
    options.set_collector(*collector);
    options.change_gc(|all| (all.pacing, all.theta) = (gc.pacing, gc.theta));
    PANTILE_OK
}

/// The collector that is meant, and its pacing and theta.
fn understand(name: &str) -> Option<(&str, GcOptions)> {
    let parts: Vec<_> = name.split(':').collect();
    let (collector, gc) = match parts[..] {
        [collector] => (collector, GcOptions::default()),
        [collector, PUBLISHED] => (collector, GcOptions::published()),
        [collector, PUBLISHED, theta] => {
            (collector, GcOptions { theta: theta.parse().ok()?, ..GcOptions::published() })
        }
        _ => return None,
    };
    gc.check().is_ok().then_some((collector, gc))
}

/// Sets the medium by its name: `file`, `dram`, `dax`, or an emulated memory as
/// in `nvm:optane`. Returns `PANTILE_MISUSE` if there is none of this name, and notes which there are.
///
/// # Safety
/// `options` are from `pantile_options_new`, and `name` ends with a zero byte.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // the handler hands over pointers
pub unsafe extern "C" fn pantile_server_medium(options: *mut pantile_options, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    match name.as_ref() {
        "file" => pantile_options_medium(options, PANTILE_MEDIUM_FILE),
        "dram" => pantile_options_medium(options, PANTILE_MEDIUM_DRAM),
        "dax" => pantile_options_medium(options, PANTILE_MEDIUM_DAX),
        // SAFETY: the caller's promise.
        _ if offered::set_emulated(unsafe { &mut *options }, &name) => PANTILE_OK,
        _ => refuse("medium", &name, "pantile_medium", offered::MEDIA),
    }
}

fn refuse(what: &str, name: &str, variable: &str, all: &str) -> c_int {
    misuse(format!("there is no {what} {name} in this plugin; {variable} takes {all}{}", offered::ELSEWHERE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantile_c::{PANTILE_MISUSE, pantile_error_message, pantile_options_free, pantile_options_new};

    /// Sets both by their names, as the handler does, and returns the error.
    #[allow(unsafe_code)] // as the handler calls
    fn set(medium: &CStr, collector: &CStr) -> Option<String> {
        let options = pantile_options_new();
        // SAFETY: `options` are from `pantile_options_new`.
        let codes = unsafe {
            [
                pantile_server_medium(options, medium.as_ptr()),
                pantile_server_collector(options, collector.as_ptr()),
            ]
        };
        pantile_options_free(options);
        assert!(codes.iter().all(|code| [PANTILE_OK, PANTILE_MISUSE].contains(code)), "{codes:?}");
        // SAFETY: the text is valid until the next call that fails.
        let message = unsafe { CStr::from_ptr(pantile_error_message()) };
        codes.contains(&PANTILE_MISUSE).then(|| message.to_string_lossy().into_owned())
    }

    #[test]
    fn names_are_found_or_refused() {
        for medium in [c"file", c"dram", c"dax"] {
            let published = [c"tb-collect:published", c"tb-collect:published:0.5"];
            for collector in [c"none", c"tb-collect", c"tb-collect-eager"].into_iter().chain(published) {
                assert_eq!(set(medium, collector), None, "{medium:?}, {collector:?}");
            }
        }
        for medium in [c"nvm:F", c"E", c""] {
            let error = set(medium, c"none").unwrap_or_else(|| panic!("{medium:?} was taken"));
            assert!(error.contains("pantile_medium takes file, dram, dax"), "{error}");
        }
        let wrong_theta = [c"tb-collect:0.5", c"tb-collect:published:0.2", c"tb-collect:published:half"];
        for collector in [c":published", c"tb-collect:", c""].into_iter().chain(wrong_theta) {
            let error = set(c"file", collector).unwrap_or_else(|| panic!("{collector:?} was taken"));
            assert!(error.contains("pantile_gc takes none, "), "{error}");
        }
    }

    #[test]
    fn the_laboratory_is_there_if_it_was_asked_for() {
        let has_laboratory = cfg!(feature = "laboratory");
        for medium in [c"nvm:optane-40", c"nvm:E", c"nvm:E-40"] {
            assert_eq!(set(medium, c"none").is_none(), has_laboratory, "{medium:?}");
        }
        for collector in [c"zen:published", c"steam"] {
            assert_eq!(set(c"file", collector).is_none(), has_laboratory, "{collector:?}");
        }
        let error = set(c"file", c"of nobody").expect("refused");
        assert!(error.starts_with("there is no collector of nobody in this plugin; "), "{error}");
        assert_eq!(error.contains("steam"), has_laboratory, "{error}");
        assert_eq!(error.contains("scripts/mariadb/build"), !has_laboratory, "{error}");
    }

    #[test]
    fn published_values_are_asked_for() {
        assert_eq!(understand("zen:published"), Some(("zen", GcOptions::published())));
        assert_eq!(understand("tb-collect"), Some(("tb-collect", GcOptions::default())));
        let at_half = GcOptions { theta: 0.5, ..GcOptions::published() };
        assert_eq!(understand("tb-collect:published:0.5"), Some(("tb-collect", at_half)));
    }
}
