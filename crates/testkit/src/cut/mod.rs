//! What a power cut leaves: the one model of it.
//!
//! A [`CutMedium`] logs what is done to it. A [`Replay`] goes through the log
//! and makes images of what could be found if the power had been cut at any
//! boundary between two events. What was durable is there; [`Keep`] says what
//! is left of the rest. The simulator runs several cores in one thread; tests
//! with threads give each thread a core of its own.

mod beside;
mod image;
mod log;
mod medium;
mod replay;

pub use image::Image;
pub use log::{CutKind, Log};
pub use medium::{Broken, CutMedium};
pub use replay::{Keep, Replay};
