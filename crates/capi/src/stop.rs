//! Functions of the caller that say whether to go on.

use std::ffi::c_void;

/// Whether a call is to end.
pub type pantile_stop = Option<unsafe extern "C" fn(context: *mut c_void) -> bool>;

/// What C hands over with a function that is called later.
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: the caller sees to it, as the function's comment says.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
