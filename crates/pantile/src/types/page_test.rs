use super::*;

fn page() -> Page {
    let figures = Figures { commits: 7, medium_bytes: 1 << 40, commit_max_nanos: 9, ..Figures::default() };
    let held = HeldOfTable { table: "käse".into(), bytes: 5, blocks: 1 };
    let transaction = PageTransaction {
        id: 12,
        name: "report".into(),
        place: "src/main.rs:1:2".into(),
        read_only: true,
        held_bytes: 5,
        tables: vec![held],
        ..PageTransaction::default()
    };
    let sample = |at_millis| Sample { at_millis, commits: 3, ..Sample::default() };
    Page {
        process: std::process::id(),
        process_started: started(std::process::id()).expect("this process runs"),
        is_quiet: true,
        medium: "file".into(),
        full_in_seconds: Some(0),
        figures,
        tables: vec![TableSpace { table: "t".into(), blocks: 2, ..TableSpace::default() }],
        more_tables: 1,
        transactions: vec![transaction],
        readers: vec![PageReader { process: 9, age_micros: 8, held_bytes: 7 }],
        history: History { seconds: vec![sample(1), sample(2)], minutes: vec![sample(1)] },
        ..Page::default()
    }
}

#[test]
fn a_page_is_read_as_it_was_written() {
    let page = page();
    let mut bytes = page.encode();
    assert_eq!(Page::decode(&bytes), Ok(page.clone()));
    // What an earlier, longer page has left behind it.
    bytes.extend([7; 100]);
    assert_eq!(Page::decode(&bytes), Ok(page.clone()));
    assert!(page.is_process_running());
    assert!(!Page { process_started: page.process_started + 1, ..page }.is_process_running());
}

/// Neither a torn page nor one with any flipped bit is shown.
#[test]
fn no_damaged_page_is_shown() {
    let bytes = page().encode();
    for length in 0..bytes.len() {
        assert!(Page::decode(&bytes[..length]).is_err(), "{length}");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(Page::decode(&damaged).is_err(), "{at}");
    }
    let newer = Page { figures: Figures { commits: 8, ..page().figures }, ..page() }.encode();
    for at in 1..bytes.len() - 1 {
        let torn = [&newer[..at], &bytes[at..]].concat();
        let is_whole = torn == bytes || torn == newer;
        assert_eq!(Page::decode(&torn).is_ok(), is_whole, "{at}");
    }
}

#[test]
fn other_files_and_versions_are_told_apart() {
    assert_eq!(Page::decode(b""), Err(Unusable::Foreign));
    assert_eq!(Page::decode(&[1; 4096]), Err(Unusable::Foreign));
    let mut later = page().encode();
    later[8] = VERSION as u8 + 1;
    assert_eq!(Page::decode(&later), Err(Unusable::Version(VERSION + 1)));
    let mut long = page().encode();
    long[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(Page::decode(&long), Err(Unusable::Torn));
}
