//! Concurrency control: timestamps, the registry of running transactions (the
//! only source of watermarks), and read marks.
//!
//! `docs/design.md` ("Concurrency control") has the definitions, and the
//! invariants that comments here cite as I-n.
#![allow(unsafe_code)] // reads the CPU's clock; binds threads to cores for the trust test

mod clock;
mod epoch;
mod marks;
mod pin;
mod registry;
mod trust;

pub use clock::{Clock, ClockSource, SimulatedTime};
pub use epoch::{Epoch, EpochManager, RunningEpochs, RunningSet, Sight};
pub use marks::ReadMarks;
pub use pin::{Grace, Pin};
pub use registry::{Begin, CommitsUnderWay, Full, Registry, Slot};
