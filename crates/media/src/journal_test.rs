use super::*;
use crate::unshared::Unshared;
use crate::{DATA_FILE, FileMedium, FileOptions, Medium, MediumExt, ViewMedium};
use pantile_base::limits::HEAD_BYTES;
use pantile_testkit::Random;
use std::ops::ControlFlow;

const LEN: u64 = 4 * GROWTH_BYTES;

/// The files of a database, as they are on the device.
#[derive(Debug, Default, Clone)]
struct Files {
    data: Vec<u8>,
    journal: Vec<u8>,
}

impl Files {
    fn of(directory: &Path) -> Self {
        let journal = fs::read(directory.join(JOURNAL_FILE)).unwrap_or_default();
        Self { data: fs::read(directory.join(DATA_FILE)).expect("the data file"), journal }
    }

    fn put(&self) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("directory");
        fs::write(place.path().join(DATA_FILE), &self.data).expect("written");
        if !self.journal.is_empty() {
            fs::write(place.path().join(JOURNAL_FILE), &self.journal).expect("written");
        }
        place
    }
}

fn bytes_of(medium: &dyn Medium) -> Vec<u8> {
    let mut found = vec![0; LEN as usize];
    medium.get(0, &mut found).expect("read");
    found
}

/// Puts a part of `to` into `from`, by sectors, as a power cut in the middle of writing does.
fn mix_in(from: &mut Vec<u8>, to: &[u8], random: &mut Random) {
    from.resize(from.len().max(to.len()), 0);
    for (from, to) in from.chunks_mut(SECTOR_BYTES).zip(to.chunks(SECTOR_BYTES)) {
        if random.one_in(2) {
            from[..to.len()].copy_from_slice(to);
        }
    }
}

/// Opens with a journal, whatever the file system. Syncs of the data file only call this.
fn open(place: &Path, sync_data: impl Fn() + Send + Sync + 'static) -> Arc<FileMedium> {
    let call = move || {
        sync_data();
        Ok(())
    };
    FileMedium::open_with_sync(place, FileOptions::default(), Box::new(call), true).expect("open")
}

/// A database under work whose power can be cut.
struct Work {
    place: tempfile::TempDir,
    medium: Arc<FileMedium>,
    /// The files at the last sync of the data file, before the journal began anew.
    synced: Arc<Mutex<Option<Files>>>,
    /// The data file at the last sync of it.
    on_device: Vec<u8>,
    /// Writes since then.
    since: Vec<(u64, Vec<u8>)>,
    /// What the last fence has promised.
    fenced: Vec<u8>,
    /// Writes since then.
    unfenced: Vec<(u64, Vec<u8>)>,
    sequence: u64,
    checked: u64,
}

impl Work {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("directory");
        let (path, synced) = (place.path().to_owned(), Arc::<Mutex<Option<Files>>>::default());
        let note = Arc::clone(&synced);
        let medium = open(place.path(), move || *note.lock() = Some(Files::of(&path)));
        medium.grow(LEN).expect("grow");
        let mut work = Self {
            place,
            medium,
            synced,
            on_device: Vec::new(),
            since: Vec::new(),
            fenced: vec![0; LEN as usize],
            unfenced: Vec::new(),
            sequence: 0,
            checked: 0,
        };
        let (quiet, random) = (&mut Random::new(0, 0), [7; 64]);
        work.put(0, &random);
        work.record(quiet, 0);
        work
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) {
        self.medium.put(offset, bytes).expect("write");
        self.since.push((offset, bytes.to_vec()));
        self.unfenced.push((offset, bytes.to_vec()));
    }

    /// Writes a state record as the engine does. Of a hundred syncs, the power is cut in the middle of `cuts`.
    fn record(&mut self, random: &mut Random, cuts: u32) {
        self.sync(random, cuts, true);
        self.sequence += 1;
        let place = STATE_RECORDS[self.sequence as usize % 2];
        for at in [place, place + STATE_COPY_BYTES] {
            self.put(at, &self.sequence.to_le_bytes());
        }
        self.sync(random, cuts, true);
    }

    fn sync(&mut self, random: &mut Random, cuts: u32, all: bool) {
        let before = Files::of(self.place.path()).journal;
        let synced = if all { self.medium.sync_all() } else { self.medium.fence() };
        synced.expect("synced");
        match self.synced.lock().take() {
            Some(files) => {
                if random.percent(cuts) {
                    self.checked += check(&files, &self.fenced, &self.unfenced);
                }
                self.on_device = files.data;
                self.since.clear();
            }
            None if random.percent(cuts) => {
                let after = Files::of(self.place.path()).journal;
                let mut journal = before;
                mix_in(&mut journal, &after, random);
                let cut = Files { journal, ..self.cut(random) };
                self.checked += check(&cut, &self.fenced, &self.unfenced);
            }
            None => {}
        }
        self.fenced = bytes_of(&*self.medium);
        self.unfenced.clear();
    }

    /// The files after a power cut between two calls: a part of what was not synced is on the device.
    fn cut(&self, random: &mut Random) -> Files {
        let mut files = Files { data: self.on_device.clone(), ..Files::of(self.place.path()) };
        for (offset, bytes) in &self.since {
            let from = *offset as usize;
            let mut part = files.data.clone();
            part[from..from + bytes.len()].copy_from_slice(bytes);
            mix_in(&mut files.data, &part, random);
        }
        files
    }
}

