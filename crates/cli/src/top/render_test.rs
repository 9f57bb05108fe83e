use super::*;

const VIEW: View = View { sort: Sort::Held, width: 200, height: None };

/// A page that a database has written.
fn page() -> (pantile::Database, Page, tempfile::TempDir) {
    let place = tempfile::tempdir().expect("place");
    let db = pantile::Database::open(place.path()).expect("open");
    let report =
        db.begin_with(pantile::TransactionOptions::new().safe_snapshot().name("re\x1bport")).expect("begin");
    let page = loop {
        match pantile::tools::watch(place.path()) {
            Ok(page) if !page.transactions.is_empty() => break page,
            _ => std::thread::yield_now(),
        }
    };
    drop(report);
    (db, page, place)
}

#[test]
fn a_page_as_text() {
    let (_db, mut page, _place) = page();
    page.is_quiet = false;
    page.figures.obsolete_bytes = 2_500_000;
    page.figures.pin_ends = 3;
    page.full_in_seconds = Some(7260);
    page.readers.extend([PageReader::default(); 2]);
    (page.readers[0].process, page.readers[0].held_bytes) = (4711, 6_000);
    let mut second = page.transactions[0].clone();
    (second.name, second.held_bytes, second.ended) = ("second".into(), 5_000, "a call".into());
    page.transactions.push(second);
    let sample = |at_millis, commits| {
        let mut sample = page.history.seconds[0];
        (sample.at_millis, sample.commits) = (at_millis, commits);
        sample
    };
    page.history.seconds = vec![sample(0, 0), sample(1000, 10), sample(3000, 4010)];
    let text = render(Path::new("/data/shop"), &page, &VIEW);
    for part in [
        "/data/shop: file in process",
        "2,000 commits/s",
        "2.5 MB obsolete",
        "full in 2h 1m",
        "3 holders were ended",
        "process 4711 reads and holds 6.0 kB",
        "a process from before the opening reads",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let place = |name: &str| text.find(name).unwrap_or_else(|| panic!("{name} in {text}"));
    assert!(place("second") < place("re?port"), "the one that holds more comes first: {text}");
    assert!(text.contains("ENDED") && text.contains("5.0 kB") && text.contains("render_test.rs"), "{text}");
    let by_name = render(Path::new("d"), &page, &View { sort: Sort::Name, ..VIEW });
    assert!(by_name.find("re?port") < by_name.find("second"), "{by_name}");
    let small = render(Path::new("d"), &page, &View { width: 30, height: Some(5), ..VIEW });
    assert!(small.lines().count() == 5 && small.lines().all(|line| line.chars().count() <= 30), "{small}");
}

#[test]
fn a_page_that_is_not_renewed_is_said_to_be_stale() {
    let (_db, mut page, _place) = page();
    page.is_quiet = false;
    assert!(!render(Path::new("d"), &page, &VIEW).contains("STALE"));
    page.written_millis -= 60_000;
    assert!(render(Path::new("d"), &page, &VIEW).contains("STALE"));
    page.is_quiet = true;
    assert!(!render(Path::new("d"), &page, &VIEW).contains("STALE"), "at rest it stays true");
}

#[test]
fn figures_have_few_digits() {
    assert_eq!([0, 999, 1_000, 123_456, 5 << 30].map(bytes), ["0 B", "999 B", "1.0 kB", "123 kB", "5.4 GB"]);
    assert_eq!([0, 1_500, 12_000_000].map(nanos), ["-", "1.5µs", "12.0ms"]);
    assert_eq!(time(Duration::from_millis(61_500)), "1m 1s");
}
