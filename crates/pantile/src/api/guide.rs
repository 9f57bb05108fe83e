//! The programs of `docs/guide`, which the documentation tests compile and run.

#[doc = include_str!("../../../../docs/guide/start.md")]
mod start {}

#[doc = include_str!("../../../../docs/guide/model.md")]
mod model {}

#[doc = include_str!("../../../../docs/guide/transactions.md")]
mod transactions {}

#[doc = include_str!("../../../../docs/guide/durability.md")]
mod durability {}

#[doc = include_str!("../../../../docs/guide/space.md")]
mod space {}

#[doc = include_str!("../../../../docs/guide/backup.md")]
mod backup {}

#[doc = include_str!("../../../../docs/guide/schema.md")]
mod schema {}

#[doc = include_str!("../../../../docs/guide/tuning.md")]
mod tuning {}

#[doc = include_str!("../../../../docs/guide/operate.md")]
mod operate {}

#[doc = include_str!("../../../../docs/guide/migrate.md")]
mod migrate {}