/// Opens what a power cut has left. What was fenced must be there, but where it was written to again.
fn check(files: &Files, fenced: &[u8], unfenced: &[(u64, Vec<u8>)]) -> u64 {
    let mut first = None;
    for twice in [false, true] {
        // The power may fail while the journal is written back, too.
        let files = Files { data: first.clone().unwrap_or_else(|| files.data.clone()), ..files.clone() };
        let place = files.put();
        let viewed =
            bytes_of(&*ViewMedium::open(place.path(), &|_, _| ControlFlow::Continue(())).expect("view"));
        assert_eq!(Files::of(place.path()).data, files.data, "a view leaves the file as it is");
        let found = bytes_of(&*open(place.path(), || ()));
        assert!(viewed == found, "a view shows the same");
        assert!(!place.path().join(JOURNAL_FILE).exists());
        for (at, (found, fenced)) in found.iter().zip(fenced).enumerate() {
            let is_newer = |(offset, bytes): &(u64, Vec<u8>)| {
                (*offset as usize..).zip(bytes).any(|(there, byte)| there == at && byte == found)
            };
            assert!(found == fenced || unfenced.iter().any(is_newer), "byte {at}, twice: {twice}");
        }
        first = Some(fs::read(place.path().join(DATA_FILE)).expect("the data file"));
    }
    1
}

#[test]
fn what_was_fenced_is_there_after_a_power_cut() {
    let (mut journaled, mut checked) = (0, 0);
    for seed in 0..12 {
        let (mut work, random) = (Work::new(), &mut Random::new(seed, 0));
        let mut len = LEN;
        for _ in 0..300 {
            match random.below(100) {
                0..60 => {
                    // A few pages, so that bytes are written again.
                    let at = HEAD_BYTES + random.below(6) * PAGE_BYTES + random.below(PAGE_BYTES / 8) * 8;
                    let bytes = vec![random.word() as u8; 1 + random.index(300)];
                    work.put(at, &bytes);
                }
                60..90 => work.sync(random, 15, false),
                90..93 => work.record(random, 30),
                93..94 => {
                    len += GROWTH_BYTES;
                    work.medium.grow(len).expect("grow");
                }
                94..95 => work.put(2 * HEAD_BYTES, &vec![random.word() as u8; 2 * MOST_BYTES]),
                _ => {
                    let cut = work.cut(random);
                    work.checked += check(&cut, &work.fenced, &work.unfenced);
                }
            }
        }
        journaled += work.medium.stats().bytes_journaled;
        checked += work.checked;
    }
    assert!(journaled > 0 && checked > 100, "{journaled} bytes, {checked} cuts");
}

/// A database with something in its journal, and its files before that.
fn at_work() -> (Work, Files) {
    let mut work = Work::new();
    let (random, before) = (&mut Random::new(1, 1), Files::of(work.place.path()));
    for n in 0..2 * u64::from(WISHES) {
        work.put(HEAD_BYTES + 100 * n, &[n as u8 + 1; 100]);
        work.sync(random, 0, false);
    }
    assert!(work.medium.stats().bytes_journaled > 0);
    (work, before)
}

fn refusal(place: &Path) -> String {
    FileMedium::open(place, FileOptions::default()).map(drop).expect_err("refused").to_string()
}

#[test]
fn a_sync_of_few_bytes_writes_few_bytes() {
    let (mut work, _) = at_work();
    let (before, random) = (work.medium.stats(), &mut Random::new(2, 2));
    work.put(HEAD_BYTES, &[1; 100]);
    work.put(HEAD_BYTES + 5 * PAGE_BYTES, &[2; 100]);
    work.sync(random, 0, false);
    let after = work.medium.stats() - before;
    assert!((1..=PAGE_BYTES).contains(&after.bytes_journaled), "{after:?}");
    assert!(work.since.len() > 2, "the data file was not synced");
    // Where pages fill up, they are written once.
    work.put(HEAD_BYTES, &[3; 2 * PAGE_BYTES as usize]);
    work.sync(random, 0, false);
    assert_eq!((work.medium.stats() - before).bytes_journaled, after.bytes_journaled);
    assert!(work.since.is_empty());
}

