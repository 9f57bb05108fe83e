//! Structs as rows.

mod columns;
mod messages;
mod typed_tables;
