//! Damaged files. Whatever bit flips, and whatever sector is lost or written to
//! the wrong place, either `check` and recovery report it or it makes no
//! difference. No wrong row is ever read, nothing panics, nothing hangs (T16).
//!
//! `PANTILE_FLIPS`, `PANTILE_DAMAGES` and `PANTILE_FORGERIES` try more of each,
//! `PANTILE_FLIP_SEED` others, and `PANTILE_DAMAGE_THREADS` sets the number of
//! threads. `docs/testing.md`, "Damage", says what is allowed.

mod forge;
mod hurt;
mod layout;
mod look;
mod salvage;
mod subject;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hurt::{Hurt, any_bit, any_forgery, any_other};
use layout::{Part, What};
use pantile::tools::CheckReport;
use pantile::{CheckOptions, Error, Result, check, inspect};
use pantile_testkit::{Random, ScratchDir, from_env, mix};
use subject::Subject;

/// The longest that reading one damaged file may take.
const LIMIT: Duration = Duration::from_secs(600);

/// The outcome of a damage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    /// All rows are read as they were, and `check` reports nothing.
    Unnoticed,
    /// All rows are read as they were, and `check` reports something.
    Harmless,
    /// Opening refuses, and `check` reports why.
    Refused,
    /// Transactions above the durable watermark are missing as a whole.
    Lost,
    /// Descriptors, or all bytes, are gone without a trace: "Known limits" in
    /// `docs/design.md`.
    Limit,
}

/// A directory with the subject's files, to be damaged again and again.
struct Bench<'s> {
    subject: &'s Subject,
    dir: ScratchDir,
    data: File,
}

