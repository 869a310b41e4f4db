//! The index of names: a hash table stored in the slots themselves.
//!
//! How it works: `n` slots are also `n` buckets. A name's hash selects a bucket. The `head` of slot
//! `b` is the first slot in the chain of bucket `b`, and `next` of each slot is the next one in its
//! chain. `tag` holds hash bits that do not select the bucket, so almost every other name is
//! rejected without reading the header.
//!
//! The hash is a fixed function, so a hostile header can give all its names the same hash. No chain
//! grows beyond [`MAX_CHAIN`]. If one would, the index becomes a sorted list instead: `head` of
//! slot `k` is then the slot with the `k`th name. The list is built in O(n log n) comparisons and
//! searched in O(log n). Building either index finds duplicate names.

use core::cmp::Ordering;

use crate::base::bare::BARE_METAL;
use crate::base::convert::{to_u32, to_u64, to_usize};
use crate::json::text::{decode_into, each_byte, Str, Text};
use crate::table::slot::{TensorSlot, NIL};
use crate::table::sort::{self, Sequence};

/// The maximum length of a chain. Beyond it the names are sorted instead. Among a million names
/// that do not collide on purpose, the longest chain has 10 links.
const MAX_CHAIN: u32 = 32;

/// The kind of index that the slots hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    Hashed,
    Sorted,
}

/// Two slots with equal names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clash(pub(crate) usize, pub(crate) usize);

impl Clash {
    /// Returns the two slots in header order.
    pub(crate) fn in_header_order(self, slots: &[TensorSlot]) -> (TensorSlot, TensorSlot) {
        let slot = |at| slots.get(at).copied().unwrap_or_default();
        let (a, b) = (slot(self.0), slot(self.1));
        if a.name <= b.name {
            (a, b)
        } else {
            (b, a)
        }
    }
}

/// Returns a slot's name.
#[inline]
pub(crate) fn name<'a>(header: &'a str, slot: &TensorSlot) -> Text<'a> {
    Text::in_header_at(header, slot.name, slot.name_len)
}

/// Hashes a name's decoded characters.
#[inline]
pub(crate) fn hash(name: Str<'_>) -> u32 {
    if name.escaped {
        hash_decoded(name.raw)
    } else {
        hash_bytes(name.raw)
    }
}

/// The state of a hash over blocks of 16 bytes. The halves of a block are XORed into the two
/// factors of a 128-bit product, and the halves of the product are XORed. Every input bit affects
/// every bit of the result. The constants are the digits of pi.
#[derive(Clone, Copy)]
struct State(u64);

impl State {
    const NEW: State = State(0x243f_6a88_85a3_08d3);

    #[inline]
    fn absorb(self, first: u64, second: u64) -> State {
        let a = self.0 ^ first;
        let b = second ^ 0x1319_8a2e_0370_7344;
        let product = u128::from(a).wrapping_mul(u128::from(b));
        let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0);
        let high = u64::try_from(product >> 64).unwrap_or(0);
        State(low ^ high)
    }

    #[inline]
    fn absorb_block(self, block: [u8; 16]) -> State {
        let block = u128::from_le_bytes(block);
        let first = u64::try_from(block & u128::from(u64::MAX)).unwrap_or(0);
        self.absorb(first, u64::try_from(block >> 64).unwrap_or(0))
    }

    #[inline]
    fn finish(self, len: usize) -> u32 {
        let State(mixed) = self.absorb(to_u64(len), 0xa409_3822_299f_31d0);
        u32::try_from(mixed >> 32).unwrap_or(0)
    }
}

