//! A part of the database Pantile; applications use the crate `pantile`. It
//! holds concurrency control: the clock, the registry of running transactions
//! (the only source of watermarks), read marks, and the seam of the laboratory's protocols.
//!
//! In the repository, `docs/design.md` ("Concurrency control") has the
//! definitions and the invariants that comments here cite as I-n.

#![allow(unsafe_code)] // reading the CPU's clock and binding threads to cores for the trust test

mod clock;
mod cores;
mod deadline;
mod epoch;
mod marks;
mod pin;
mod protocol;
mod registry;
mod trust;
mod waits;
mod watermarks;

pub use clock::{Clock, ClockSource, SimulatedTime};
pub use epoch::{Epoch, EpochManager, RunningEpochs, RunningSet, Sight};
pub use marks::ReadMarks;
pub use pin::{Grace, Pin};
pub use protocol::{
    Access, Committing, ConcurrencyControl, Item, Protocol, ProtocolDescription, Read, Reads, Refusal, Txn,
};
pub use registry::{Begin, CommitsUnderWay, Full, Open, Registry, Slot};
