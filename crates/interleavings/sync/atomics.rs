//! Atomics with a scheduling point before each access.

use std::sync::atomic::{self as native, Ordering};

use super::{step, update};

/// A scheduling point. A model reorders nothing.
pub fn fence(_order: Ordering) {
    step();
}

macro_rules! accesses {
    ($value:ty) => {
        /// As in the standard library.
        #[inline]
        pub fn load(&self, order: Ordering) -> $value {
            step();
            self.0.load(order)
        }

        /// As in the standard library.
        #[inline]
        pub fn store(&self, value: $value, order: Ordering) {
            step();
            self.0.store(value, order);
        }

        /// As in the standard library.
        #[inline]
        pub fn swap(&self, value: $value, order: Ordering) -> $value {
            update();
            self.0.swap(value, order)
        }

        /// As in the standard library.
        ///
        /// # Errors
        /// The current value, if it differs.
        #[inline]
        pub fn compare_exchange(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            update();
            self.0.compare_exchange(current, new, success, failure)
        }

        /// As in the standard library, but without spurious failures.
        ///
        /// # Errors
        /// The current value, if it differs.
        #[inline]
        pub fn compare_exchange_weak(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            self.compare_exchange(current, new, success, failure)
        }

        /// As in the standard library.
        #[inline]
        pub fn get_mut(&mut self) -> &mut $value {
            self.0.get_mut()
        }

        /// As in the standard library.
        #[inline]
        pub fn into_inner(self) -> $value {
            self.0.into_inner()
        }
    };
}

macro_rules! integer {
    ($name:ident, $value:ty) => {
        /// As in the standard library, with a scheduling point before each access.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(native::$name);

        impl $name {
            /// As in the standard library.
            pub const fn new(value: $value) -> Self {
                Self(native::$name::new(value))
            }

            accesses!($value);
            integer!(@update $value, fetch_add fetch_sub fetch_max fetch_min fetch_and fetch_or);
        }
    };
    (@update $value:ty, $($access:ident)*) => {
        $(
            /// As in the standard library.
            #[inline]
            pub fn $access(&self, value: $value, order: Ordering) -> $value {
                update();
                self.0.$access(value, order)
            }
        )*
    };
}

integer!(AtomicU8, u8);
integer!(AtomicU16, u16);
integer!(AtomicU32, u32);
integer!(AtomicU64, u64);
integer!(AtomicI64, i64);
integer!(AtomicUsize, usize);

/// As in the standard library, with a scheduling point before each access.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicBool(native::AtomicBool);

impl AtomicBool {
    /// As in the standard library.
    pub const fn new(value: bool) -> Self {
        Self(native::AtomicBool::new(value))
    }

    accesses!(bool);
}

/// As in the standard library, with a scheduling point before each access.
#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicPtr<T>(native::AtomicPtr<T>);

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self(native::AtomicPtr::default())
    }
}

impl<T> AtomicPtr<T> {
    /// As in the standard library.
    pub const fn new(value: *mut T) -> Self {
        Self(native::AtomicPtr::new(value))
    }

    accesses!(*mut T);
}
