//! Incremental backups: what has changed since another backup, and the way to
//! that one.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_media::ViewMedium;
use pantile_media::files::sync_path;
use pantile_store::{Found, Lineage, Scan, ScanSummary, Store, StoreError, StoreOptions};

use crate::api::incomplete::{self, INCREMENT};
use crate::api::opening::identity;
use crate::engine::failure::{from_medium, from_store};
use crate::tools::backup::held::{Held, hash};
use crate::tools::backup::target::io_error;
use crate::types::error::{Error, Result};
use crate::types::options::Options;

/// The file that names the backup before.
const SINCE: &str = "since";

/// The first line of that file.
const HEAD: &str = "pantile increment ";
const VERSION: u32 = 2;

/// A backup, and before it those that it continues. The first one is whole.
pub(super) struct Chain(Vec<Link>);

/// One backup of a chain.
struct Link {
    /// The directory that its data file is in.
    place: PathBuf,
    /// If it is incremental.
    increment: Option<Increment>,
}

/// What an incremental backup says of itself.
pub(super) struct Increment {
    /// The way to the backup before from the directory of this one.
    since: PathBuf,
    /// The fingerprint of all that it continues.
    continues: u64,
    /// The highest timestamp in that. A deletion that is written there later is
    /// above it, and in no fingerprint.
    until: Timestamp,
    /// Its moment.
    at: Timestamp,
    /// The seal of these numbers and of what is in its data file.
    seal: u64,
}

impl Chain {
    /// The chain that ends with the backup in a directory.
    pub fn of(directory: &Path) -> Result<Self> {
        let mut links = Vec::new();
        let mut next = Some(directory.to_owned());
        while let Some(directory) = next.take() {
            incomplete::refuse_part(&directory)?;
            let place = directory.join(INCREMENT);
            if !place.is_dir() {
                incomplete::refuse(&directory)?;
                links.push(Link { place: directory, increment: None });
                break;
            }
            let increment = Increment::read(&place)?;
            let before = directory.join(&increment.since);
            if !before.exists() || links.iter().any(|link: &Link| link.place == place) {
                return Err(Error::MissingBackup { path: directory, since: before });
            }
            // Links that lead back to where they came from are the same directory in the end.
            let before = fs::canonicalize(&before).map_err(io_error("look at", &before))?;
            links.push(Link { place, increment: Some(increment) });
            next = Some(before);
        }
        links.reverse();
        Ok(Self(links))
    }

    /// The directory of the data file of the first one, which is whole.
    pub fn first(&self) -> &Path {
        &self.0[0].place
    }

    /// The moment of the last one, if it is incremental.
    pub fn is_at(&self) -> Option<Timestamp> {
        self.0.last().and_then(|link| link.increment.as_ref()).map(|increment| increment.at)
    }

    /// Notes what all of them hold. `accept` is asked first where they come from.
    pub fn read(&self, held: &mut Held, accept: &dyn Fn(Lineage) -> Result<()>) -> Result<()> {
        read(self.first(), held, accept, |_, _| Ok(()))?;
        self.read_increments(held, |_, _| Ok(()))
    }