/// Hashes bytes in blocks of 16. The last block is the last 16 bytes and can overlap the previous
/// block, so every block is read whole. Only strings shorter than a block are read in parts.
#[cfg_attr(not(target_os = "none"), inline)]
pub(crate) fn hash_bytes(bytes: &[u8]) -> u32 {
    let Some(last) = bytes.last_chunk::<16>() else {
        let (first, second) = bytes.split_at_checked(8).unwrap_or((bytes, &[]));
        return State::NEW.absorb(word(first), word(second)).finish(bytes.len());
    };
    let mut state = State::NEW;
    let mut rest = bytes;
    while let Some((block, after)) = rest.split_first_chunk::<16>() {
        if after.is_empty() {
            break;
        }
        state = state.absorb_block(*block);
        rest = after;
    }
    state.absorb_block(*last).finish(bytes.len())
}

/// Reads at most 8 bytes as a little-endian number.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let shift = |shorter: usize| to_u32(bytes.len().wrapping_sub(shorter) << 3) & 63;
    // Where two reads overlap, both set the same bits.
    if let Some(all) = bytes.first_chunk() {
        u64::from_le_bytes(*all)
    } else if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << shift(4)
    } else if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u16::from_le_bytes(*low)) | u64::from(u16::from_le_bytes(*high)) << shift(2)
    } else {
        bytes.first().map_or(0, |byte| u64::from(*byte))
    }
}

/// Returns the hash of a string with escapes. Equals [`hash_bytes`] of the decoded string.
#[cold]
#[inline(never)]
fn hash_decoded(spelling: &[u8]) -> u32 {
    if BARE_METAL {
        return hash_piecemeal(spelling);
    }
    hash_of_short(spelling).unwrap_or_else(|| hash_piecemeal(spelling))
}

/// Returns the hash of a string of at most 128 decoded bytes, or `None` if it is longer.
#[inline(never)]
fn hash_of_short(spelling: &[u8]) -> Option<u32> {
    let mut buffer = [0; 128];
    decode_into(spelling, &mut buffer).map(hash_bytes)
}

/// Returns the hash of a string of any length, byte by byte.
#[inline(never)]
fn hash_piecemeal(spelling: &[u8]) -> u32 {
    let mut state = State::NEW;
    // The last 16 bytes. New bytes are shifted in from the top.
    let mut last: u128 = 0;
    let mut len: usize = 0;
    each_byte(spelling, |byte| {
        if len & 15 == 0 && len > 0 {
            state = state.absorb_block(last.to_le_bytes());
        }
        last = last >> 8 | u128::from(byte) << 120;
        len = len.wrapping_add(1);
    });
    let missing = to_u32(16_usize.saturating_sub(len)) << 3;
    let last = last.checked_shr(missing).unwrap_or(0);
    state.absorb_block(last.to_le_bytes()).finish(len)
}

/// Returns the low bits of a hash, which a slot stores. The bucket depends on the high bits.
#[inline]
pub(crate) fn tag(hash: u32) -> u16 {
    u16::try_from(hash & 0xffff).unwrap_or(0)
}

/// Returns the bucket of a hash among `n`. Scales the hash from 2^32 to `n` without a division.
#[inline]
fn bucket(hash: u32, n: usize) -> usize {
    let n = u64::from(to_u32(n));
    usize::try_from(u64::from(hash).wrapping_mul(n) >> 32).unwrap_or(0)
}

/// Returns a name's bucket in a table of `n` names.
#[must_use]
pub fn bucket_of_name(name: &str, n: usize) -> usize {
    bucket(hash_bytes(name.as_bytes()), n)
}

/// Builds the index. On entry, `next` of each slot must be the hash of its name, `tag` the hash's
/// tag, and `head` [`NIL`].
pub(crate) fn build(header: &str, slots: &mut [TensorSlot]) -> Result<Index, Clash> {
    match by_hash(header, slots) {
        Some(distinct) => distinct.map(|()| Index::Hashed),
        None => sort(header, slots),
    }
}

