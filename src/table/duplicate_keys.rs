//! Detects duplicate strings in the worst case: metadata keys chosen so that their hashes collide.
//!
//! How it works: strings are compared in blocks of seven bytes. Strings that start with the same
//! blocks form a group, in adjacent positions. The next block of each string in a group is decoded,
//! and the group is sorted by it. A group of one is done. Each byte is therefore decoded once,
//! however long the common prefixes are, and only numbers are sorted. Two strings with all blocks
//! equal are duplicates.
//!
//! The slots serve as two tables. Indexed by position in the sorted order, `begin` is the current
//! block, `next` the number of the group, and `head` the number of the string. Indexed by string,
//! `name` is its position in the header, and `end` how many of its bytes have been decoded.

use core::ops::Range;

use crate::base::convert::{to_u32, to_u64, to_usize};
use crate::json::text::Text;
use crate::table::name_index::{self, Clash};
use crate::table::order;
use crate::table::slot::TensorSlot;

/// The maximum size of a block in bytes. A block holds whole characters.
const BLOCK: usize = 7;

/// Checks that the slots' names are distinct. If not, returns the first name that repeats an
/// earlier one, and the first use of that name.
///
/// Takes O(n log n) steps, plus one per byte. Leaves `begin`, `end`, `head` and `next` of the slots
/// unspecified.
#[cold]
#[inline(never)]
pub(crate) fn distinct(header: &str, slots: &mut [TensorSlot]) -> Result<(), Clash> {
    for (string, slot) in slots.iter_mut().enumerate() {
        (slot.head, slot.end) = (to_u32(string), 0);
    }
    let (mut groups, mut at) = (0, 0);
    let mut clash: Option<Clash> = None;
    take_blocks(header, slots, 0..slots.len(), groups);
    while let Some(&first) = slots.get(at) {
        let other = |slot: &TensorSlot| slot.begin != first.begin || slot.next != first.next;
        let rest = slots.get(at..).unwrap_or_default();
        let end = at.saturating_add(rest.iter().position(other).unwrap_or(rest.len()));
        if end.saturating_sub(at) < 2 {
            at = end;
        } else if is_last(first.begin) {
            clash = Some(earlier(clash, first_two(slots.get(at..end).unwrap_or_default())));
            at = end;
        } else {
            groups = u32::wrapping_add(groups, 1);
            take_blocks(header, slots, at..end, groups);
        }
    }
    clash.map_or(Ok(()), Err)
}

/// Decodes the next block of each string in a group, and sorts the group by block.
fn take_blocks(header: &str, slots: &mut [TensorSlot], group: Range<usize>, number: u32) {
    let mut sorted = true;
    let mut before = 0;
    for at in group.clone() {
        let Some(string) = slots.get(at).map(|slot| to_usize(slot.head)) else { return };
        let Some(slot) = slots.get_mut(string) else { return };
        let (block, taken) = block(name_index::name(header, slot), slot.escaped, slot.end);
        slot.end = taken;
        if let Some(slot) = slots.get_mut(at) {
            (slot.begin, slot.next) = (block, number);
        }
        sorted &= before <= block;
        before = block;
    }
    if !sorted {
        order::sort_begins(slots.get_mut(group).unwrap_or_default());
    }
}

/// Returns the next block of a string, and how many bytes of its spelling have then been decoded.
/// `taken` is that number before the call.
///
/// A block is a number. From the top it holds up to seven bytes of the string, their count, and in
/// the lowest bit whether they end the string.
fn block(string: Text<'_>, escaped: bool, taken: u64) -> (u64, u64) {
    let raw = string.raw();
    let rest = usize::try_from(taken).ok().and_then(|taken| raw.get(taken..)).unwrap_or_default();
    let mut bytes = [0; 8];
    let (len, after) = if escaped { decoded(rest, &mut bytes) } else { plain(rest, &mut bytes) };
    let last = u64::from(after.is_empty());
    let block = u64::from_le_bytes(bytes) << 8 | to_u64(len) << 1 | last;
    (block, to_u64(raw.len().saturating_sub(after.len())))
}

fn is_last(block: u64) -> bool {
    block & 1 == 1
}

