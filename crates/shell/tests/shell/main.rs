//! The shell, as people and programs use it.

mod commands;
mod home;
mod session;