/// Builds the hashed index. Returns `None` if a chain grows too long, with `head` and `next` then
/// unspecified.
#[inline]
pub(crate) fn by_hash(header: &str, slots: &mut [TensorSlot]) -> Option<Result<(), Clash>> {
    let n = slots.len();
    for i in 0..n {
        let Some(slot) = slots.get(i).copied() else { break };
        let bucket = bucket(slot.next, n);
        let first = slots.get(bucket).map_or(NIL, |slot| slot.head);
        let mut at = first;
        let mut links = 0;
        while let Some(other) = slots.get(to_usize(at)) {
            if other.tag == slot.tag && same_name(header, other, &slot) {
                return Some(Err(Clash(to_usize(at), i)));
            }
            links = u32::saturating_add(links, 1);
            if links == MAX_CHAIN {
                return None;
            }
            at = other.next;
        }
        if let Some(slot) = slots.get_mut(i) {
            slot.next = first;
        }
        if let Some(slot) = slots.get_mut(bucket) {
            slot.head = to_u32(i);
        }
    }
    Some(Ok(()))
}

#[inline]
fn same_name(header: &str, a: &TensorSlot, b: &TensorSlot) -> bool {
    if a.escaped || b.escaped {
        name(header, a) == name(header, b)
    } else {
        name(header, a).raw() == name(header, b).raw()
    }
}

/// Builds the sorted index: stores the order of the names in `head`.
#[cold]
#[inline(never)]
fn sort(header: &str, slots: &mut [TensorSlot]) -> Result<Index, Clash> {
    for (i, slot) in slots.iter_mut().enumerate() {
        slot.head = to_u32(i);
        // The sorted index has no chains, so `next` is free for the start of the name.
        slot.next = prefix(header, slot);
    }
    let mut order = Order { header, slots };
    sort::sort(&mut order);
    let slots = order.slots;
    for places in slots.windows(2) {
        let [before, here] = places else { break };
        let (before, here) = (to_usize(before.head), to_usize(here.head));
        if let (Some(a), Some(b)) = (slots.get(before), slots.get(here)) {
            if same_name(header, a, b) {
                return Err(Clash(before, here));
            }
        }
    }
    Ok(Index::Sorted)
}

/// The slot numbers in `head`, as a sequence to sort by name.
struct Order<'h, 's> {
    header: &'h str,
    slots: &'s mut [TensorSlot],
}

impl Sequence for Order<'_, '_> {
    /// The number of a slot.
    type Element = u32;

    fn len(&self) -> usize {
        self.slots.len()
    }

    fn get(&self, at: usize) -> Option<u32> {
        self.slots.get(at).map(|slot| slot.head)
    }

    fn set(&mut self, at: usize, element: u32) {
        if let Some(slot) = self.slots.get_mut(at) {
            slot.head = element;
        }
    }

    /// Compares names, and header positions if the names are equal.
    #[inline]
    fn less(&self, a: &u32, b: &u32) -> bool {
        let (Some(a), Some(b)) = (self.slots.get(to_usize(*a)), self.slots.get(to_usize(*b)))
        else {
            return false;
        };
        if a.next != b.next {
            return a.next < b.next;
        }
        let order = if a.escaped || b.escaped {
            name(self.header, a).chars().cmp(name(self.header, b).chars())
        } else {
            spelling(self.header, a).cmp(spelling(self.header, b))
        };
        order.then(a.name.cmp(&b.name)).is_lt()
    }
}

/// Returns the first four bytes of a decoded name as a number. Names with different numbers sort as
/// the numbers do.
fn prefix(header: &str, slot: &TensorSlot) -> u32 {
    if let (false, Some(bytes)) = (slot.escaped, spelling(header, slot).first_chunk()) {
        return u32::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 4];
    let mut places = bytes.iter_mut();
    for c in name(header, slot).chars().take(4) {
        for (byte, place) in c.encode_utf8(&mut [0; 4]).bytes().zip(&mut places) {
            *place = byte;
        }
    }
    u32::from_be_bytes(bytes)
}

