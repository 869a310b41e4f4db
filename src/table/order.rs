//! Puts slots into the order of their data, where the header lists them in another.
//!
//! How it works: begin and place are sorted, not whole slots, since a sort moves what it sorts a
//! dozen times. `head`, which the index of names does not need yet, is the place. Then each slot is
//! moved once, to where the places say.

use crate::base::convert::{to_u32, to_usize};
use crate::table::slot::{TensorSlot, NIL};
use crate::table::sort::{follow, sort, Sequence};

/// Sorts slots by begin; of those that begin at one place those without bytes come first, in the
/// header's order. The slots are in the header's order, and their `head` is [`NIL`], before and
/// after.
///
/// At most n log n steps.
#[cold]
#[inline(never)]
pub(crate) fn by_offset(slots: &mut [TensorSlot]) {
    for (place, slot) in slots.iter_mut().enumerate() {
        slot.head = to_u32(place);
    }
    sort_begins(slots);
    follow_places(slots);
    empty_ones_first(slots);
}

/// Sorts `begin` and `head` of slots by both, and leaves the rest of each where it is.
pub(crate) fn sort_begins(slots: &mut [TensorSlot]) {
    sort(&mut Begins { slots });
}

/// The begins of slots, each with the place that the rest of its slot is at.
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

    /// Begins may be equal, places are not.
    #[inline]
    fn less(&self, a: &(u64, u32), b: &(u64, u32)) -> bool {
        a < b
    }
}

/// Brings the rest of each slot from the place that its `head` names, where its begin is already.
fn follow_places(slots: &mut [TensorSlot]) {
    let place = |slot: &TensorSlot| (slot.head != NIL).then(|| to_usize(slot.head));
    follow(slots, place, |slot, rest| *slot = TensorSlot { begin: slot.begin, head: NIL, ..rest });
}

/// Among slots that begin at one place, puts the one that has bytes last. If more than one has, they
/// overlap, and the header is refused for that.
fn empty_ones_first(slots: &mut [TensorSlot]) {
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
    fn orders_like_the_standard_library() {
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
                        // At most one slot of a begin has bytes.
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
