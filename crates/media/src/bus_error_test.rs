//! What can be tried without dying; `tests/bus_error.rs` has the rest.

use super::*;

/// The places are those of the process, and one test takes all.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> impl Drop {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Far from anything that is mapped.
const FAR: usize = 1 << 60;

fn found(address: usize) -> Option<String> {
    LOOKING.fetch_add(1, Ordering::SeqCst);
    let path = find(address).map(|watched| watched.path.clone());
    LOOKING.fetch_sub(1, Ordering::SeqCst);
    path
}

#[test]
fn a_range_is_known_from_its_first_byte_to_its_last_while_it_is_watched() {
    let _alone = alone();
    let one = Watch::over(FAR, 4096, -1, Path::new("/one"), false).expect("a place");
    let two = Watch::over(FAR + 4096, 4096, -1, Path::new("/two"), false).expect("a place");
    assert_eq!(found(FAR - 1), None);
    assert_eq!(found(FAR).as_deref(), Some("/one"));
    assert_eq!(found(FAR + 4095).as_deref(), Some("/one"));
    assert_eq!(found(FAR + 4096).as_deref(), Some("/two"));
    assert_eq!(found(FAR + 8192), None);
    drop(one);
    assert_eq!(found(FAR), None);
    drop(two);
    assert_eq!(found(FAR + 4096), None);
}

#[test]
fn more_ranges_than_places_are_not_watched_and_do_no_harm() {
    let _alone = alone();
    let start = FAR + (1 << 40);
    let many: Vec<_> =
        (0..PLACES + 3).map(|n| Watch::over(start + n * 4096, 4096, -1, Path::new("/many"), false)).collect();
    assert!(many.iter().filter(|watch| watch.is_none()).count() >= 3);
    drop(many);
    assert_eq!(found(start), None);
    Watch::over(start, 4096, -1, Path::new("/again"), false).expect("a place is free again");
}

#[test]
fn threads_that_look_and_threads_that_leave_do_not_disturb_each_other() {
    let start = FAR + (2 << 40);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                let start = start + thread * (1 << 20);
                for _ in 0..2000 {
                    let watch = Watch::over(start, 4096, -1, Path::new("/busy"), false);
                    assert_eq!(found(start).is_some(), watch.is_some());
                }
            });
        }
    });
}

#[test]
fn the_message_says_what_where_and_what_to_do() {
    let path = "/data/shop/pantile.data".to_owned();
    let directory = "/data/shop".into();
    let mut watched = Watched { start: 0, end: 1, file: -1, is_stored_to: false, path, directory };
    let text = |watched: &Watched, length, code| {
        let mut text = String::new();
        describe(&mut text, watched, 2_097_160, length, code).expect("text");
        text
    };
    let cut = text(&watched, Some(2_097_152), libc::BUS_ADRERR);
    for part in [
        "/data/shop/pantile.data cannot be read at byte 2097160",
        "only 2097152 bytes long now",
        "acknowledged commit",
        "`pantile check /data/shop`",
    ] {
        assert!(cut.contains(part), "{cut}");
    }
    assert!(cut.ends_with(".\n") && cut.matches('\n').count() == 1);
    assert!(text(&watched, Some(1 << 30), libc::BUS_ADRERR).contains("the device does not give the bytes"));
    assert!(text(&watched, None, libc::BUS_MCEERR_AR).contains("the memory that holds it has failed"));
    watched.is_stored_to = true;
    let stored = text(&watched, Some(1 << 30), libc::BUS_ADRERR);
    for part in ["cannot be read or written at byte 2097160", "the file system takes no more"] {
        assert!(stored.contains(part), "{stored}");
    }
}

#[test]
fn a_message_too_long_is_cut_off() {
    let mut text = Text { bytes: [0; TEXT_BYTES], len: 0 };
    let long = "x".repeat(TEXT_BYTES - 1);
    write!(text, "{long}").expect("it fits");
    write!(text, "yz").expect_err("it does not");
    assert_eq!((text.len, text.bytes[TEXT_BYTES - 1]), (TEXT_BYTES, b'y'));
}
