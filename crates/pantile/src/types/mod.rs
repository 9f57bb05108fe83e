//! What callers and the engine both speak: values, rows, keys, definitions, options, errors, statistics.

pub(crate) mod definition;
pub(crate) mod error;
pub(crate) mod isolation;
pub(crate) mod key;
pub(crate) mod lost;
pub(crate) mod memory;
pub(crate) mod options;
pub(crate) mod range;
pub(crate) mod row;
pub(crate) mod row_id;
pub(crate) mod row_shape;
pub(crate) mod schema;
pub(crate) mod stats;
pub(crate) mod value;
pub(crate) mod verified;
