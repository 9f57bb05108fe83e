use super::*;
use crate::map::Map;
use pantile_base::limits::CHUNK_BYTES;

/// Pages of the first `chunks` chunks that have memory behind them.
fn resident(map: &Map, chunks: u64) -> usize {
    let mut pages = vec![0_u8; (chunks * CHUNK_BYTES / 4096) as usize];
    // SAFETY: the range is mapped, and there is a byte for each of its pages.
    let status = unsafe { libc::mincore(map.at(0), (chunks * CHUNK_BYTES) as usize, pages.as_mut_ptr()) };
    assert_eq!(status, 0);
    pages.iter().filter(|&&page| page & 1 == 1).count()
}

#[test]
fn discarded_memory_goes_back_to_the_system() {
    let medium = DramMedium::new(MapOptions::default()).expect("dram");
    medium.grow(3 * CHUNK_BYTES).expect("grow");
    medium.write(0, &vec![7; 3 * CHUNK_BYTES as usize]).expect("write");
    let pages = (CHUNK_BYTES / 4096) as usize;
    assert_eq!(resident(&medium.contents.map, 3), 3 * pages);
    medium.discard(CHUNK_BYTES, CHUNK_BYTES).expect("discard");
    assert_eq!(resident(&medium.contents.map, 3), 2 * pages);
}