/// Returns the bytes of a name as written in the header.
#[inline]
fn spelling<'a>(header: &'a str, slot: &TensorSlot) -> &'a [u8] {
    let begin = to_usize(slot.name);
    header.as_bytes().get(begin..begin.wrapping_add(to_usize(slot.name_len))).unwrap_or_default()
}

/// Returns the slot with the `k`th name of a sorted index.
fn nth(slots: &[TensorSlot], k: usize) -> Option<&TensorSlot> {
    slots.get(to_usize(slots.get(k)?.head))
}

/// Finds a slot by name.
#[cfg_attr(not(target_os = "none"), inline)]
pub(crate) fn find<'s>(
    header: &str,
    slots: &'s [TensorSlot],
    index: Index,
    wanted: &str,
) -> Option<&'s TensorSlot> {
    if index == Index::Sorted {
        return find_sorted(header, slots, wanted);
    }
    let hash = hash_bytes(wanted.as_bytes());
    let tag = tag(hash);
    let mut at = slots.get(bucket(hash, slots.len()))?.head;
    // Chains have at most MAX_CHAIN links and end with NIL, which is not the number of a slot.
    while let Some(slot) = slots.get(to_usize(at)) {
        if slot.tag == tag {
            let found = name(header, slot);
            let same = if slot.escaped { found == *wanted } else { found.raw() == wanted };
            if same {
                return Some(slot);
            }
        }
        at = slot.next;
    }
    None
}

