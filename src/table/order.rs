//! Sorts slots into data order, for headers that list tensors in another order.
//!
//! How it works: a sort moves each element about a dozen times, so whole slots are not sorted. Only
//! pairs of `begin` and the slot's original position are. The position is stored in `head`, which
//! the index of names does not need yet. Then each slot is moved once, to its final position.

use crate::base::convert::{to_u32, to_usize};
use crate::table::slot::{TensorSlot, NIL};
use crate::table::sort::{follow, sort, Sequence};

/// Sorts slots by `begin`. Among slots with the same `begin`, those without bytes come first, in
/// header order.
///
/// The slots must be in header order. Their `head` must be [`NIL`], and is [`NIL`] afterwards.
///
/// Takes O(n log n) steps.
#[cold]
#[inline(never)]
pub(crate) fn by_offset(slots: &mut [TensorSlot]) {
    for (place, slot) in slots.iter_mut().enumerate() {
        slot.head = to_u32(place);
    }
    sort_begins(slots);
    follow_places(slots);
    put_empty_first(slots);
}

/// Sorts the pairs of `begin` and `head`. All other fields stay in place.
pub(crate) fn sort_begins(slots: &mut [TensorSlot]) {
    sort(&mut Begins { slots });
}

/// The `begin` of each slot, with the position of the rest of that slot in `head`.
struct Begins<'s> {
    slots: &'s mut [TensorSlot],
}

impl Sequence for Begins<'_> {
    type Element = (u64, u32);

    #[inline]
    fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<(u64, u32)> {
        self.slots.get(at).map(|slot| (slot.begin, slot.head))
    }

    #[inline]
    fn set(&mut self, at: usize, (begin, head): (u64, u32)) {
        if let Some(slot) = self.slots.get_mut(at) {
            (slot.begin, slot.head) = (begin, head);
        }
    }

    /// Strict: `begin` can repeat, but `head` is unique.
    #[inline]
    fn less(&self, a: &(u64, u32), b: &(u64, u32)) -> bool {
        a < b
    }
}

/// Moves the rest of each slot, from the position in `head`, to its already sorted `begin`.
fn follow_places(slots: &mut [TensorSlot]) {
    let place = |slot: &TensorSlot| (slot.head != NIL).then(|| to_usize(slot.head));
    follow(slots, place, |slot, rest| *slot = TensorSlot { begin: slot.begin, head: NIL, ..rest });
}

/// Among slots with the same `begin`, moves the one that has bytes to the end. If more than one has
/// bytes, they overlap, and the header is rejected later.
fn put_empty_first(slots: &mut [TensorSlot]) {
    for at in 1..slots.len() {
        let before = at.wrapping_sub(1);
        if let (Some(&a), Some(&b)) = (slots.get(before), slots.get(at)) {
            if a.begin == b.begin && a.end > a.begin && b.end == b.begin {
                if let Some(slot) = slots.get_mut(before) {
                    *slot = b;
                }
                if let Some(slot) = slots.get_mut(at) {
                    *slot = a;
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn sorts_as_the_standard_library_does() {
        let mut state: u64 = 1;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for len in (0..100).chain([1000]) {
            for bound in [1, 3, 50, 1 << 31] {
                let slots: Vec<TensorSlot> = (0..len)
                    .map(|name| {
                        let begin = random(bound);
                        // At most one slot per `begin` has bytes: see below.
                        TensorSlot { begin, end: begin, name, next: name, ..TensorSlot::EMPTY }
                    })
                    .collect();
                let mut slots = slots;
                let mut seen = std::collections::HashSet::new();
                for slot in &mut slots {
                    if random(2) == 0 && seen.insert(slot.begin) {
                        slot.end += 1;
                    }
                }
                let key =
                    |slot: &TensorSlot| (slot.begin, slot.end, slot.name, slot.next, slot.head);
                let mut expected: Vec<_> = slots.iter().map(key).collect();
                expected.sort();
                by_offset(&mut slots);
                assert_eq!(slots.iter().map(key).collect::<Vec<_>>(), expected);
            }
        }
    }
}
