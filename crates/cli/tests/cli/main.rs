//! The command, as people and scripts call it.

mod backup;
mod command;
mod crashtest;
mod paper;
mod salvage;
mod space;
mod top;
mod transfer;