#[cold]
fn find_sorted<'s>(header: &str, slots: &'s [TensorSlot], wanted: &str) -> Option<&'s TensorSlot> {
    // The slots themselves are in data order, so the search goes through `head`.
    let (mut low, mut high) = (0, slots.len());
    while low < high {
        let middle = usize::saturating_add(low, high) >> 1;
        let slot = nth(slots, middle)?;
        match name(header, slot).cmp_str(wanted) {
            Ordering::Equal => return Some(slot),
            Ordering::Less => low = middle.saturating_add(1),
            Ordering::Greater => high = middle,
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::format;
    use std::prelude::v1::*;

    /// Returns a header that concatenates these spellings, and their slots.
    fn slots(spellings: &[&str], hash: impl Fn(Str<'_>) -> u32) -> (String, Vec<TensorSlot>) {
        let header = spellings.concat();
        let mut start = 0;
        let slots = spellings.iter().map(|spelling| {
            let (name, name_len) = (start, to_u32(spelling.len()));
            start += name_len;
            let escaped = spelling.contains('\\');
            let hash = hash(Str { raw: spelling.as_bytes(), start: name, escaped });
            TensorSlot { name, name_len, next: hash, tag: tag(hash), escaped, ..TensorSlot::EMPTY }
        });
        let slots = slots.collect();
        (header, slots)
    }

    #[test]
    fn hashes_escaped_names_as_decoded() {
        let spell = |text: &str| -> String {
            text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
        };
        let text = "model.layers.é.😀.weight, and longer than two blocks of sixteen";
        for len in (0..text.len()).filter(|len| text.is_char_boundary(*len)) {
            let text = &text[..len];
            let spelled = spell(text);
            let hash = hash_bytes(text.as_bytes());
            assert_eq!(hash_decoded(spelled.as_bytes()), hash, "{text:?}");
            assert_eq!(hash_piecemeal(spelled.as_bytes()), hash, "{text:?}");
            assert_eq!(hash_decoded(text.as_bytes()), hash, "{text:?}");
            let mixed = format!("{text}{spelled}{text}");
            let twice = hash_bytes(text.repeat(3).as_bytes());
            assert_eq!(hash_decoded(mixed.as_bytes()), twice, "{mixed:?}");
            assert_eq!(hash_piecemeal(mixed.as_bytes()), twice, "{mixed:?}");
        }
    }

    #[test]
    fn sorts_names_by_decoded_characters() {
        let spellings = [
            "",
            "a",
            "a\\u0000",
            "ab",
            "abcd",
            "abcda",
            "abcdé",
            "abcdè",
            "abcd\\u00e9x",
            "abcdf",
            "abcd\\ud7ff",
            "abcd\\ud7fe",
            "abcd\\ud83d\\ude00",
            "abcd\\ud83d\\ude01",
            "abcd😂",
            "abcd\\n",
            "abcd\\t",
            "abcd\\nx",
            "abcd\\u000ay",
            "abc\\u0065",
            "é",
            "\\u00e8",
            "éé\\u0061",
            "éè\\u0061",
            "ééé",
            "\\\\u0041",
            "abcd\\\\",
            "abcd\\/",
            "abcd\\u005c\\u005c",
            "\u{ffff}",
            "\\ud83d\\ude00",
        ];
        let (header, mut filled) = slots(&spellings, hash);
        assert_eq!(sort(&header, &mut filled), Ok(Index::Sorted));
        let sorted: Vec<String> = (0..filled.len())
            .map(|k| name(&header, nth(&filled, k).unwrap()).to_string())
            .collect();
        let mut expected = sorted.clone();
        expected.sort();
        assert_eq!(sorted, expected);
        for (one, other) in [("abcd\\u0061", "abcda"), ("abcd\\n", "abcd\\u000A"), ("\\/", "/")] {
            let (header, mut filled) = slots(&["b", one, "a", other], hash);
            assert_eq!(sort(&header, &mut filled), Err(Clash(1, 3)), "{one} {other}");
        }
    }

    #[test]
    fn similar_names_do_not_collide() {
        let mut seen = std::collections::HashSet::new();
        let mut buckets = std::vec![0; 30_000];
        for layer in 0..5_000 {
            for part in ["q_proj", "k_proj", "v_proj", "up_proj", "gate_proj", "norm"] {
                let hash = hash_bytes(format!("model.layers.{layer}.{part}.weight").as_bytes());
                seen.insert(hash);
                buckets[bucket(hash, 30_000)] += 1;
            }
        }
        // Among 30,000 random 32-bit numbers, 0.1 pairs are expected to be equal.
        assert!(seen.len() >= 29_998, "{}", seen.len());
        assert!(*buckets.iter().max().unwrap() < 12);
    }

    #[test]
    fn both_indexes_find_exactly_the_names() {
        let names: Vec<String> = (0..500).map(|i| format!("{}{i}", "w.".repeat(i % 9))).collect();
        let mut spellings: Vec<&str> = names.iter().map(String::as_str).collect();
        spellings.push(r"\u0061\u0062");
        for (hash, expected) in
            [(hash as fn(Str<'_>) -> u32, Index::Hashed), (|_| hash_bytes(b"w.7"), Index::Sorted)]
        {
            let (header, mut slots) = slots(&spellings, hash);
            assert_eq!(build(&header, &mut slots), Ok(expected));
            for (i, wanted) in names.iter().enumerate() {
                let found = find(&header, &slots, expected, wanted);
                assert_eq!(found.map(|slot| slot.name), Some(slots[i].name), "{wanted}");
            }
            assert!(find(&header, &slots, expected, "w.").is_none());
            assert!(find(&header, &slots, expected, "").is_none());
            assert_eq!(find(&header, &slots, expected, "ab").map(|slot| slot.escaped), Some(true));
        }
    }

    #[test]
    fn both_indexes_report_equal_names() {
        let names: Vec<String> = (0..200).map(|i| format!("name {i}")).collect();
        let mut spellings: Vec<&str> = names.iter().map(String::as_str).collect();
        spellings.push(r"n\u0061me 77");
        for hash in [hash as fn(Str<'_>) -> u32, |_| 7] {
            let (header, mut slots) = slots(&spellings, hash);
            let Clash(a, b) = build(&header, &mut slots).unwrap_err();
            assert_eq!((a.min(b), a.max(b)), (77, 200));
        }
    }
}
