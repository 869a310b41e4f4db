//! The index by which a name is found: a hash table that lives in the slots themselves.
//!
//! How it works: `n` slots are also `n` buckets. A name's hash picks a bucket; the bucket's slot
//! says in `head` which slot is the first of its chain, and each slot says in `next` which one
//! follows. `tag` holds hash bits that the bucket does not use, so that a foreign name is nearly
//! always told apart without looking at the header.
//!
//! The hash is a fixed function, so a hostile header can give all its names one hash. No chain grows
//! beyond [`MAX_CHAIN`]: on the first that would, the index becomes a sorted list instead (`head` of
//! slot `k` is then the slot whose name is the `k`th), built in n log n comparisons and searched in
//! log n. Either way, two equal names meet while the index is built.

use core::cmp::Ordering;

use crate::base::bare::BARE_METAL;
use crate::base::convert::{to_u32, to_u64, to_usize};
use crate::json::text::{decode_into, each_byte, Str, Text};
use crate::table::slot::{TensorSlot, NIL};
use crate::table::sort::{self, Sequence};

/// Links in a chain before the names are sorted instead. Among names that do not collide on purpose
/// the longest chain of a million has 10 links.
const MAX_CHAIN: u32 = 32;

/// Which of the two indexes the slots hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    Hashed,
    Sorted,
}

/// Two slots whose names are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clash(pub(crate) usize, pub(crate) usize);

impl Clash {
    /// The two slots, the one that comes first in the header first.
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

/// The name of a slot.
#[inline]
pub(crate) fn name<'a>(header: &'a str, slot: &TensorSlot) -> Text<'a> {
    Text::in_header_at(header, slot.name, slot.name_len)
}

/// The hash of a name, of its decoded characters.
#[inline]
pub(crate) fn hash(name: Str<'_>) -> u32 {
    if name.escaped {
        hash_decoded(name.raw)
    } else {
        hash_bytes(name.raw)
    }
}

/// Hashes 16 bytes at a time: each half is added to one factor of a product, whose halves are added
/// up. Every bit of the bytes reaches every bit of the result. The constants are the digits of pi.
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

/// Hashes blocks of 16 bytes. The last block is the last 16 bytes, which may overlap the one before
/// it, so that no block is read in parts; only strings shorter than a block are.
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

/// At most 8 bytes as a little-endian number.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let shift = |shorter: usize| to_u32(bytes.len().wrapping_sub(shorter) << 3) & 63;
    // Two reads that overlap put the same bits in the same places.
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

/// The same hash, of a string that is spelled with escapes.
#[cold]
#[inline(never)]
fn hash_decoded(spelling: &[u8]) -> u32 {
    if BARE_METAL {
        return hash_piecemeal(spelling);
    }
    hash_of_short(spelling).unwrap_or_else(|| hash_piecemeal(spelling))
}

/// The same hash, of a string of at most 128 bytes.
#[inline(never)]
fn hash_of_short(spelling: &[u8]) -> Option<u32> {
    let mut buffer = [0; 128];
    decode_into(spelling, &mut buffer).map(hash_bytes)
}

/// The same hash, byte by byte, of a string of any length.
#[inline(never)]
fn hash_piecemeal(spelling: &[u8]) -> u32 {
    let mut state = State::NEW;
    // The last 16 bytes, which come in from above.
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

/// The bits of a hash that a slot keeps. The bucket comes from the other end of it.
#[inline]
pub(crate) fn tag(hash: u32) -> u16 {
    u16::try_from(hash & 0xffff).unwrap_or(0)
}

/// The bucket of a hash among `n`: its share of 2^32, so no division.
#[inline]
fn bucket(hash: u32, n: usize) -> usize {
    let n = u64::from(to_u32(n));
    usize::try_from(u64::from(hash).wrapping_mul(n) >> 32).unwrap_or(0)
}

/// The bucket that a name falls into, in a table of `n` names.
#[must_use]
pub fn bucket_of_name(name: &str, n: usize) -> usize {
    bucket(hash_bytes(name.as_bytes()), n)
}

/// Builds the index over slots whose `next` holds the hash of their name, `tag` its tag, and whose
/// `head` is [`NIL`].
pub(crate) fn build(header: &str, slots: &mut [TensorSlot]) -> Result<Index, Clash> {
    match by_hash(header, slots) {
        Some(distinct) => distinct.map(|()| Index::Hashed),
        None => sort(header, slots),
    }
}

/// Builds the index by hashes alone. `None` if too many names have one hash; `head` and `next` are then
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

/// Makes `head` the slots' order by name.
#[cold]
#[inline(never)]
fn sort(header: &str, slots: &mut [TensorSlot]) -> Result<Index, Clash> {
    for (i, slot) in slots.iter_mut().enumerate() {
        slot.head = to_u32(i);
        // There are no chains any more.
        slot.next = beginning(header, slot);
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

/// The order that `head` gives the slots, to be sorted.
struct Order<'h, 's> {
    header: &'h str,
    slots: &'s mut [TensorSlot],
}

impl Sequence for Order<'_, '_> {
    /// Which slot it is.
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

    /// The order of the names; between equal ones the header's.
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

/// The first four bytes of a name, as a number: names that have other numbers are in their order.
fn beginning(header: &str, slot: &TensorSlot) -> u32 {
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

/// The bytes of a name as it is spelled.
#[inline]
fn spelling<'a>(header: &'a str, slot: &TensorSlot) -> &'a [u8] {
    let begin = to_usize(slot.name);
    header.as_bytes().get(begin..begin.wrapping_add(to_usize(slot.name_len))).unwrap_or_default()
}

/// The slot whose name is the `k`th of a sorted index.
fn nth(slots: &[TensorSlot], k: usize) -> Option<&TensorSlot> {
    slots.get(to_usize(slots.get(k)?.head))
}

/// Finds the slot of a name.
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
    // Chains are at most MAX_CHAIN links long and end with NIL, which is no slot.
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
    // The slots themselves are in another order: the search is over their places.
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

    /// The header that holds these spellings one after another, and slots for them.
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
    fn escaped_names_hash_as_they_read() {
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
    fn sorted_names_are_in_their_order() {
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
    fn names_that_differ_little_do_not_collide() {
        let mut seen = std::collections::HashSet::new();
        let mut buckets = std::vec![0; 30_000];
        for layer in 0..5_000 {
            for part in ["q_proj", "k_proj", "v_proj", "up_proj", "gate_proj", "norm"] {
                let hash = hash_bytes(format!("model.layers.{layer}.{part}.weight").as_bytes());
                seen.insert(hash);
                buckets[bucket(hash, 30_000)] += 1;
            }
        }
        // Of 30,000 random numbers of 32 bits, 0.1 pairs are equal.
        assert!(seen.len() >= 29_998, "{}", seen.len());
        assert!(*buckets.iter().max().unwrap() < 12);
    }

    #[test]
    fn both_indexes_find_every_name_and_only_these() {
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
    fn equal_names_clash_in_both_indexes() {
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
