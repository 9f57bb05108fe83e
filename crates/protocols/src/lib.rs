//! The laboratory's concurrency controls: the ten that Zen+ runs over its log-free commit (3.3.2 and
//! Figure 23), over Pantile's. `docs/protocols.md` describes each, and in what it differs from its paper.
//!
//! An application does not link this crate. Each file here defines one constant of the type
//! [`Protocol`], to be given to the engine's options.
//!
//! ```
//! assert_eq!(pantile_protocols::by_name("silo"), Some(pantile_protocols::SILO));
//! assert_eq!(pantile_protocols::all().len(), 10);
//! ```

mod by_slot;
mod cicada;
mod deadlock_detection;
mod h_store;
mod hekaton;
mod locks;
mod mvto;
mod no_wait;
mod occ;
mod silo;
mod tictoc;
mod wait_die;

pub use cicada::CICADA;
pub use deadlock_detection::DEADLOCK_DETECTION;
pub use h_store::H_STORE;
pub use hekaton::HEKATON;
pub use mvto::MVTO;
pub use no_wait::NO_WAIT;
pub use occ::OCC;
pub use pantile_cc::Protocol;
pub use silo::SILO;
pub use tictoc::TICTOC;
pub use wait_die::WAIT_DIE;

/// Every protocol, in the order of Zen+'s Figure 23.
const ALL: &[Protocol] =
    &[DEADLOCK_DETECTION, WAIT_DIE, NO_WAIT, OCC, SILO, TICTOC, MVTO, HEKATON, CICADA, H_STORE];

/// Every protocol of this crate.
pub fn all() -> &'static [Protocol] {
    ALL
}

/// The protocol of this name.
pub fn by_name(name: &str) -> Option<Protocol> {
    ALL.iter().copied().find(|protocol| protocol.name() == name)
}
