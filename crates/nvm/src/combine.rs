//! The write-combining buffer in front of the device.

/// Bytes of units the buffer holds, as measured on Optane modules.
pub(crate) const BUFFER_BYTES: u64 = 16 << 10;

const WAYS: usize = 8;

/// Recently written units, in sets of eight, the least recent of a set
/// replaced first. Within a buffer's length, consecutive units never meet in
/// a full set.
#[derive(Debug)]
pub(crate) struct CombiningBuffer {
    sets: Box<[[Option<Unit>; WAYS]]>,
    /// Bits of a unit's number that choose its set.
    set_bits: u32,
}

/// A unit's number plus one, so that an empty place takes no further room.
type Unit = std::num::NonZeroU64;

fn unit(number: u64) -> Unit {
    Unit::MIN.saturating_add(number)
}

impl CombiningBuffer {
    /// For units of this many bytes, a power of two.
    pub(crate) fn new(unit_bytes: u64) -> Self {
        let capacity = (BUFFER_BYTES / unit_bytes).max(WAYS as u64) as usize;
        let sets = (capacity / WAYS).next_power_of_two();
        Self { sets: vec![[None; WAYS]; sets].into_boxed_slice(), set_bits: sets.trailing_zeros() }
    }

    /// Units it can hold.
    fn capacity(&self) -> u64 {
        (self.sets.len() * WAYS) as u64
    }

    /// Puts units `first..=last` in and returns how many were not there. Of a
    /// range longer than the buffer, the middle counts as new unseen: it
    /// cannot stay, and was hardly there.
    pub(crate) fn insert(&mut self, first: u64, last: u64) -> u64 {
        let fresh = u64::from(self.insert_one(first));
        let tail = (first + 1).max((last + 1).saturating_sub(self.capacity()));
        let skipped = tail - (first + 1);
        let kept = (tail..=last).filter(|&number| self.insert_one(number));
        fresh + skipped + kept.count() as u64
    }

    /// Puts one unit in front of its set; true if it was not there.
    #[inline]
    fn insert_one(&mut self, number: u64) -> bool {
        let wanted = Some(unit(number));
        let set = self.set_of(number);
        // Each unit moves one place back, until the old place of this one is filled.
        let mut carried = wanted;
        for held in &mut self.sets[set] {
            std::mem::swap(held, &mut carried);
            if carried == wanted {
                return false;
            }
        }
        true
    }

    /// Higher bits are folded in, or streams a power of two apart would share a set.
    #[inline]
    fn set_of(&self, number: u64) -> usize {
        let bits = self.set_bits;
        let folded = number ^ number >> bits ^ number >> (2 * bits) ^ number >> 13;
        folded as usize & (self.sets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_new_once_while_it_stays() {
        let mut buffer = CombiningBuffer::new(256);
        assert_eq!(buffer.insert(5, 5), 1);
        assert_eq!(buffer.insert(5, 5), 0);
        assert_eq!(buffer.insert(4, 6), 2);
        assert_eq!(buffer.insert(0, 0), 1);
    }

    #[test]
    fn a_buffer_of_consecutive_units_stays_whole() {
        for (unit_bytes, units) in [(256, 64), (128, 128), (64, 256)] {
            let mut buffer = CombiningBuffer::new(unit_bytes);
            assert_eq!(buffer.insert(units, 2 * units - 1), units);
            assert_eq!(buffer.insert(units, 2 * units - 1), 0, "{unit_bytes}");
        }
    }

    #[test]
    fn old_units_leave() {
        let mut buffer = CombiningBuffer::new(256);
        buffer.insert(0, 0);
        assert_eq!(buffer.insert(1000, 1999), 1000);
        assert_eq!(buffer.insert(0, 0), 1);
        assert_eq!(buffer.insert(1999, 1999), 0);
    }
}
