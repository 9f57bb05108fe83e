//! What the MariaDB plugin links: the C interface, and collectors by name.
//!
//! The plugin itself is C++, in `mariadb/handler`; docs/mariadb.md says how it
//! is built and how it works.

use std::ffi::{CStr, c_char, c_int};

use pantile_c::{PANTILE_INVALID, PANTILE_OK, pantile_options};

/// Sets the collector by its name, as in `tb-collect`. Returns `PANTILE_INVALID`
/// if there is none of this name.
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
    let collector = name.to_str().ok().and_then(pantile_rivals::by_name);
    match (options, collector) {
        (Some(options), Some(collector)) => {
            options.set_collector(collector);
            PANTILE_OK
        }
        _ => PANTILE_INVALID,
    }
}
