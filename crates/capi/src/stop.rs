//! Functions of the caller that say whether to go on.

use std::ffi::c_void;
use std::ops::ControlFlow;

/// Whether a call is to end.
pub type pantile_stop = Option<unsafe extern "C" fn(context: *mut c_void) -> bool>;

/// Asks a function that may be NULL whether to go on.
///
/// # Safety
/// The caller of the library has handed over a function and what it takes.
pub(crate) unsafe fn go_on(stop: pantile_stop, context: *mut c_void) -> ControlFlow<()> {
    // SAFETY: as the caller promises.
    match stop.is_some_and(|stop| unsafe { stop(context) }) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// What C hands over with a function that is called later.
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: the caller sees to it, as the function's comment says.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
