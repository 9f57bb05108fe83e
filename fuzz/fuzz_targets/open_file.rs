//! Damaged and forged data files: `check`, `inspect`, opening and reading
//! everything must not panic, hang, or take memory without bounds.
#![no_main]
#![allow(dead_code, reason = "tests use the rest")]

#[path = "../../crates/pantile/tests/engine/damage/forge.rs"]
mod forge;
#[path = "../../crates/pantile/tests/engine/format/image_file.rs"]
pub mod image_file;
#[path = "../../crates/pantile/tests/engine/damage/layout.rs"]
mod layout;
#[path = "../../crates/pantile/tests/engine/damage/look.rs"]
mod look;

mod format {
    pub use crate::image_file;
}

use std::sync::Mutex;

use libfuzzer_sys::fuzz_target;

static FORGE: Mutex<Option<forge::Forge>> = Mutex::new(None);

fuzz_target!(|operations: &[u8]| {
    let mut forge = FORGE.lock().expect("unpoisoned");
    forge.get_or_insert_with(forge::Forge::new).run(operations);
});
