//! When a wait ends.

use std::time::Duration;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::{Condvar, Instant, MutexGuard};

/// The end of a wait. A time beyond what the clock can say never comes.
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub fn after(limit: Duration) -> Self {
        Self(match is_removed(Control::FarDeadlines) {
            true => Some(Instant::now() + limit),
            false => Instant::now().checked_add(limit),
        })
    }

    /// Waits once; returns whether the time is over.
    pub fn wait<T>(&self, condition: &Condvar, guard: &mut MutexGuard<'_, T>) -> bool {
        match self.0 {
            Some(deadline) => condition.wait_until(guard, deadline).timed_out(),
            None => {
                condition.wait(guard);
                false
            }
        }
    }
}