/// Fills a block with whole characters of a string without escapes. Returns the number of bytes and
/// the rest of the string.
fn plain<'a>(rest: &'a str, block: &mut [u8; 8]) -> (usize, &'a str) {
    let mut len = rest.len().min(BLOCK);
    while !rest.is_char_boundary(len) {
        len = len.saturating_sub(1);
    }
    let (taken, after) = rest.split_at_checked(len).unwrap_or_default();
    for (place, byte) in block.iter_mut().zip(taken.bytes()) {
        *place = byte;
    }
    (len, after)
}

/// Like [`plain`], but for a string with escapes.
fn decoded<'a>(rest: &'a str, block: &mut [u8; 8]) -> (usize, &'a str) {
    let mut chars = Text::of_spelling(rest).chars();
    let mut len: usize = 0;
    loop {
        let after = chars.rest();
        let Some(c) = chars.next() else { return (len, after) };
        let end = len.saturating_add(c.len_utf8());
        if end > BLOCK {
            return (len, after);
        }
        if let Some(place) = block.get_mut(len..end) {
            c.encode_utf8(place);
        }
        len = end;
    }
}

/// Returns the first two strings of a group, in slot order.
fn first_two(group: &[TensorSlot]) -> Clash {
    let (mut first, mut second) = (u32::MAX, u32::MAX);
    for slot in group {
        if slot.head < first {
            (first, second) = (slot.head, first);
        } else {
            second = second.min(slot.head);
        }
    }
    Clash(to_usize(first), to_usize(second))
}

/// Returns the clash whose second string comes first.
fn earlier(one: Option<Clash>, other: Clash) -> Clash {
    match one {
        Some(one) if one.1 < other.1 => one,
        _ => other,
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::prelude::v1::*;

    /// Returns a header that concatenates these spellings, and their slots.
    fn slots(spellings: &[String]) -> (String, Vec<TensorSlot>) {
        let (mut header, mut slots) = (String::new(), Vec::new());
        for spelling in spellings {
            slots.push(TensorSlot {
                name: to_u32(header.len()),
                name_len: to_u32(spelling.len()),
                escaped: spelling.contains('\\'),
                ..TensorSlot::EMPTY
            });
            header.push_str(spelling);
        }
        (header, slots)
    }

    /// Finds the first duplicate with a map of the decoded strings.
    fn naive(spellings: &[String]) -> Result<(), Clash> {
        let mut seen = HashMap::new();
        for (at, spelling) in spellings.iter().enumerate() {
            let decoded: String = Text::of_spelling(spelling).chars().collect();
            if let Some(first) = seen.insert(decoded.clone(), at) {
                return Err(Clash(first, at));
            }
        }
        Ok(())
    }

    #[test]
    fn agrees_with_a_hash_map() {
        // Few characters, so that strings share long prefixes. They have one to four bytes, plain
        // and escaped, and one piece fills a block.
        let pieces = [
            "a",
            "b",
            "\\u0061",
            "\\u0000",
            "é",
            "\\u00e9",
            "€",
            "\\u20ac",
            "😀",
            "\\ud83d\\ude00",
            "aaaaaaa",
            "\\n",
            "\\\\",
            "\\/",
            "/",
        ];
        let mut state: u64 = 1;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut repeated = 0;
        for round in 0..3_000 {
            let longest = 1 + round % 12;
            let spellings: Vec<String> = (0..1 + random(40))
                .map(|_| (0..random(longest + 1)).map(|_| pieces[random(pieces.len())]).collect())
                .collect();
            let (header, mut slots) = slots(&spellings);
            let found = distinct(&header, &mut slots);
            assert_eq!(found, naive(&spellings), "{spellings:?}");
            repeated += u32::from(found.is_err());
        }
        assert!((500..2_500).contains(&repeated), "{repeated}");
    }

    #[test]
    fn trailing_nul_makes_strings_distinct() {
        for strings in [["a", "a\\u0000"], ["aaaaaaa", "aaaaaaa\\u0000"], ["", "\\u0000"]] {
            let (header, mut slots) = slots(&strings.map(String::from));
            assert_eq!(distinct(&header, &mut slots), Ok(()), "{strings:?}");
        }
    }
}
