//! What every medium owes its users, and what is left when their process dies.
//!
//! Some tests start this program again. A child that is being started holds
//! inherited locks, so no test here opens again what it has closed.

mod bus_error;
mod contract;
mod kill;
