//! Indexes against a model, with threads, and the memory that they take.

mod common;
mod concurrent;
mod marks;
mod model;
mod space;
