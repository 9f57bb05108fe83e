//! Apart from neighbours.

use std::ops::{Deref, DerefMut};

/// Bytes of two cache lines, since processors fetch lines in pairs.
const APART: usize = 128;

/// Keeps its contents off neighbours' cache lines: what one thread writes often must not take
/// lines from others that need what lies beside it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

const _: () = assert!(align_of::<Padded<u8>>() == APART && size_of::<Padded<u8>>() == APART);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
