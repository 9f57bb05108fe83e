//! Transactions of many threads: unique keys, indexes, waiting, concurrent
//! changes of definitions, and messages from one thread to another.

mod bank;
mod churn;
mod ddl;
mod exclusive;
mod indexes;
mod own_writes;
mod space;
mod table;
mod unique;
mod waiting;
