//! The store: what it lets collectors do, and what it finds when it is opened.

mod collect;
mod nodes;
mod recover;
