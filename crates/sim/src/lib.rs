//! A simulator that cuts the power.
//!
//! A case is a few lives of a database in one thread: a seeded scheduler lets
//! several clients and the collector take turns on a medium that logs what is
//! done to it, by a time that the scheduler lets pass. From the log it makes
//! images of what a power cut could have left at any boundary, opens them, and
//! compares them with what was acknowledged; now and then it cuts the recovery
//! too. While it runs, every answer is compared with an oracle of all versions,
//! and every commit with what others have read. The same seed does the same
//! again, exactly.

mod campaign;
mod case;
mod client;
mod controls;
mod life;
mod state;

pub use campaign::{Campaign, Outcome, Until};
pub use case::{Case, Cut, CutOfCase, Failure, Totals};
pub use controls::{Caught, NegativeControl, Removed};
