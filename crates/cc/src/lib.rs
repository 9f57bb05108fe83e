//! Concurrency control: the clock, the registry of running transactions, and read marks.
//!
//! The registry is the only source of watermarks. The crate also has the interface for the
//! laboratory's protocols. It is a part of the database Pantile; applications use the crate
//! `pantile`.
//!
//! In the repository, `docs/design.md` ("Concurrency control") defines the terms, and the
//! invariants that comments cite as I-n.

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
