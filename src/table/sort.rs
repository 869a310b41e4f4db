//! An in-place sort for slots, in O(n log n) for every input. `sort_unstable` is not used because
//! it links panic paths into a firmware image.

use crate::base::bare::BARE_METAL;
use crate::base::convert::{to_u32, to_u64, to_usize};

/// A sequence that can be sorted by copying its elements.
pub(crate) trait Sequence {
    type Element: Copy;

    fn len(&self) -> usize;
    /// Returns the element at a position below the length.
    fn get(&self, at: usize) -> Option<Self::Element>;
    /// Stores an element at a position below the length.
    fn set(&mut self, at: usize, element: Self::Element);
    /// Checks whether `a` comes before `b`. Equal elements end up in any order.
    fn less(&self, a: &Self::Element, b: &Self::Element) -> bool;
}

/// A slice and a comparison function for its elements.
pub(crate) struct By<'t, T, F>(pub(crate) &'t mut [T], pub(crate) F);

impl<T: Copy, F: Fn(&T, &T) -> bool> Sequence for By<'_, T, F> {
    type Element = T;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<T> {
        self.0.get(at).copied()
    }

    #[inline]
    fn set(&mut self, at: usize, element: T) {
        if let Some(place) = self.0.get_mut(at) {
            *place = element;
        }
    }

    #[inline]
    fn less(&self, a: &T, b: &T) -> bool {
        (self.1)(a, b)
    }
}

/// Ranges up to this length are sorted by insertion.
const SHORT: usize = 16;

/// Sorts a sequence.
///
/// Uses quicksort, and heapsort for a range that quicksort does not divide well. That bounds the
/// comparisons by O(n log n) for every input. There is no recursion. Bare-metal targets use
/// heapsort alone.
pub(crate) fn sort<S: Sequence>(sequence: &mut S) {
    if BARE_METAL {
        return heapsort(sequence, 0, sequence.len());
    }
    // Ranges that are not sorted yet, each with the number of levels quicksort can still divide it.
    // The larger part of a range waits here while the smaller part is divided. Each waiting range
    // is therefore at most half of the previous one, and 20 are enough for 2^24 elements.
    let mut waiting = [(0_u32, 0_u32); 20];
    let mut levels_of = [0_u8; 20];
    let mut count: usize = 0;
    let (mut low, mut high) = (0, sequence.len());
    // At most 128.
    let mut levels = u8::try_from(usize::BITS.wrapping_sub(high.leading_zeros()) << 1).unwrap_or(0);
    loop {
        let len = high.wrapping_sub(low);
        if len > SHORT && levels > 0 && count < waiting.len() {
            levels = levels.wrapping_sub(1);
            let middle = partition(sequence, low, high);
            let (left, right) = ((low, middle), (middle.wrapping_add(1), high));
            let left_is_smaller = middle.wrapping_sub(low) < high.wrapping_sub(middle);
            let (smaller, larger) = if left_is_smaller { (left, right) } else { (right, left) };
            if let (Some(place), Some(its)) = (waiting.get_mut(count), levels_of.get_mut(count)) {
                (*place, *its) = ((to_u32(larger.0), to_u32(larger.1)), levels);
            }
            count = count.wrapping_add(1);
            (low, high) = smaller;
            continue;
        }
        if len > SHORT {
            heapsort(sequence, low, high);
        } else {
            insertion_sort(sequence, low, high);
        }
        let Some(last) = count.checked_sub(1) else { return };
        let (Some(next), Some(its)) = (waiting.get(last), levels_of.get(last)) else { return };
        count = last;
        (low, high, levels) = (to_usize(next.0), to_usize(next.1), *its);
    }
}

