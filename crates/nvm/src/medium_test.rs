use super::*;
use pantile_base::limits::CHUNK_BYTES;
use pantile_media::MediumExt;
use pantile_media::unshared::Unshared;

fn grown(config: NvmConfig) -> Arc<NvmMedium> {
    let medium = NvmMedium::anonymous(config).expect("open");
    medium.grow(CHUNK_BYTES).expect("grow");
    medium
}

fn content(medium: &NvmMedium, offset: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    medium.get(offset, &mut out).expect("read");
    out
}

#[test]
fn every_length_and_alignment_is_stored_exactly() {
    let medium = grown(NvmConfig::E);
    for len in [1, 63, 64, 100, 2047, 2048, 2100, 4096 + 13] {
        for shift in [0, 1, 17, 63, 64] {
            medium.put(0, &[0; 8192]).expect("clear");
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8 + 1).collect();
            medium.put(shift, &bytes).expect("write");
            medium.flush(shift, len as u64);
            medium.fence().expect("fence");
            let found = content(&medium, 0, 8192);
            let (before, rest) = found.split_at(shift as usize);
            assert!(before.iter().all(|&byte| byte == 0));
            assert_eq!(rest[..len], bytes[..], "{len} at {shift}");
            assert!(rest[len..].iter().all(|&byte| byte == 0));
        }
    }
}

#[test]
fn statistics_count_bytes_lines_and_units() {
    let medium = grown(NvmConfig::OPTANE);
    let before = medium.stats();
    medium.put(60, &[1; 8]).expect("write");
    medium.flush(60, 8);
    medium.flush(0, 0);
    medium.fence().expect("fence");
    let charges = medium.facts().charges.as_ref().expect("reads cost");
    charges.read(1 << 20, 300);
    charges.read(0, 0);
    charges.slots(3);
    let delta = medium.stats() - before;
    assert!(delta.device_write_ps > 0);
    let mut expected = delta;
    (expected.bytes_written, expected.units_written, expected.flushes) = (8, 1, 2);
    (expected.fences, expected.syncs) = (1, 0);
    (expected.bytes_read, expected.units_read) = (300, 2);
    (expected.bytes_discarded, expected.bytes_restored) = (0, 0);
    assert_eq!(delta, expected);
}

#[test]
fn slots_are_charged_by_the_design_that_persists_them() {
    for (name, charged) in [("E+zen-naive:4", 3), ("E+zen:4", 0), ("E", 0)] {
        let medium = grown(NvmConfig::by_name(name).expect("a memory"));
        let before = medium.stats();
        medium.facts().charges.as_ref().expect("charges").slots(3);
        let delta = medium.stats() - before;
        assert_eq!((delta.units_written, delta.fences), (charged, charged), "{name}");
        assert_eq!((delta.flushes, delta.bytes_written), (0, 0), "{name}");
    }
}

#[test]
fn what_was_streamed_is_flushed_only_where_it_was_changed_since() {
    let medium = grown(NvmConfig::E);
    let streamed = || medium.device.model.with_lane(|lane| lane.streamed.clone());
    medium.put(10, &[1; 4096]).expect("write");
    assert_eq!(streamed(), 64..4096);
    medium.put(4096, &[2; 4096]).expect("write");
    assert_eq!(streamed(), 64..8192);
    medium.put(8192, &[3; 10]).expect("write beside it");
    assert_eq!(streamed(), 64..8192);
    medium.put(4000, &[3; 10]).expect("write into it");
    assert!(streamed().is_empty());
}

#[test]
fn ranges_beyond_the_end_are_refused_or_ignored() {
    let medium = grown(NvmConfig::A);
    medium.put(CHUNK_BYTES - 1, &[0; 2]).expect_err("beyond the end");
    medium.flush(CHUNK_BYTES - 64, 1 << 40);
    medium.flush(u64::MAX, 1);
    assert_eq!(medium.stats().flushes, 1);
    assert_eq!(medium.stats().bytes_written, 0);
}

#[test]
fn a_directory_keeps_contents_and_a_limit_holds() {
    let place = tempfile::tempdir().expect("directory");
    let options = DirectoryOptions {
        map: MapOptions { max_bytes: Some(2 * CHUNK_BYTES), ..MapOptions::default() },
        ..DirectoryOptions::default()
    };
    let medium = NvmMedium::open(place.path(), NvmConfig::C, options).expect("open");
    assert_eq!((medium.facts().name.as_str(), medium.facts().survives_exit), ("nvm:C", true));
    medium.grow(2 * CHUNK_BYTES).expect("grow");
    assert!(medium.grow(2 * CHUNK_BYTES + 1).expect_err("full").is_full());
    medium.put(CHUNK_BYTES, b"kept").expect("write");
    medium.sync_all().expect("sync");
    let second = NvmMedium::open(place.path(), NvmConfig::C, options);
    assert!(matches!(second, Err(MediumError::Locked { .. })));
    drop(medium);
    let medium = NvmMedium::open(place.path(), NvmConfig::E, options).expect("open again");
    assert_eq!(medium.len(), 2 * CHUNK_BYTES);
    assert_eq!(content(&medium, CHUNK_BYTES, 4), b"kept");
}

#[test]
fn the_best_flush_of_this_cpu_can_be_executed() {
    let medium = grown(NvmConfig::E);
    println!("{:?}", medium.line_flush);
    medium.flush(0, 4096);
    assert_eq!(medium.stats().flushes, 64);
}

#[test]
fn a_discarded_chunk_in_a_directory_takes_no_space() {
    let place = tempfile::tempdir().expect("directory");
    let open = || NvmMedium::open(place.path(), NvmConfig::E, DirectoryOptions::default()).expect("open");
    let gauge = pantile_testkit::SpaceGauge::of(place.path());
    let assert_taken = |chunks| gauge.assert_chunks(&place.path().join(pantile_media::DATA_FILE), chunks);
    let medium = open();
    medium.grow(2 * CHUNK_BYTES).expect("grow");
    medium.put(0, &vec![7; 2 * CHUNK_BYTES as usize]).expect("write");
    assert_taken(2);
    medium.give_back(0, CHUNK_BYTES).expect("discard");
    assert_taken(1);
    assert_eq!(content(&medium, CHUNK_BYTES - 2, 4), [0, 0, 7, 7]);
    drop(medium);
    let medium = open();
    assert_eq!(content(&medium, CHUNK_BYTES - 2, 4), [0, 0, 7, 7]);
    medium.take_back(0, CHUNK_BYTES).expect("restore");
    // Space was found.
    assert_taken(2);
    medium.put(CHUNK_BYTES - 2, &[9; 2]).expect("write");
    drop(medium);
    assert_eq!(content(&open(), CHUNK_BYTES - 3, 4), [0, 9, 9, 7]);
}

#[test]
fn a_point_is_a_fence_and_durable_unless_that_failed() {
    let medium = grown(NvmConfig::OPTANE);
    medium.put(0, &[1; 4096]).expect("write");
    medium.flush(0, 4096);
    let good = medium.sync_point();
    assert_eq!(medium.stats().fences, 1);
    medium.contents.failure.latch("the device is gone");
    let lost = medium.sync_point();
    assert!(medium.is_durable(good) && !medium.is_durable(lost));
    medium.give_back(0, CHUNK_BYTES).expect_err("failed");
    medium.take_back(0, CHUNK_BYTES).expect_err("failed");
    assert_eq!(content(&medium, 0, 1), [1]);
}
