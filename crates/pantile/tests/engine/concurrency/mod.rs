//! Transactions of many threads: unique keys, indexes, waiting, definitions
//! that change beside them, and what one thread tells another.

mod bank;
mod churn;
mod ddl;
mod indexes;
mod own_writes;
mod space;
mod table;
mod unique;
mod waiting;
