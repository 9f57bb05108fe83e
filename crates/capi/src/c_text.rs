//! Texts as C reads them.

use std::ffi::CString;

/// The text with a zero byte at its end, and none in it.
pub(crate) fn as_c(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}