#[test]
fn a_journal_without_records_goes_with_the_medium() {
    let (mut work, _) = at_work();
    let journal = work.place.path().join(JOURNAL_FILE);
    assert!(journal.exists());
    work.record(&mut Random::new(3, 3), 0);
    drop(work.medium);
    assert!(!journal.exists());
}

#[test]
fn a_journal_with_records_stays_until_the_next_opening() {
    let (work, _) = at_work();
    let (journal, fenced) = (work.place.path().join(JOURNAL_FILE), work.fenced);
    drop(work.medium);
    assert!(journal.exists());
    assert!(bytes_of(&*open(work.place.path(), || ())) == fenced);
    assert!(!journal.exists());
}

#[test]
fn a_journal_of_another_state_is_refused() {
    let (mut work, before) = at_work();
    let random = &mut Random::new(4, 4);
    work.record(random, 0);
    work.record(random, 0);
    work.put(HEAD_BYTES, b"later");
    work.sync(random, 0, false);
    let journal = Files::of(work.place.path()).journal;
    let mut other = Files { journal: journal.clone(), ..before.clone() };
    let place = other.put();
    let told = refusal(place.path());
    assert!(
        told.contains("another state of the data file") && told.contains("nothing was changed"),
        "{told}"
    );
    assert_eq!(Files::of(place.path()).data, before.data);
    let view = ViewMedium::open(place.path(), &|_, _| ControlFlow::Continue(())).expect("view");
    assert!(view.journal_problem().is_some_and(|told| told.contains("another state")));
    // Another database.
    other = Files { journal, ..Files::of(work.place.path()) };
    other.data[3] ^= 1;
    assert!(refusal(other.put().path()).contains("another state"));
}

/// The data file was used without its journal, and has come back to it.
#[test]
fn a_journal_beside_data_of_a_later_life_is_refused() {
    let (work, _) = at_work();
    let files = Files::of(work.place.path());
    let place = Files { journal: Vec::new(), ..files.clone() }.put();
    let medium = open(place.path(), || ());
    for sequence in [work.sequence + 1, work.sequence + 2] {
        let at = STATE_RECORDS[sequence as usize % 2];
        for at in [at, at + STATE_COPY_BYTES] {
            medium.put(at, &sequence.to_le_bytes()).expect("write");
        }
    }
    medium.sync_all().expect("sync");
    drop(medium);
    fs::write(place.path().join(JOURNAL_FILE), &files.journal).expect("written");
    assert!(refusal(place.path()).contains("another state of the data file"));
}

#[test]
fn a_file_in_the_place_of_the_journal_is_left_alone() {
    let mut work = Work::new();
    let (journal, random) = (work.place.path().join(JOURNAL_FILE), &mut Random::new(6, 6));
    fs::write(&journal, b"another's").expect("written");
    for n in 0..2 * u64::from(WISHES) {
        work.put(HEAD_BYTES + 100 * n, b"more");
        work.sync(random, 0, false);
    }
    assert_eq!(work.medium.stats().bytes_journaled, 0);
    drop(work.medium);
    assert_eq!(fs::read(journal).expect("it is there"), b"another's");
}

#[test]
fn data_files_of_one_directory_have_journals_of_their_own() {
    let (directory, data) = (tempfile::tempdir().expect("directory"), at_work().0.fenced);
    let links = ["a", "b"].map(|name| {
        let (file, place) = (directory.path().join(name), tempfile::tempdir().expect("directory"));
        fs::write(&file, &data).expect("written");
        std::os::unix::fs::symlink(file, place.path().join(DATA_FILE)).expect("a link");
        place
    });
    let media = links.each_ref().map(|place| open(place.path(), || ()));
    for n in 0..2 * u64::from(WISHES) {
        for medium in &media {
            medium.put(HEAD_BYTES + 100 * n, b"more").expect("write");
            medium.fence().expect("fence");
        }
    }
    assert!(media.iter().all(|medium| medium.stats().bytes_journaled > 0));
    drop(media);
    let journals = ["a.pantile-journal", "b.pantile-journal"].map(|name| directory.path().join(name));
    for name in &journals {
        assert!(name.exists(), "{name:?}");
    }
    // The next opening finds its own.
    links.iter().for_each(|place| drop(open(place.path(), || ())));
    assert!(journals.iter().all(|name| !name.exists()));
}