impl<'s> Bench<'s> {
    fn new(subject: &'s Subject) -> Self {
        let dir = ScratchDir::new();
        let path = dir.path().join("pantile.data");
        fs::write(&path, &subject.data).expect("write");
        let data = OpenOptions::new().write(true).open(&path).expect("open");
        Self { subject, dir, data }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn hurt(&self, hurt: &Hurt) {
        self.data.set_len(hurt.len as u64).expect("set length");
        for (at, bytes) in &hurt.edits {
            let bytes = &bytes[..bytes.len().min(hurt.len.saturating_sub(*at))];
            self.data.write_all_at(bytes, *at as u64).expect("write");
        }
    }

    fn heal(&self, hurt: &Hurt) {
        let data = &self.subject.data;
        self.data.set_len(data.len() as u64).expect("set length");
        for (at, bytes) in &hurt.edits {
            let end = (at + bytes.len()).min(data.len());
            self.data.write_all_at(&data[*at..end], *at as u64).expect("write");
        }
        if hurt.len < data.len() {
            self.data.write_all_at(&data[hurt.len..], hurt.len as u64).expect("write");
        }
    }

    fn try_hurt(&self, hurt: &Hurt) -> Outcome {
        self.hurt(hurt);
        let checked = check(self.path(), &CheckOptions::new().threads(1));
        inspect(self.path(), &CheckOptions::new().threads(1)).expect("anything can be inspected");
        let read = self.read();
        self.heal(hurt);
        self.judge(hurt, &checked, read)
    }

    /// Nothing that a forger has written causes a panic. Its rows may well be
    /// read.
    fn try_forgery(&self, hurt: &Hurt) -> Outcome {
        self.hurt(hurt);
        let outcome = if look::at_file(self.path()) { Outcome::Harmless } else { Outcome::Refused };
        self.heal(hurt);
        outcome
    }

    /// The rows that a user would get from the database as it is now.
    fn read(&self) -> Result<BTreeMap<(usize, u64), (u64, String)>> {
        let db = look::open(self.path())?;
        subject::read(&db)
    }

    fn judge(
        &self,
        hurt: &Hurt,
        checked: &Result<CheckReport>,
        read: Result<BTreeMap<(usize, u64), (u64, String)>>,
    ) -> Outcome {
        let is_sound = checked.as_ref().is_ok_and(CheckReport::is_sound);
        let is_quiet = checked.as_ref().is_ok_and(|report| report.findings.is_empty());
        if let Err(error) = checked {
            match error {
                Error::NotADatabase { .. } | Error::FormatVersion { .. } => {}
                // Of a file that has lost all of its bytes.
                Error::NoDatabase(_) => assert!(self.is_beyond_limits(hurt), "{error}"),
                error => panic!("{error}"),
            }
        }
        match read.map(|rows| self.subject.judge(&rows)) {
            Ok(Ok(0)) if is_quiet => Outcome::Unnoticed,
            Ok(Ok(0)) => Outcome::Harmless,
            Ok(Ok(_)) => Outcome::Lost,
            Ok(Err(_)) if self.is_beyond_limits(hurt) => Outcome::Limit,
            Ok(Err(wrong)) => panic!("wrong rows: {wrong}; check says {checked:#?}"),
            Err(Error::Damaged { .. } | Error::NotADatabase { .. } | Error::FormatVersion { .. }) => {
                assert!(!is_sound, "it cannot be opened, and check finds nothing");
                Outcome::Refused
            }
            // The catalog has lost its blocks, or the file all of its bytes.
            Err(Error::UnknownTable(_)) if self.is_beyond_limits(hurt) => Outcome::Limit,
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether whole words of a line that must be there are gone and of its copy as
    /// well, and no record says so because the database was not closed; or contents above the last
    /// record, which then look like torn ones while later transactions that
    /// relied on them stay; or whether the file is empty.
    fn is_beyond_limits(&self, hurt: &Hurt) -> bool {
        let is_bit = matches!(&hurt.edits[..], [(_, bytes)] if bytes.len() == 1);
        let is_touched = |part: &Part| hurt.touches(self.subject, &part.bytes);
        let mut pairs = self.subject.parts.windows(2).filter(|pair| pair[1].what == What::Copy);
        let touches_lines = pairs.any(|pair| pair.iter().all(is_touched));
        let touches_recent = || {
            let recent = self.subject.parts.iter().filter(|part| self.subject.is_recent(part));
            recent.into_iter().any(|content| hurt.touches(self.subject, &content.bytes))
        };
        hurt.len == 0 || !self.subject.closed && !is_bit && (touches_lines || touches_recent())
    }

    /// The allowed outcome of one flipped bit.
    fn expect_of_bit(&self, hurt: &Hurt, outcome: Outcome) {
        let touched = self.subject.parts.iter().find(|part| hurt.touches(self.subject, &part.bytes));
        let Some(part) = touched else {
            let is_harmless = matches!(outcome, Outcome::Unnoticed | Outcome::Harmless);
            assert!(is_harmless, "a bit without a meaning: {outcome:?}");
            return;
        };
        match part.what {
            What::Record => assert_eq!(outcome, Outcome::Harmless, "a copy of a state record"),
            What::Copy => assert_eq!(outcome, Outcome::Unnoticed, "a copy of a line"),
            What::Content if !self.subject.closed => assert_ne!(outcome, Outcome::Limit),
            what => assert_eq!(outcome, Outcome::Refused, "{what:?}"),
        }
    }
}

/// What a thread is doing, and since when.
type Watch = Mutex<Option<(String, Instant)>>;

/// Tries many kinds of damage on several threads, each kind equally often.
fn campaign(name: &str, count: u64, one: impl Fn(&Bench<'_>, &mut Random) -> Outcome + Sync) {
    let seed = from_env("PANTILE_FLIP_SEED", 5);
    println!("PANTILE_FLIP_SEED={seed}, {count} {name}");
    let subjects = [Subject::closed(), Subject::killed(), Subject::frozen(), Subject::holes()];
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let threads = from_env("PANTILE_DAMAGE_THREADS", cores).max(1);
    let (next, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let watches: Vec<Watch> = (0..threads).map(|_| Mutex::default()).collect();
    let outcomes: Mutex<BTreeMap<(&str, Outcome), u64>> = Mutex::default();
    let work = |watch: &Watch| {
        let benches: Vec<_> = subjects.iter().map(Bench::new).collect();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return;
            }
            let bench = &benches[n as usize % benches.len()];
            let what = format!("damage {n} of seed {seed} to {:?}", bench.subject.name);
            *watch.lock().expect("unpoisoned") = Some((what.clone(), Instant::now()));
            let note = Note(what);
            let outcome = one(bench, &mut Random::new(mix(seed) ^ mix(n), 0));
            drop(note);
            *outcomes.lock().expect("unpoisoned").entry((bench.subject.name, outcome)).or_default() += 1;
        }
    };
    std::thread::scope(|scope| {
        let working: Vec<_> = watches.iter().map(|watch| scope.spawn(move || work(watch))).collect();
        scope.spawn(|| watch_over(&watches, &done));
        let failed = working.into_iter().map(|thread| thread.join()).filter(|joined| joined.is_err()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(failed, 0, "threads failed");
    });
    let outcomes = outcomes.into_inner().expect("unpoisoned");
    println!("{outcomes:#?}");
    assert_eq!(outcomes.values().sum::<u64>(), count);
}

/// Nothing in a file may make a reader hang.
fn watch_over(watches: &[Watch], done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        for watch in watches {
            let Ok(Some((what, since))) = watch.lock().map(|at| at.clone()) else { continue };
            if since.elapsed() > LIMIT {
                eprintln!("{what} has taken {LIMIT:?} and goes on");
                std::process::abort();
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Names the damage that a panic belongs to.
struct Note(String);

impl Drop for Note {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

#[test]
fn no_flipped_bit_leads_to_a_wrong_row() {
    campaign("flipped bits", from_env("PANTILE_FLIPS", 200), |bench, random| {
        let hurt = any_bit(bench.subject, random);
        let _note = Note(hurt.name.clone());
        let outcome = bench.try_hurt(&hurt);
        bench.expect_of_bit(&hurt, outcome);
        outcome
    });
}

#[test]
fn no_lost_or_misdirected_write_leads_to_a_wrong_row() {
    campaign("other damages", from_env("PANTILE_DAMAGES", 120), |bench, random| {
        let hurt = any_other(bench.subject, random);
        let _note = Note(hurt.name.clone());
        bench.try_hurt(&hurt)
    });
}

#[test]
fn forged_bytes_are_refused_or_read_and_nothing_panics() {
    campaign("forgeries", from_env("PANTILE_FORGERIES", 100), |bench, random| {
        let hurt = any_forgery(bench.subject, random);
        let _note = Note(hurt.name.clone());
        bench.try_forgery(&hurt)
    });
}

/// When the only copy of an old row rots, it must be missed, however recently a
/// collector has made it: the original may be gone.
#[test]
fn copies_made_by_a_collector_are_missed() {
    let first = from_env("PANTILE_FLIP_SEED", 5);
    let mut tried = 0;
    for seed in first..first + from_env("PANTILE_MOVES", 6) {
        let subject = Subject::moving(seed);
        let bench = Bench::new(&subject);
        let is_copy = |at: usize| subject.data[at + 19] & 4 != 0;
        for part in subject.parts.iter().filter(|p| p.what == What::Content && is_copy(p.bytes.start)) {
            let _note = Note(format!("the copy at {} of seed {seed}", part.bytes.start));
            bench.try_hurt(&Hurt::bit(&subject, part.bytes.start + 24, 3));
            tried += 1;
        }
    }
    assert!(tried > 0, "nothing was moved");
}

/// Inputs that the fuzzer found worth keeping.
#[test]
fn the_corpus_of_files_makes_nothing_panic() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/open_file");
    let mut files: Vec<_> =
        fs::read_dir(corpus).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let mut forge = forge::Forge::new();
    assert!(forge.run(&[]), "the stored database can be read");
    let mut readable = 0;
    for file in &files {
        let _note = Note(file.display().to_string());
        readable += usize::from(forge.run(&fs::read(file).expect("read")));
    }
    assert!(readable > 0 && readable < files.len(), "{readable} of {} can be read", files.len());
}

/// Checks that the subjects have the intended properties.
#[test]
fn subjects_are_sound_and_have_everything() {
    let has = |subject: &Subject, what: What| subject.parts.iter().any(|part| part.what == what);
    for (subject, closed) in [
        (Subject::closed(), true),
        (Subject::killed(), false),
        (Subject::frozen(), false),
        (Subject::holes(), true),
    ] {
        let bench = Bench::new(&subject);
        let report = check(bench.path(), &CheckOptions::new()).expect("check");
        assert!(report.is_sound() && report.was_closed == closed, "{}: {report:#?}", subject.name);
        assert_eq!(bench.read().expect("read"), subject.rows, "{}", subject.name);
        let contents = subject.parts.iter().filter(|part| part.what == What::Content).count() as u64;
        assert!(contents >= report.contents, "{}: {contents} {report:#?}", subject.name);
        assert!(subject.name != "frozen" || has(&subject, What::FrozenFlag));
        assert!(!["closed", "killed", "holes"].contains(&subject.name) || report.values_out_of_line > 0);
    }
}
