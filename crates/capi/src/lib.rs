//! Pantile for C, and for every language that can call C.
//!
//! ```c
//! pantile_db *db;
//! pantile_table *orders;
//! if (pantile_open("shop", NULL, &db) != PANTILE_OK) {
//!     fprintf(stderr, "%s\n", pantile_error_message());
//!     return 1;
//! }
//! pantile_table_open(db, "orders", &orders);
//!
//! pantile_txn *txn;
//! pantile_begin(db, NULL, &txn);
//! pantile_value row[] = {pantile_uint(1), pantile_text("seven")};
//! int code = pantile_insert(txn, orders, row, 2);
//! if (code == PANTILE_OK)
//!     code = pantile_commit(txn, NULL);
//! else
//!     pantile_rollback(txn);
//! ```
//!
//! `examples/shop.c` is a whole program. The header is `include/pantile.h`; link `libpantile_c.a` or `libpantile_c.so`.
//!
//! # Rules
//!
//! - **Codes.** Calls return [`PANTILE_OK`], [`PANTILE_NOT_FOUND`] or [`PANTILE_DONE`], which are at most 99, or the code
//!   of an error, from 100 on. The message of the last error of a thread is [`pantile_error_message`]; it says what is
//!   still true and what to do. A call that failed has changed nothing, unless its message says otherwise, and has not
//!   touched what its `out` parameters point to.
//! - **Ownership.** What a call hands out through a pointer to a pointer is the caller's, until it is given to the call
//!   that is named beside it: `pantile_close`, `pantile_commit` or `pantile_rollback`, or a call that ends in `_free`.
//!   These take NULL and do nothing then, except for commits and closing. What callers hand in stays theirs and is
//!   copied where it is needed.
//! - **Threads.** Databases, tables and indexes may be used by any number of threads. Transactions, cursors, rows,
//!   options and definitions may go from thread to thread, but one thread uses them at a time.
//! - **Misuse.** NULL where something is needed, text that is not UTF-8: the call
//!   returns [`PANTILE_MISUSE`] and has done nothing. A pointer to something that has been freed is undefined behaviour,
//!   as everywhere in C.
//! - **Panics** of the library end at this interface: the call returns [`PANTILE_PANIC`], and the transaction that it was
//!   about can only be rolled back.
#![allow(unsafe_code)] // C hands over pointers
#![allow(non_camel_case_types, reason = "these are names in C")]
#![allow(
    clippy::missing_safety_doc,
    clippy::not_unsafe_ptr_arg_deref,
    reason = "what callers must see to is said once, above"
)]

mod backup;
mod c_text;
mod change;
mod cursor;
mod database;
mod definition;
mod error;
mod insight;
mod options;
mod pointer;
mod prepared;
mod row;
mod stop;
mod transaction;
mod value;
mod warnings;

pub use backup::*;
pub use change::*;
pub use cursor::*;
pub use database::*;
pub use definition::*;
pub use error::*;
pub use insight::*;
pub use options::*;
pub use prepared::*;
pub use row::*;
pub use stop::*;
pub use transaction::*;
pub use value::*;
pub use warnings::*;
