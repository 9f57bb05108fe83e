use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::format::CHUNK_HEADER_BYTES;
use crate::geometry::Class;

const STATES: [BlockState; 6] = [
    BlockState::Free,
    BlockState::Open,
    BlockState::Sealed,
    BlockState::Frozen,
    BlockState::Released,
    BlockState::Record,
];

fn block_in(state: BlockState) -> Block {
    let block = Block::new(0);
    block.state.store(state as u8, Ordering::Relaxed);
    block
}

#[test]
fn the_life_cycle_is_a_circle_with_short_cuts() {
    use BlockState::{Free, Frozen, Open, Record, Released, Sealed};
    let allowed = [
        (Free, Record),
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
    for (number, class) in Class::all().map(|class| (3, class)).chain([(0, Class::SMALLEST)]) {
        for stride in [24, 32, 256, 288, 61_440, 65_536] {
            let chunk = Chunk::new(number, Geometry::new(number, class), 0);
            let Some(shape) = Shape::new(stride, 1920, chunk.geometry.block_bytes) else { continue };
            let mut end = chunk.offset() + CHUNK_HEADER_BYTES as u64;
            for index in 0..chunk.geometry.blocks {
                chunk.blocks[index as usize].open(TableId(16), 7, false, shape, 0);
                for slot in [0, 1, shape.slots / 2, shape.slots - 1] {
                    let slot = slot.min(shape.slots - 1);
                    assert_eq!(chunk.locate(chunk.address(index, slot)), (index, slot));
                }
                assert!(
                    chunk.address(index, 0).offset() >= end + BLOCK_HEADER_BYTES as u64,
                    "stride {stride}"
                );
                end = chunk.address(index, shape.slots - 1).offset() + u64::from(stride);
                assert!(end <= chunk.end_of(index), "stride {stride}");
            }
            assert!(end <= (u64::from(number) + 1) * CHUNK_BYTES, "stride {stride}");
        }
    }
}

#[test]
fn a_block_that_is_closed_early_has_as_many_slots_as_were_written() {
    let block = Block::new(0);
    block.open(TableId(16), 7, false, Shape { stride: 64, slots: 100 }, 0);
    block.set_fill(3);
    block.close_early();
    assert_eq!((block.state(), block.slots()), (BlockState::Sealed, 3));
}
