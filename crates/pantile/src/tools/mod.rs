//! Tools that check, show and salvage the files of a closed database, damaged or not. They do not write to these
//! files.
//!
//! [`check`] verifies the files and lists what is wrong. [`inspect`] shows what is stored where. [`salvage`] reads
//! what is undamaged in a damaged database and copies it into a new one. The command `pantile` of the repository
//! prints what they return.
//!
//! ```
//! use pantile::tools::{CheckOptions, CheckReport, Finding, Location, Severity, check};
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("shop");
//! # drop(pantile::Database::open(&path)?);
//! # let mut file = std::fs::read(path.join("pantile.data")).unwrap();
//! # file[20] ^= 1;
//! # std::fs::write(path.join("pantile.data"), file).unwrap();
//! // A bit of the file in `path` has flipped.
//! let report: CheckReport = check(&path, &CheckOptions::new())?;
//! assert!(!report.is_sound());
//! let first: &Finding = &report.findings[0];
//! assert_eq!(first.severity, Severity::Damage);
//! let place: &Location = &first.place;
//! println!("{first}");
//! # assert!(place.offset.is_some());
//! # Ok::<(), pantile::Error>(())
//! ```

mod backup;
mod check;
mod definitions;
mod findings;
mod image;
mod inspect;
mod options;
mod reading;
mod salvage;
mod watch;

pub use crate::api::incomplete::RESTORING;
pub use backup::{BackupOptions, BackupProgress, BackupReport, RestoreReport, restore};
pub use check::{CheckReport, check};
pub use findings::{Finding, Location, Severity};
pub use image::InspectedImage;
pub use inspect::{
    BlockState, InspectedBlock, InspectedChunk, InspectedRecord, InspectedTable, Inspection, inspect,
};
pub use options::{CheckOptions, CheckStep};
pub use salvage::{SalvageReport, Salvaged, salvage};
pub use watch::watch;
