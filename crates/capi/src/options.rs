//! How a database opens.

use std::ffi::c_int;
use std::time::Duration;

use pantile::media::MediumFactory;
use pantile::{Collector, ConflictPolicy, Durability, GcOptions, MediumKind, OnPinned, Options};

use crate::error::{Failure, PANTILE_OK, call};
use crate::pointer::{free, lent_mut};

/// A file in the database's directory, the default.
pub const PANTILE_MEDIUM_FILE: c_int = 0;
/// Memory, which is freed when the database is closed.
pub const PANTILE_MEDIUM_DRAM: c_int = 1;
/// Persistent memory: a file on a file system that is mounted with `dax=always`.
pub const PANTILE_MEDIUM_DAX: c_int = 2;

/// A commit returns when it is durable; commits that come together share a sync. The default.
pub const PANTILE_DURABILITY_SYNC: c_int = 0;
/// The same; a commit may wait up to 500 microseconds for others to share its sync.
pub const PANTILE_DURABILITY_GROUP: c_int = 1;
/// A commit returns at once. A power failure may take the last ones, and leaves an earlier consistent state.
pub const PANTILE_DURABILITY_NONE: c_int = 2;

/// A transaction that holds back too much is warned of, once.
pub const PANTILE_WARN: c_int = 0;
/// It is ended as well.
pub const PANTILE_END: c_int = 1;

/// Checks what is to be done about a transaction that holds back too much.
pub(crate) fn on_pinned(then: c_int) -> Result<OnPinned, Failure> {
    match then {
        PANTILE_WARN => Ok(OnPinned::Warn),
        PANTILE_END => Ok(OnPinned::End),
        other => Err(Failure::misuse(format!("a holder is warned of or ended, and {other} is neither"))),
    }
}

/// How a database opens. What is not set has its default.
pub struct pantile_options {
    options: Options,
    gc: GcOptions,
    max_pinned_age: Option<(Duration, OnPinned)>,
    max_pinned_bytes: Option<(u64, OnPinned)>,
}

impl pantile_options {
    /// What a database is opened with.
    pub(crate) fn for_opening(&self) -> Options {
        let options = self.options.clone();
        let options = match self.max_pinned_age {
            Some((limit, then)) => options.max_pinned_age(limit, then),
            None => options,
        };
        match self.max_pinned_bytes {
            Some((limit, then)) => options.max_pinned_bytes(limit, then),
            None => options,
        }
    }

    /// Sets the collector. For programs that bring one in Rust.
    pub fn set_collector(&mut self, collector: Collector) {
        self.options = self.options.clone().collector(collector);
    }

    /// Changes how the collector goes about its work. For programs that repeat published experiments.
    pub fn change_gc(&mut self, change: impl FnOnce(&mut GcOptions)) {
        change(&mut self.gc);
        self.options = self.options.clone().gc(self.gc);
    }

    /// Sets the medium. For programs that bring one in Rust.
    pub fn set_medium(&mut self, factory: impl MediumFactory + 'static) {
        self.options = self.options.clone().custom_medium(factory);
    }
}

fn change(
    options: *mut pantile_options,
    change: impl FnOnce(&mut pantile_options) -> Result<(), Failure>,
) -> c_int {
    call(|| change(lent_mut(options, "options")?).map(|()| PANTILE_OK))
}

fn set(options: *mut pantile_options, with: impl FnOnce(Options) -> Options) -> c_int {
    change(options, |options| {
        options.options = with(options.options.clone());
        Ok(())
    })
}

/// New options, all with their defaults. Freed by `pantile_options_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_new() -> *mut pantile_options {
    Box::into_raw(Box::new(pantile_options {
        options: Options::new(),
        gc: GcOptions::default(),
        max_pinned_age: None,
        max_pinned_bytes: None,
    }))
}

/// Frees options. Databases that were opened with them go on.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_free(options: *mut pantile_options) {
    free(options);
}

