//! Streams of operations of interleaved transactions, against the model that
//! `cargo test -p pantile --test engine model` uses.
#![no_main]
#![allow(dead_code, reason = "tests use the rest")]

#[path = "../../crates/pantile/tests/engine/model/ops.rs"]
mod ops;
#[path = "../../crates/pantile/tests/engine/model/rows.rs"]
mod rows;
#[path = "../../crates/pantile/tests/engine/model/runner.rs"]
mod runner;
#[path = "../../crates/pantile/tests/engine/model/state.rs"]
mod state;
#[path = "../../crates/pantile/tests/engine/support/mod.rs"]
mod support;
#[path = "../../crates/pantile/tests/engine/model/tape.rs"]
mod tape;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tape::run(bytes));
