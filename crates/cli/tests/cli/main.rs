//! The command, as people and scripts call it.

mod backup;
mod command;
mod crashtest;
mod paper;
mod salvage;
mod shell;
mod space;
mod top;
mod transfer;
