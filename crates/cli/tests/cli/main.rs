//! The command, as people and scripts call it.

mod command;
mod crashtest;
mod paper;
mod space;
mod transfer;
