//! How transactions hold the open database.

use std::array;
use std::sync::Arc;

use pantile_base::{Padded, thread_id};

use crate::engine::core::Core;

/// A reference to the open database, which counts in a place that few other threads use. All
/// transactions would write to the same place if each had a reference of its own.
pub(crate) type Seat = Arc<Padded<Arc<Core>>>;

/// Places in which references are counted.
const SEATS: usize = 16;

/// The references of an open database.
pub(crate) struct Seats([Seat; SEATS]);

impl Seats {
    pub fn new(core: &Arc<Core>) -> Self {
        Self(array::from_fn(|_| Arc::new(Padded(Arc::clone(core)))))
    }

    /// The one of the calling thread.
    #[inline]
    pub fn own(&self) -> Seat {
        Arc::clone(&self.0[thread_id() as usize % SEATS])
    }
}
