//! What every medium guarantees, and what is left when the process dies.
//!
//! Some tests start this program again. A child that is being started holds
//! inherited locks, so no test here reopens what it has closed.

mod bus_error;
mod contract;
mod kill;