/// Sets where data is kept: `PANTILE_MEDIUM_FILE`, `PANTILE_MEDIUM_DRAM` or `PANTILE_MEDIUM_DAX`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_medium(options: *mut pantile_options, medium: c_int) -> c_int {
    let medium = match medium {
        PANTILE_MEDIUM_FILE => MediumKind::File,
        PANTILE_MEDIUM_DRAM => MediumKind::Dram,
        PANTILE_MEDIUM_DAX => MediumKind::Dax,
        other => return change(options, |_| Err(Failure::misuse(format!("there is no medium {other}")))),
    };
    set(options, |options| options.medium(medium))
}

/// Sets when commits return: `PANTILE_DURABILITY_SYNC`, `PANTILE_DURABILITY_GROUP` or `PANTILE_DURABILITY_NONE`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_durability(options: *mut pantile_options, durability: c_int) -> c_int {
    let durability = match durability {
        PANTILE_DURABILITY_SYNC => Durability::Sync,
        PANTILE_DURABILITY_GROUP => Durability::Group,
        PANTILE_DURABILITY_NONE => Durability::None,
        other => return change(options, |_| Err(Failure::misuse(format!("there is no durability {other}")))),
    };
    set(options, |options| options.durability(durability))
}

/// Sets whether a database is made where there is none. It is by default.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_create(options: *mut pantile_options, create: bool) -> c_int {
    set(options, |options| options.create(create))
}

/// Sets the most bytes that the medium may take. 1 TiB by default.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_max_bytes(options: *mut pantile_options, bytes: u64) -> c_int {
    set(options, |options| options.max_bytes(bytes))
}

/// Sets the most bytes of memory that the database may take, beside the system's copies of its file. By default it is
/// three quarters of what the process may have.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_memory_limit(options: *mut pantile_options, bytes: u64) -> c_int {
    set(options, |options| options.memory_limit(bytes))
}

/// Keeps rows that are read again and again in this many bytes of memory, from 1 MB on, where reads may wait for the
/// medium. By default there is no such cache.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_row_cache(options: *mut pantile_options, bytes: u64) -> c_int {
    set(options, |options| options.row_cache(bytes))
}

/// Sets how many bytes of the medium may be taken for each live byte, besides 16 MB: 2 by default. Less space costs more
/// writes.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_space_target(options: *mut pantile_options, ratio: f64) -> c_int {
    change(options, |options| {
        options.gc.space_target = ratio;
        options.options = options.options.clone().gc(options.gc);
        Ok(())
    })
}

/// Sets for how many milliseconds calls wait for rows that others have locked: 1,000 by default. With 0 they fail at
/// once.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_lock_wait(options: *mut pantile_options, milliseconds: u64) -> c_int {
    set(options, |options| options.conflict(policy(milliseconds)))
}

/// Limits for how many milliseconds a transaction may hold back garbage, and says what is done about one that is older:
/// `PANTILE_WARN` or `PANTILE_END`. 0 sets none, and there is none by default. One that holds back nothing may be of any age.
/// `pantile_set_max_pinned_age` changes the limit.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_max_pinned_age(
    options: *mut pantile_options,
    milliseconds: u64,
    then: c_int,
) -> c_int {
    change(options, |options| {
        let then = on_pinned(then)?;
        options.max_pinned_age = (milliseconds > 0).then(|| (Duration::from_millis(milliseconds), then));
        Ok(())
    })
}

/// The same for the bytes that a transaction may hold back.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_options_max_pinned_bytes(
    options: *mut pantile_options,
    bytes: u64,
    then: c_int,
) -> c_int {
    change(options, |options| {
        let then = on_pinned(then)?;
        options.max_pinned_bytes = (bytes > 0).then_some((bytes, then));
        Ok(())
    })
}

pub(crate) fn policy(milliseconds: u64) -> ConflictPolicy {
    match milliseconds {
        0 => ConflictPolicy::Abort,
        some => ConflictPolicy::Wait(Duration::from_millis(some)),
    }
}
