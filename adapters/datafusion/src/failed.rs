//! Errors of Pantile, as DataFusion passes them on.

use datafusion::error::DataFusionError;

/// The source of the result is what failed.
pub fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
