//! Telling other threads that something is over, however it has ended.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped, by a panic, too. Threads of a scope that go
/// on until the flag is set would otherwise keep the scope and the panic waiting
/// for ever.
#[derive(Debug)]
pub struct SaysDone<'f>(pub &'f AtomicBool);

impl Drop for SaysDone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
