//! Dumps that are loaded again, and input that is not as it should be.

mod concurrent;
mod damage;
mod files;
mod home;
mod rows;
mod types;
