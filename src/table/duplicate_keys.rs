//! Whether strings are distinct, in the worst case: keys of metadata that were made to collide.
//!
//! How it works: strings are told apart block by block, seven bytes at a time. Those that begin with
//! the same blocks are a group, which stands together; its next blocks are taken and sorted, and groups
//! of one are done. So each byte is decoded once, however much the strings have in common, and what is
//! sorted are numbers. Two strings of which all blocks are equal are one string.
//!
//! The slots are used as three tables. By position, in the order so far: `begin` is the block, `next`
//! the number of the group, `head` which string it is. By string: `name`, and in `end` how much of its
//! spelling was taken.

use core::ops::Range;

use crate::base::convert::{to_u32, to_u64, to_usize};
use crate::json::text::Text;
use crate::table::name_index::{self, Clash};
use crate::table::order;
use crate::table::slot::TensorSlot;

/// Bytes of a block, at most: whole characters.
const BLOCK: usize = 7;

/// Checks that no two of the slots' names are one. Of those that are, tells the two of which the second
/// comes first.
///
/// Takes at most n log n steps, and one for each byte. `begin`, `end`, `head` and `next` of the slots
/// are then unspecified.
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

/// Takes the next block of the strings of a group, and puts the group in the order of these.
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

/// The block of a string after what was taken of its spelling: up to seven bytes, how many, and in the
/// lowest bit whether they are the last. And how much of the spelling is taken then.
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

/// As many whole characters as a block holds.
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

/// As [`plain`], of a spelling with escapes.
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

/// The first two strings of a group, in the order of the slots.
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

/// Which of two clashes comes first: the one whose second string does.
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

    /// A header of these spellings, one after another, and their slots.
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

    /// The first string that was there before, by a map of the decoded strings.
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
    fn agrees_with_a_map() {
        // Few characters, so that much is in common: of one to four bytes, plain and escaped, and one
        // that fills blocks unevenly.
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
    fn strings_that_end_are_not_those_that_go_on_with_nul() {
        for strings in [["a", "a\\u0000"], ["aaaaaaa", "aaaaaaa\\u0000"], ["", "\\u0000"]] {
            let (header, mut slots) = slots(&strings.map(String::from));
            assert_eq!(distinct(&header, &mut slots), Ok(()), "{strings:?}");
        }
    }
}