#[test]
fn a_damaged_journal_is_refused() {
    let (work, _) = at_work();
    let mut files = Files::of(work.place.path());
    files.journal[17] ^= 4;
    assert!(refusal(files.put().path()).contains("its beginning is damaged"));
    // Damage that is not its end.
    let mut files = Files::of(work.place.path());
    let block = u64::from_le_bytes(*files.journal[56..].first_chunk().expect("the header")) as usize;
    files.journal[block + 70] ^= 4;
    assert!(refusal(files.put().path()).contains("a part of it is damaged"));
    // One that was being made when the power failed.
    let mut files = Files::of(work.place.path());
    files.journal.fill(0);
    let place = files.put();
    drop(open(place.path(), || ()));
    assert!(!place.path().join(JOURNAL_FILE).exists());
}

/// A power failure can bring back a file that was removed.
#[test]
fn a_journal_that_comes_back_has_nothing() {
    let (work, _) = at_work();
    let files = Files::of(work.place.path());
    let place = files.put();
    let kept = place.path().join("kept");
    fs::hard_link(place.path().join(JOURNAL_FILE), &kept).expect("link");
    let medium = open(place.path(), || ());
    medium.put(HEAD_BYTES, b"newer").expect("write");
    medium.sync_all().expect("sync");
    drop(medium);
    fs::rename(&kept, place.path().join(JOURNAL_FILE)).expect("back");
    let mut found = [0; 5];
    open(place.path(), || ()).get(HEAD_BYTES, &mut found).expect("read");
    assert_eq!(&found, b"newer");
}

#[test]
fn a_copy_gets_what_the_journal_has() {
    let (work, _) = at_work();
    let files = Files::of(work.place.path());
    let place = Files { data: work.on_device.clone(), ..files }.put();
    let view = ViewMedium::open(place.path(), &|_, _| ControlFlow::Continue(())).expect("view");
    let copy = place.path().join("copy");
    fs::copy(place.path().join(DATA_FILE), &copy).expect("copy");
    view.add_journal_to(&File::options().write(true).open(&copy).expect("open")).expect("added");
    assert!(fs::read(copy).expect("read")[..LEN as usize] == work.fenced[..]);
}

#[test]
fn a_journal_that_is_removed_is_no_longer_used() {
    let (mut work, _) = at_work();
    fs::remove_file(work.place.path().join(JOURNAL_FILE)).expect("removed");
    let (before, random) = (work.medium.stats().bytes_journaled, &mut Random::new(5, 5));
    for n in 0..2 * u64::from(WISHES) {
        work.put(HEAD_BYTES + 100 * n, b"more");
        work.sync(random, 0, false);
        assert!(work.since.is_empty(), "the data file was synced");
    }
    assert_eq!(work.medium.stats().bytes_journaled, before);
    check(&work.cut(random), &work.fenced, &work.unfenced);
}

#[test]
fn a_file_of_two_names_has_no_journal() {
    let place = tempfile::tempdir().expect("directory");
    drop(open(place.path(), || ()));
    fs::hard_link(place.path().join(DATA_FILE), place.path().join("other")).expect("link");
    let medium = open(place.path(), || ());
    medium.grow(LEN).expect("grow");
    medium.put(0, &[7; 64]).expect("write");
    medium.sync_all().expect("sync");
    for n in 0..2 * u64::from(WISHES) {
        medium.put(HEAD_BYTES + n, &[1]).expect("write");
        medium.fence().expect("fence");
    }
    assert_eq!(medium.stats().bytes_journaled, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn each_file_says_how_long_its_bytes_stay() {
    let (work, _) = at_work();
    let open = |name| File::open(work.place.path().join(name)).expect("open");
    if os::has_lifetime(&open(DATA_FILE), Lifetime::Long).is_none() {
        return eprintln!("skipped: this system takes no lifetimes of files");
    }
    let expect = |name, lifetime| {
        assert_eq!(os::has_lifetime(&open(name), lifetime), Some(true), "{name}: {lifetime:?}");
    };
    expect(DATA_FILE, Lifetime::Long);
    expect(JOURNAL_FILE, Lifetime::Short);
    let beside = work.medium.facts().beside.clone().expect("a place for an image");
    let written = beside.write(&mut |out| {
        out.write_all(b"an image")?;
        expect("pantile.image.new", Lifetime::Medium);
        Ok(())
    });
    written.expect("written");
}
