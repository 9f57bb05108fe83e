//! The protocols that threads of the engine follow among each other, model by
//! model. A model states in its first lines what must hold.

use std::process::ExitCode;

#[cfg(pantile_shuttle)]
mod index;
#[cfg(pantile_shuttle)]
mod reclaim;
#[cfg(pantile_shuttle)]
mod registry;
#[cfg(pantile_shuttle)]
mod slots;
#[cfg(pantile_shuttle)]
mod support;
#[cfg(pantile_shuttle)]
mod transactions;

#[cfg(pantile_shuttle)]
fn main() -> ExitCode {
    let models = [registry::MODELS, transactions::MODELS, index::MODELS, reclaim::MODELS, slots::MODELS];
    pantile_interleavings::main(&models.concat())
}

#[cfg(not(pantile_shuttle))]
fn main() -> ExitCode {
    println!("models need the model checker's atomics: scripts/interleave [SECONDS] [MODEL]");
    ExitCode::SUCCESS
}
