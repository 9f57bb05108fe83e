//! A failed read on Windows is an exception that ends the process: nothing explains it yet.

use super::Protection;
use std::fs::File;
use std::path::Path;

/// There is none.
#[derive(Debug)]
pub(crate) enum Watch {}

/// Watches nothing.
pub(crate) fn watch(
    _start: usize,
    _len: usize,
    _file: &File,
    _path: &Path,
    _protection: Protection,
) -> Option<Watch> {
    None
}
