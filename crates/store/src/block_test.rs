use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

const STATES: [BlockState; 5] =
    [BlockState::Free, BlockState::Open, BlockState::Sealed, BlockState::Frozen, BlockState::Released];

fn block_in(state: BlockState) -> Block {
    let block = Block::new(8);
    block.state.store(state as u8, Ordering::Relaxed);
    block
}

#[test]
fn the_life_cycle_is_a_circle_with_short_cuts() {
    use BlockState::{Free, Frozen, Open, Released, Sealed};
    let allowed = [
        (Free, Open),
        (Open, Sealed),
        (Sealed, Frozen),
        (Open, Released),
        (Sealed, Released),
        (Frozen, Released),
        (Released, Free),
    ];
    for from in STATES {
        for to in STATES {
            let block = block_in(from);
            let outcome = catch_unwind(AssertUnwindSafe(|| block.become_(to)));
            assert_eq!(outcome.is_ok(), allowed.contains(&(from, to)), "{from:?} to {to:?}");
            assert_eq!(block.state(), if outcome.is_ok() { to } else { from });
        }
    }
}

#[test]
fn a_second_release_says_what_it_is() {
    let block = block_in(BlockState::Released);
    let panic = catch_unwind(AssertUnwindSafe(|| block.become_(BlockState::Released))).expect_err("refused");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert_eq!(message, "a block goes from Released to Released");
}

#[test]
fn slots_have_addresses_of_their_own_and_are_found_by_them() {
    for stride in [24, 32, 256, 288, 61_440, 65_536] {
        let chunk = Chunk::new(3, Geometry::new(stride, 1920));
        let mut end = chunk.offset() + CHUNK_HEADER_BYTES as u64;
        for index in 0..chunk.geometry.blocks {
            for slot in [0, 1, chunk.geometry.slots / 2, chunk.geometry.slots - 1] {
                let address = chunk.address(index, slot.min(chunk.geometry.slots - 1));
                assert_eq!(chunk.locate(address), (index, slot.min(chunk.geometry.slots - 1)));
            }
            assert!(chunk.address(index, 0).offset() >= end + BLOCK_HEADER_BYTES as u64, "stride {stride}");
            end = chunk.address(index, chunk.geometry.slots - 1).offset() + u64::from(stride);
        }
        assert!(end <= chunk.offset() + CHUNK_BYTES, "stride {stride}");
    }
}