/// Partitions the range `low..high`, which must have at least three elements, around a pivot:
/// smaller elements before it, all others after it. Returns the pivot's position.
#[inline]
fn partition<S: Sequence>(sequence: &mut S, low: usize, high: usize) -> usize {
    // The pivot is the median of three elements, one from each third of the range. Their positions
    // are pseudo-random, because the input can have a pattern, and the exchanges below turn it into
    // other patterns.
    let len = high.wrapping_sub(low);
    let mut random = to_u64(len).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ to_u64(low);
    let third = to_u64(len).checked_div(3).unwrap_or(0);
    let mut place = |part: u64| {
        random = (random ^ random >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let within = (random >> 32).wrapping_mul(third) >> 32;
        let place = part.wrapping_mul(third).wrapping_add(within);
        low.wrapping_add(usize::try_from(place).unwrap_or(0))
    };
    let (x, y, z) = (place(0), place(1), place(2));
    let (Some(a), Some(b), Some(c)) = (sequence.get(x), sequence.get(y), sequence.get(z)) else {
        return low;
    };
    let pivot = match (sequence.less(&a, &b), sequence.less(&b, &c), sequence.less(&a, &c)) {
        (true, true, _) | (false, false, _) => y,
        (true, false, true) | (false, true, false) => z,
        _ => x,
    };
    exchange(sequence, low, pivot);
    let Some(pivot) = sequence.get(low) else { return low };

    // Every element is exchanged, needed or not. The border moves only if the exchange was needed.
    // This leaves no branch for the processor to mispredict.
    let first = low.wrapping_add(1);
    let mut border = first;
    for at in first..high {
        let (Some(element), Some(other)) = (sequence.get(at), sequence.get(border)) else { break };
        sequence.set(at, other);
        sequence.set(border, element);
        border = border.wrapping_add(usize::from(sequence.less(&element, &pivot)));
    }
    let border = border.wrapping_sub(1);
    exchange(sequence, low, border);
    border
}

#[inline]
fn exchange<S: Sequence>(sequence: &mut S, a: usize, b: usize) {
    if let (Some(x), Some(y)) = (sequence.get(a), sequence.get(b)) {
        sequence.set(a, y);
        sequence.set(b, x);
    }
}

fn insertion_sort<S: Sequence>(sequence: &mut S, low: usize, high: usize) {
    for end in low.saturating_add(1)..high {
        let Some(element) = sequence.get(end) else { return };
        let mut at = end;
        while at > low {
            let before = at.wrapping_sub(1);
            match sequence.get(before) {
                Some(other) if sequence.less(&element, &other) => sequence.set(at, other),
                _ => break,
            }
            at = before;
        }
        sequence.set(at, element);
    }
}

fn heapsort<S: Sequence>(sequence: &mut S, low: usize, high: usize) {
    // Sinks the element at `root` below its larger children, among the first `end` positions. All
    // positions count from `low`.
    let sift = |sequence: &mut S, mut root: usize, end: usize| loop {
        let at = |place: usize| low.wrapping_add(place);
        let left = root.saturating_mul(2).saturating_add(1);
        let right = left.saturating_add(1);
        if left >= end {
            return;
        }
        let child = match (sequence.get(at(left)), sequence.get(at(right))) {
            (Some(a), Some(b)) if right < end && sequence.less(&a, &b) => right,
            _ => left,
        };
        match (sequence.get(at(root)), sequence.get(at(child))) {
            (Some(parent), Some(larger)) if sequence.less(&parent, &larger) => {
                exchange(sequence, at(root), at(child));
            }
            _ => return,
        }
        root = child;
    };
    let len = high.saturating_sub(low);
    for root in (0..len >> 1).rev() {
        sift(sequence, root, len);
    }
    for end in (1..len).rev() {
        exchange(sequence, low, low.wrapping_add(end));
        sift(sequence, 0, end);
    }
}

/// Moves each element to its final position, once, after the positions have been sorted.
///
/// `place` returns the position of the element that belongs at this one, or `None` if this one is
/// already filled. `fill` stores that element here and marks it as filled.
#[inline]
pub(crate) fn follow<T: Copy>(
    elements: &mut [T],
    place: impl Fn(&T) -> Option<usize>,
    fill: impl Fn(&mut T, T),
) {
    for start in 0..elements.len() {
        // Follows one cycle: each element moves to the position of the previous one.
        let Some(&first) = elements.get(start) else { return };
        let (mut here, mut next) = (start, place(&first));
        while let Some(from) = next {
            let moved = if from == start { Some(&first) } else { elements.get(from) };
            let Some(&moved) = moved else { return };
            if let Some(element) = elements.get_mut(here) {
                fill(element, moved);
            }
            here = from;
            next = if from == start { None } else { place(&moved) };
        }
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::prelude::v1::*;
    use std::vec;

    fn random(len: usize, bound: u32) -> Vec<u32> {
        let mut state: u32 = 1;
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) % bound
            })
            .collect()
    }

    /// Sorts numbers and counts the comparisons.
    fn sorted(mut numbers: Vec<u32>) -> (Vec<u32>, usize) {
        let comparisons = Cell::new(0);
        sort(&mut By(&mut numbers, |a: &u32, b: &u32| {
            comparisons.set(comparisons.get() + 1);
            a < b
        }));
        (numbers, comparisons.get())
    }

    /// The worst input for quicksort with median of three (McIlroy's adversary): the order of two
    /// elements is decided when they are first compared, to the disadvantage of the pivot.
    fn adversary(len: usize) -> Vec<u32> {
        let solid = Cell::new(0);
        let values: Vec<Cell<u32>> = vec![Cell::new(u32::MAX); len];
        let mut order: Vec<usize> = (0..len).collect();
        let candidate = Cell::new(0);
        let fix = |i: usize| {
            values[i].set(solid.get());
            solid.set(solid.get() + 1);
        };
        let less = |a: usize, b: usize| {
            let gas = |i: usize| values[i].get() == u32::MAX;
            if gas(a) && gas(b) {
                fix(if a == candidate.get() { a } else { b });
            }
            if gas(a) {
                candidate.set(a);
            } else if gas(b) {
                candidate.set(b);
            }
            values[a].get() < values[b].get()
        };
        sort(&mut By(&mut order, |a: &usize, b: &usize| less(*a, *b)));
        values.into_iter().map(Cell::into_inner).collect()
    }

    #[test]
    fn sorts_as_the_standard_library_does() {
        for len in (0..200).chain([1000, 10_000]) {
            for bound in [1, 2, 10, u32::MAX >> 8] {
                let numbers = random(len, bound);
                let mut expected = numbers.clone();
                expected.sort_unstable();
                assert_eq!(sorted(numbers).0, expected);
                let mut by_heap = random(len, bound);
                heapsort(&mut By(&mut by_heap, |a: &u32, b: &u32| a < b), 0, len);
                assert_eq!(by_heap, expected);
            }
        }
    }

    #[test]
    fn bounds_comparisons_by_n_log_n() {
        let len = 1 << 15;
        let ascending: Vec<u32> = (0..len).collect();
        let inputs = [
            random(len as usize, u32::MAX >> 8),
            ascending.clone(),
            ascending.iter().rev().copied().collect(),
            // Ascending then descending, and two interleaved ascending runs.
            ascending.iter().step_by(2).chain(ascending.iter().rev().step_by(2)).copied().collect(),
            ascending.iter().map(|i| i / 2 + (i % 2) * len).collect(),
            vec![7; len as usize],
            adversary(len as usize),
        ];
        for (i, input) in inputs.into_iter().enumerate() {
            let comparisons = sorted(input).1;
            // log2(n) is 15. The worst case is a heapsort after 32 levels of quicksort.
            let most = len as usize * 15 * 4;
            assert!(comparisons < most, "input {i}: {comparisons} comparisons");
        }
    }
}
