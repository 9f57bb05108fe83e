use super::*;
use crate::map::Map;
use crate::unshared::Unshared;
use pantile_base::limits::CHUNK_BYTES;

/// Pages of a chunk that have memory behind them.
fn resident(map: &Map, chunk: u64) -> usize {
    let mut pages = vec![0_u8; (CHUNK_BYTES / 4096) as usize];
    let start = map.at(chunk * CHUNK_BYTES);
    // SAFETY: the range is mapped, and there is a byte for each of its pages.
    let status = unsafe { libc::mincore(start, CHUNK_BYTES as usize, pages.as_mut_ptr()) };
    assert_eq!(status, 0);
    pages.iter().filter(|&&page| page & 1 == 1).count()
}

#[test]
fn discarded_memory_goes_back_to_the_system() {
    let medium = DramMedium::new(MapOptions::default()).expect("dram");
    medium.grow(3 * CHUNK_BYTES).expect("grow");
    medium.put(0, &vec![7; 3 * CHUNK_BYTES as usize]).expect("write");
    assert!(resident(&medium.contents.map, 1) > 0);
    medium.give_back(CHUNK_BYTES, CHUNK_BYTES).expect("discard");
    assert_eq!(resident(&medium.contents.map, 1), 0);
}
