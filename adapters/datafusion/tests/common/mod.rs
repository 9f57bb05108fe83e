//! What the tests have in common.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;

pub fn block_on<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    runtime.expect("a runtime").block_on(what)
}

pub fn table(batches: &[RecordBatch]) -> String {
    pretty_format_batches(batches).expect("a table").to_string()
}
