//! How much data there is.

use serde::Serialize;

/// The size of a TPC-C database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u16,
    /// Items, and stock of each warehouse.
    pub items: u32,
    /// Customers of each district, and orders that it begins with.
    pub customers: u32,
}

/// Districts of each warehouse.
pub const DISTRICTS: u8 = 10;

/// What each loaded customer has paid, in hundredths.
pub const FIRST_PAYMENT: i64 = 1000;

impl Scale {
    /// That of the specification.
    pub const fn full(warehouses: u16) -> Self {
        Self { warehouses, items: 100_000, customers: 3_000 }
    }

    /// Orders of each district that are loaded as delivered: 2,100 of 3,000.
    pub const fn delivered(&self) -> u32 {
        self.customers / 10 * 7
    }

    /// How many different last names there are.
    pub const fn last_names(&self) -> u32 {
        if self.customers < 1000 { self.customers } else { 1000 }
    }
}
