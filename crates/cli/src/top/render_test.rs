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
fn what_is_open_is_as_old_as_its_page_says_until_pages_stay_away() {
    let (_db, mut page, _place) = page();
    (page.figures.running, page.figures.oldest_micros) = (1, 123_456_000);
    page.transactions[0].age_micros = 123_456_000;
    let shown = |page: &Page| render(Path::new("d"), page, &VIEW).matches(" 2m 3s").count();
    (page.is_quiet, page.written_millis) = (false, page.written_millis - 900);
    assert_eq!(shown(&page), 2, "in the summary and in the list");
    page.is_quiet = true;
    assert_eq!(shown(&page), 0, "at rest both are 900 ms older by now");
    page.figures.running = 0;
    assert!(render(Path::new("d"), &page, &VIEW).contains(" 0 running\n"));
}

#[test]
fn a_long_place_leaves_room_for_what_a_holder_holds() {
    let (_db, mut page, _place) = page();
    page.transactions[0].place =
        "/home/ann/.cargo/git/checkouts/shop-1f2e/src/report/nightly.rs:166:28".into();
    page.transactions[0].name = "a name of a report that is long, too".repeat(3);
    page.transactions[0].held_bytes = 5_000;
    let text = render(Path::new("d"), &page, &View { width: 60, ..VIEW });
    let line = text.lines().find(|line| line.contains("nightly")).expect("the holder");
    assert!(line.contains("…/src/report/nightly.rs:166:28 ") && line.contains("5.0 kB"), "{line}");
    assert_eq!(end_of("src/main.rs:1:2"), "src/main.rs:1:2");
    assert_eq!(end_of(&format!("a/{}.rs:7:1", "é".repeat(50))).chars().count(), PLACE);
}

/// The picture in the guide is drawn from what was printed once. What does not change from page to page is the same today.
#[test]
fn the_picture_in_the_guide_has_the_lines_of_today() {
    let (_db, mut page, _place) = page();
    page.is_quiet = false;
    let text = render(Path::new("shop"), &page, &VIEW);
    let picture = include_str!("../../../../docs/guide/top.svg");
    let drawn = picture.lines().filter_map(|line| line.strip_suffix("</text>")?.split_once("preserve\">"));
    let drawn: Vec<_> = drawn.map(|(_, line)| line).collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let heads = |lines: &[&str]| {
        let whole = |line: &&&str| line.starts_with("holder ") || line.starts_with("table ");
        lines.iter().filter(whole).map(|line| words(line)).collect::<Vec<_>>()
    };
    let today: Vec<_> = text.lines().collect();
    assert_eq!(heads(&drawn), heads(&today));
    let labels = |lines: &[&str]| {
        let before = lines.iter().take_while(|line| !line.starts_with("holder "));
        let labels = before.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
        labels.collect::<Vec<_>>()
    };
    assert_eq!(labels(&drawn), labels(&today));
}

#[test]
fn figures_have_few_digits() {
    assert_eq!([0, 999, 1_000, 123_456, 5 << 30].map(bytes), ["0 B", "999 B", "1.0 kB", "123 kB", "5.4 GB"]);
    assert_eq!([0, 1_500, 12_000_000].map(nanos), ["-", "1.5µs", "12.0ms"]);
    assert_eq!(time(Duration::from_millis(61_500)), "1m 1s");
}
