//! What C hands over.

use std::ffi::{CStr, c_char};

use crate::error::{Failure, PANTILE_OK, call};

/// A handle that a caller has lent.
pub(crate) fn lent<'h, T>(pointer: *const T, what: &'static str) -> Result<&'h T, Failure> {
    // SAFETY: callers hand over NULL, or what they were given and have not freed.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// A handle that one thread uses at a time.
pub(crate) fn lent_mut<'h, T>(pointer: *mut T, what: &'static str) -> Result<&'h mut T, Failure> {
    // SAFETY: as for `lent`, and no other thread uses it.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::null(what))
}

/// Where a result goes.
pub(crate) struct Out<'o, T>(&'o mut T);

impl<'o, T> Out<'o, T> {
    pub fn new(pointer: *mut T) -> Result<Self, Failure> {
        lent_mut(pointer, "the place of the result").map(Self)
    }

    pub fn set(self, value: T) {
        *self.0 = value;
    }
}

impl<T> Out<'_, *mut T> {
    /// Hands over a new handle.
    pub fn give(self, value: T) {
        self.set(Box::into_raw(Box::new(value)));
    }
}

/// A result that the caller may not want.
pub(crate) fn tell<T>(pointer: *mut T, value: T) {
    // SAFETY: callers hand over NULL or a place for a `T`.
    if let Some(place) = unsafe { pointer.as_mut() } {
        *place = value;
    }
}

/// Takes a handle back.
pub(crate) fn taken<T>(pointer: *mut T) -> Option<Box<T>> {
    // SAFETY: callers hand over NULL, or what `Out::give` has given them, once.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
}

/// Frees a handle, or NULL. That may end a transaction or close a database, so that no panic passes here either.
pub(crate) fn free<T>(pointer: *mut T) {
    call(|| {
        drop(taken(pointer));
        Ok(PANTILE_OK)
    });
}

/// An array of `len` elements; NULL will do if there are none.
pub(crate) fn array<'a, T>(pointer: *const T, len: usize, what: &'static str) -> Result<&'a [T], Failure> {
    match len {
        0 => Ok(&[]),
        _ if pointer.is_null() => Err(Failure::null(what)),
        // SAFETY: callers hand over as many elements as they say.
        _ => Ok(unsafe { std::slice::from_raw_parts(pointer, len) }),
    }
}

/// A place for `len` elements.
pub(crate) fn array_mut<'a, T>(
    pointer: *mut T,
    len: usize,
    what: &'static str,
) -> Result<&'a mut [T], Failure> {
    match len {
        0 => Ok(&mut []),
        _ if pointer.is_null() => Err(Failure::null(what)),
        // SAFETY: callers hand over as many elements as they say.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) }),
    }
}

/// A text that ends with a zero byte.
pub(crate) fn text<'a>(pointer: *const c_char, what: &'static str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: callers hand over a text that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::misuse(format!("{what} is not UTF-8")))
}

/// Texts that end with a zero byte each.
pub(crate) fn texts(
    pointer: *const *const c_char,
    len: usize,
    what: &'static str,
) -> Result<Vec<String>, Failure> {
    array(pointer, len, what)?.iter().map(|&each| text(each, what).map(str::to_owned)).collect()
}
