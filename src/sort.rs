//! A sort for slots: in place, never worse than n log n, and without the panic paths that
//! `sort_unstable` brings into a firmware image.

/// Sorts the places `0..len` of `data`, of which `less` compares two and `swap` exchanges two, by
/// heapsort: at most 2 n log2 n comparisons.
///
/// Neither is given a place outside `0..len`. Equal elements end in any order, so `less` had better
/// have none.
pub(crate) fn heapsort<T: ?Sized>(
    data: &mut T,
    len: usize,
    less: impl Fn(&T, usize, usize) -> bool,
    swap: impl Fn(&mut T, usize, usize),
) {
    // Sinks the element at `root` below its larger children, among the first `end` places.
    let sift = |data: &mut T, mut root: usize, end: usize| loop {
        let left = root.saturating_mul(2).saturating_add(1);
        if left >= end {
            return;
        }
        let right = left.saturating_add(1);
        let child = if right < end && less(data, left, right) { right } else { left };
        if !less(data, root, child) {
            return;
        }
        swap(data, root, child);
        root = child;
    };
    for root in (0..len >> 1).rev() {
        sift(data, root, len);
    }
    for end in (1..len).rev() {
        swap(data, 0, end);
        sift(data, 0, end);
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn sorted(mut numbers: Vec<u32>) -> Vec<u32> {
        let len = numbers.len();
        heapsort(numbers.as_mut_slice(), len, |n, a, b| n[a] < n[b], |n, a, b| n.swap(a, b));
        numbers
    }

    #[test]
    fn sorts_like_the_standard_library() {
        let mut state: u32 = 1;
        for len in 0..200 {
            for bound in [1, 2, 10, u32::MAX] {
                let numbers: Vec<u32> = (0..len)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (state >> 8) % bound
                    })
                    .collect();
                let mut expected = numbers.clone();
                expected.sort_unstable();
                assert_eq!(sorted(numbers), expected);
            }
        }
    }
}