    /// Notes what those after the first one hold, the oldest first, and calls
    /// `each` with their contents. `held` is what the first one holds.
    pub fn read_increments(
        &self,
        held: &mut Held,
        mut each: impl FnMut(TableId, &[Found<'_>]) -> Result<()> + Send,
    ) -> Result<()> {
        for Link { place, increment } in &self.0 {
            let Some(increment) = increment else { continue };
            if increment.continues != held.fingerprint() || increment.until < held.highest {
                return Err(Error::Damaged {
                    place: format!("the backup before {}", place.display()),
                    detail: "it is not the one that this incremental backup continues, or was written to"
                        .into(),
                });
            }
            let mut own = Held::default();
            // What it continues shows where it comes from.
            read(place, &mut own, &|_| Ok(()), &mut each)?;
            if increment.seal != increment.seal_of(&own) {
                return Err(Error::Damaged {
                    place: format!("the incremental backup in {}", place.display()),
                    detail: "it does not hold what it held when it was made".into(),
                });
            }
            held.join(own);
        }
        Ok(())
    }
}

impl Increment {
    /// One in the directory `into`, since the backup in the directory `since`, which
    /// holds this.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the way there cannot be written as text.
    pub fn new(into: &Path, since: &Path, held: &Held) -> Result<Self> {
        let way = way(into, since).map_err(io_error("look at", since))?;
        if unescaped(&escaped(&way)).as_ref() != Some(&way) {
            let reason = format!("the way to the backup in {} is not Unicode", since.display());
            return Err(Error::InvalidOption(reason));
        }
        let (continues, until) = (held.fingerprint(), held.highest);
        Ok(Self { since: way, continues, until, at: Timestamp::ZERO, seal: 0 })
    }

    /// Makes what is in the directory `part` this increment, of the moment `at`. What
    /// has been written there is read once more.
    pub fn write(mut self, part: &Path, at: Timestamp) -> Result<()> {
        let mut own = Held::default();
        read(part, &mut own, &|_| Ok(()), |_, _| Ok(()))?;
        self.at = at;
        self.seal = self.seal_of(&own);
        let Self { since, continues, until, at, seal } = self;
        let (since, until, at) = (escaped(&since), until.get(), at.get());
        let text = format!(
            "{HEAD}{VERSION}\nsince {since}\ncontinues {continues:016x}\nuntil {until:016x}\nat {at:016x}\n\
             seal {seal:016x}\n"
        );
        let file = part.join(SINCE);
        fs::write(&file, text).map_err(io_error("write", &file))?;
        sync_path(&file).map_err(io_error("sync", &file))
    }

    fn read(place: &Path) -> Result<Self> {
        let file = place.join(SINCE);
        let text = fs::read_to_string(&file).map_err(io_error("read", &file))?;
        let strange = || Error::Damaged {
            place: file.display().to_string(),
            detail: "it does not say which backup this one continues".into(),
        };
        let found = text.lines().next().and_then(|line| line.strip_prefix(HEAD)?.parse().ok());
        match found.ok_or_else(strange)? {
            VERSION => Self::parse(&text).ok_or_else(strange),
            found => Err(Error::FormatVersion { found, supported: VERSION }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let since = unescaped(value("since")?)?;
        let mut number = |name| u64::from_str_radix(value(name)?, 16).ok();
        Some(Self {
            since,
            continues: number("continues")?,
            until: Timestamp::from_raw(number("until")?),
            at: Timestamp::from_raw(number("at")?),
            seal: number("seal")?,
        })
    }

    fn seal_of(&self, own: &Held) -> u64 {
        hash([own.whole_fingerprint(), self.continues, self.until.get(), self.at.get()])
    }
}

/// The way from one directory to another. So both can be moved together.
fn way(from: &Path, to: &Path) -> io::Result<PathBuf> {
    let (from, to) = (fs::canonicalize(from)?, fs::canonicalize(to)?);
    let common = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    if !from.components().take(common).any(|part| matches!(part, Component::RootDir)) {
        // Different drives.
        return Ok(to);
    }
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    Ok(up.chain(to.components().skip(common)).collect())
}

/// A path as one line: what is not Unicode, control characters and `%` are
/// written as `%` and two digits for each byte.
fn escaped(path: &Path) -> String {
    let escape = |bytes: &[u8]| bytes.iter().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for char in chunk.valid().chars() {
            match char.is_control() || char == '%' {
                true => text += &escape(char.encode_utf8(&mut [0; 4]).as_bytes()),
                false => text.push(char),
            }
        }
        text += &escape(chunk.invalid());
    }
    text
}

fn unescaped(text: &str) -> Option<PathBuf> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    path_of(bytes)
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Notes the committed contents of the closed store in a directory, and calls
/// `each` with them. The store is not changed.
fn read(
    place: &Path,
    held: &mut Held,
    accept: &dyn Fn(Lineage) -> Result<()>,
    each: impl FnMut(TableId, &[Found<'_>]) -> Result<()> + Send,
) -> Result<()> {
    let view = ViewMedium::open(place, &|_, _| ControlFlow::Continue(())).map_err(from_medium)?;
    if let Some(offset) = view.unreadable().first() {
        let place = format!("byte {offset} of the backup in {}", place.display());
        return Err(Error::Damaged { place, detail: "it cannot be read".into() });
    }
    if let Some(problem) = view.journal_problem() {
        let place = format!("the backup in {}", place.display());
        return Err(Error::Damaged { place, detail: problem.into() });
    }
    let damaged = |error| match from_store(error, place) {
        Error::Damaged { place: at, detail } => {
            Error::Damaged { place: format!("{at} of the backup in {}", place.display()), detail }
        }
        other => other,
    };
    let options = StoreOptions { must_exist: true, ..StoreOptions::default() };
    let store = Store::open(view, options, new_identity()).map_err(damaged)?;
    accept(store.lineage())?;
    scan(&store, held, each).map_err(damaged)?.0
}

/// A number that no other database has.
pub(super) fn new_identity() -> u64 {
    identity(&Options::new())
}

/// Recovers a store, notes its committed contents and calls `each` with them,
/// until that fails.
pub(super) fn scan(
    store: &Store,
    held: &mut Held,
    each: impl FnMut(TableId, &[Found<'_>]) -> Result<()> + Send,
) -> Result<(Result<()>, ScanSummary), StoreError> {
    let state = Mutex::new((held, each, Ok(())));
    let found = |table, found: &[Found<'_>]| {
        let (held, each, outcome) = &mut *state.lock();
        if outcome.is_ok() {
            held.add(table, found);
            *outcome = each(table, found);
        }
    };
    let summary = store.recover(&Scan { threads: 1, found: &found, progress: &|_| {} })?;
    Ok((state.into_inner().2, summary))
}
