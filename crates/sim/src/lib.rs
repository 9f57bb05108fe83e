//! A simulator of power cuts.
//!
//! A case is a few lives of a database in one thread. A seeded scheduler lets
//! several clients and the collector take turns, and advances the time. The
//! medium logs everything done to it. From the log the simulator builds images
//! of what a power cut could have left at any boundary. It opens them and
//! compares them with what was acknowledged. Now and then it cuts the recovery
//! too. During a life it compares every answer with an oracle of all versions,
//! and every commit with what other transactions have read. The same seed
//! repeats a case exactly.

mod aside;
mod campaign;
mod case;
mod client;
mod controls;
mod found;
mod life;
mod state;

pub use campaign::{Campaign, Outcome, Until};
pub use case::{Case, Cut, CutOfCase, Failure, Totals};
pub use controls::{Caught, NegativeControl, Removed};
