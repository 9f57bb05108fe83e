//! Opening.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use pantile_base::control::{Control, is_removed};
use pantile_base::limits::BLOCK_SLOTS;
use pantile_base::sync::Instant;
use pantile_cc::Clock;
use pantile_media::{
    Create, DaxMedium, DaxOptions, DirectoryOptions, DramMedium, Durability, FileMedium, FileOptions,
    MapOptions, Medium,
};
use pantile_store::{Store, StoreOptions};

use crate::api::incomplete;
use crate::engine::core::Core;
use crate::engine::failure::{from_medium, from_store};
use crate::engine::memory_limit::MemoryLimit;
use crate::engine::recovery::Scanned;
use crate::types::error::{Error, Result};
use crate::types::options::{MediumKind, Options};

/// Where Linux says which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Opens the medium, recovers what is on it, and opens the database. What a
/// failed creation has made is removed.
pub(crate) fn open(path: &Path, options: Options) -> Result<Arc<Core>> {
    if let Some(medium) = &options.on_medium {
        return open_on(Arc::clone(medium), path, options);
    }
    if options.custom_medium.is_some() || options.medium != MediumKind::Dram {
        incomplete::refuse(path)?;
        incomplete::refuse_part(path)?;
    }
    let medium = open_medium(path, &options)?;
    open_on(Arc::clone(&medium), path, options).inspect_err(|_| medium.withdraw())
}

pub(super) fn open_on(medium: Arc<dyn Medium>, path: &Path, options: Options) -> Result<Arc<Core>> {
    let began = Instant::now();
    let options = options.for_this_machine();
    let streams = options.streams.unwrap_or(1);
    let reclaimer = options.collector.build(options.gc, streams);
    let reuse = reclaimer.slot_reuse();
    if reuse.is_some() && options.row_cache.is_some() {
        return Err(Error::InvalidOption(format!(
            "row_cache needs a collector that frees whole blocks, and {} rewrites slots; do without one of the two",
            options.collector.name()
        )));
    }
    if let Some(bytes) = options.row_cache {
        let most = MemoryLimit::new(options.memory_limit).bytes() / 2;
        if bytes > most {
            return Err(Error::InvalidOption(format!(
                "row_cache is {bytes}, and may be half of the memory_limit, {most}, at most: indexes need the rest"
            )));
        }
    }
    let store_options = StoreOptions {
        streams,
        block_slots: options.block_slots.unwrap_or(BLOCK_SLOTS as u32),
        boot: boot_id(&options)?,
        relaxed: options.durability == Durability::None
            && options.medium != MediumKind::Dax
            && medium.facts().survives_exit,
        must_exist: options.must_exist,
        reuse,
    };
    let in_path = |e| from_store(e, path);
    let store = match &options.salvage {
        Some(_) => Store::open_damaged(medium, store_options),
        None => Store::open(medium, store_options, identity(&options)),
    };
    let store = store.map_err(in_path)?;
    let scanned = Scanned::new(store, &options, began).map_err(in_path)?;
    // Timestamps go on above everything on the medium (T5).
    let highest = if is_removed(Control::ClockGoesOn) { 0 } else { scanned.highest().tick() };
    let clock = match options.simulated_time.clone() {
        Some(time) => Clock::simulated(highest, time),
        None => Clock::new(highest),
    };
    scanned.rebuild(options, clock, reclaimer)?.open()
}

fn open_medium(path: &Path, options: &Options) -> Result<Arc<dyn Medium>> {
    let create = if options.must_exist { Create::MustExist } else { Create::IfMissing };
    let map = MapOptions { max_bytes: options.max_bytes, ..MapOptions::default() };
    let explain_bus_errors = !options.silent_bus_errors;
    if let Some(factory) = &options.custom_medium {
        let options = DirectoryOptions { map, create, explain_bus_errors };
        return factory.open(path, options).map_err(from_medium);
    }
    let opened: Result<Arc<dyn Medium>, _> = match options.medium {
        MediumKind::File => {
            let file = FileOptions {
                durability: options.durability,
                max_bytes: options.max_bytes,
                create,
                explain_bus_errors,
                ..FileOptions::default()
            };
            FileMedium::open(path, file).map(|m| m as Arc<dyn Medium>)
        }
        MediumKind::Dram => DramMedium::new(map).map(|m| m as Arc<dyn Medium>),
        MediumKind::Dax => {
            let persistent_caches = options.persistent_caches;
            let dax = DaxOptions { map, create, persistent_caches, explain_bus_errors };
            DaxMedium::open(path, dax).map(|m| m as Arc<dyn Medium>)
        }
    };
    opened.map_err(from_medium)
}

/// A number that identifies this boot of the machine. If the system does not
/// provide one it is unique, so that everything a stopped machine may have lost
/// counts as lost. If it could not be read this time, nothing counts as lost:
/// opening fails.
fn boot_id(options: &Options) -> Result<u64> {
    if options.simulated_time.is_some() {
        return Ok(identity(options));
    }
    let id = match std::fs::read_to_string(BOOT_ID) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            return Err(Error::Io { operation: format!("read {BOOT_ID}"), source: error });
        }
        read => read.unwrap_or_default(),
    };
    let digits = id.chars().filter_map(|digit| digit.to_digit(16)).take(16);
    Ok(match digits.fold(0, |n, digit| n << 4 | u64::from(digit)) {
        0 => identity(options),
        boot => boot,
    })
}

/// A number that no other database has. In simulated time it depends on the
/// time only.
pub(crate) fn identity(options: &Options) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    match &options.simulated_time {
        Some(time) => time.now().as_nanos() as u64,
        None => RandomState::new().hash_one(std::time::SystemTime::now()),
    }
}
