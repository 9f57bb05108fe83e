//! What callers and the engine both speak: values, rows, keys, definitions, options, errors, statistics.

pub(crate) mod columns;
pub(crate) mod definition;
pub(crate) mod error;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod isolation;
pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod layouts;
pub(crate) mod lost;
pub(crate) mod memory;
pub(crate) mod options;
pub(crate) mod owned_value;
pub(crate) mod page;
pub(crate) mod range;
pub(crate) mod row;
pub(crate) mod row_id;
pub(crate) mod row_shape;
pub(crate) mod running;
pub(crate) mod schema;
pub(crate) mod stats;
pub(crate) mod stored_value;
pub(crate) mod table_change;
pub(crate) mod value;
pub(crate) mod verified;
