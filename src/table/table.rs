//! The table of a file's tensors. Fills slots in one walk over the header, checks them against each
//! other, and finds them by name.

use core::fmt;

use crate::base::bare::BARE_METAL;
use crate::base::convert::{to_u32, to_u64, to_usize};
use crate::base::error::{Error, ErrorKind, NameSpan, FRAME_BYTES};
use crate::header::entry::Entry;
use crate::header::frame::{Header, Parts};
use crate::header::metadata::{Metadata, Place};
use crate::header::walk::{Item, Walk};
use crate::json::text::Text;
use crate::table::duplicate_keys;
use crate::table::info::TensorInfo;
use crate::table::name_index::{self, Clash, Index};
use crate::table::order;
use crate::table::slot::{TensorSlot, NIL};

/// The validated tensors of a header.
///
/// The size of each tensor matches its dtype and shape. Together they cover the whole data region
/// without holes or overlaps. All names are distinct.
///
/// A table needs only the header, not the data. [`Header::new`] accepts a header that was fetched
/// by itself. `'a` is the lifetime of the header's text, `'s` that of the slots.
#[derive(Clone)]
pub struct Table<'a, 's> {
    header: &'a str,
    slots: Slots<'s>,
    facts: Facts,
}

/// The results of parsing a header, apart from its text and its slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    metadata: Option<Place>,
    index: Index,
    data_len: u64,
    /// [`Limits::dequant_elements`](crate::Limits::dequant_elements).
    pub(crate) dequant_elements: u64,
}

/// Slots in data order, borrowed or owned.
#[derive(Clone)]
enum Slots<'s> {
    Borrowed(&'s [TensorSlot]),
    #[cfg(feature = "alloc")]
    Owned(alloc::vec::Vec<TensorSlot>),
}

impl Slots<'_> {
    #[inline]
    fn get(&self) -> &[TensorSlot] {
        match self {
            Slots::Borrowed(slots) => slots,
            #[cfg(feature = "alloc")]
            Slots::Owned(slots) => slots,
        }
    }
}

impl<'a, 's> Table<'a, 's> {
    /// Parses and checks the whole header, and fills the first slots with its tensors.
    ///
    /// Needs one slot per tensor or per key in `__metadata__`, whichever are more: the slots are
    /// also used to compare the keys. [`Header::count`] returns the number.
    ///
    /// Takes time linear in the header if the tensors are listed in data order and their names do
    /// not collide on purpose, otherwise O(n log n). Uses no memory except the slots.
    ///
    /// # Errors
    /// Returns an error if the header is invalid, or [`ErrorKind::TooFewSlots`]. The contents of
    /// the slots are then unspecified.
    pub fn parse(header: &Header<'a>, slots: &'s mut [TensorSlot]) -> Result<Table<'a, 's>, Error> {
        Table::of_parts(header.parts(), slots)
    }

    #[inline]
    pub(crate) fn of_parts(
        header: Parts<'_, 'a>,
        slots: &'s mut [TensorSlot],
    ) -> Result<Table<'a, 's>, Error> {
        let (len, facts) = fill(header, slots)?;
        let slots = Slots::Borrowed(slots.get(..len).unwrap_or_default());
        Ok(Table { header: header.text, slots, facts })
    }

    /// Combines a header's text with the slots and facts that were parsed from it.
    #[cfg(feature = "alloc")]
    pub(crate) fn of_filled(header: &'a str, slots: &'s [TensorSlot], facts: Facts) -> Self {
        Table { header, slots: Slots::Borrowed(slots), facts }
    }

    /// Returns the description of the tensor with this name. The header can spell the name with
    /// escapes.
    ///
    /// Takes time linear in the length of the name, multiplied by log n if the header's names
    /// collide on purpose.
    ///
    /// # Errors
    /// [`ErrorKind::TensorNotFound`].
    #[inline]
    pub fn info(&self, name: &str) -> Result<TensorInfo<'a>, Error> {
        match name_index::find(self.header, self.slots.get(), self.facts.index, name) {
            Some(slot) => Ok(TensorInfo::of_slot(self.header, slot)),
            None => Err(Error::new(ErrorKind::TensorNotFound)),
        }
    }

    /// Returns the description of the tensor with this name, or `None` if there is none. See
    /// [`Table::info`], whose error says so instead.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<TensorInfo<'a>> {
        self.info(name).ok()
    }

    /// Checks whether a tensor has this name. For the cost see [`Table::info`].
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.info(name).is_ok()
    }

    /// Returns an iterator over the tensors in data order. Tensors without bytes come before the
    /// tensor that begins at the same offset.
    #[must_use]
    pub fn iter(&self) -> TableIter<'a, '_> {
        TableIter { header: self.header, slots: self.slots.get().iter() }
    }

    /// Returns the `at`th tensor in data order, counted from 0.
    #[must_use]
    pub fn nth(&self, at: usize) -> Option<TensorInfo<'a>> {
        Some(TensorInfo::of_slot(self.header, self.slots.get().get(at)?))
    }

    /// Returns the position, as for [`Table::nth`], of the tensor that contains this byte of the
    /// data region: the first whose data ends after it. Takes O(log n) steps.
    #[cfg(feature = "std")]
    pub(crate) fn place_of(&self, byte: u64) -> usize {
        self.slots.get().partition_point(|slot| slot.end <= byte)
    }

    /// Returns an iterator over the names in data order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = Text<'a>> + '_ {
        self.iter().map(|info| info.name)
    }

    /// Returns the number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.get().len()
    }

    /// Returns `true` if there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.get().is_empty()
    }

    /// Returns the file's metadata, or `None` if it is absent or null.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        self.facts.metadata.map(|place| Metadata::at(self.header, place))
    }

    /// Returns the header's text, including its padding.
    #[must_use]
    pub fn header(&self) -> &'a str {
        self.header
    }

    /// Returns the offset of the data region in the file.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        FRAME_BYTES.saturating_add(to_u64(self.header.len()))
    }

    /// Returns the size of the data region in bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.facts.data_len
    }

    /// Returns the alignment of the data in the file. Takes time linear in the number of tensors.
    #[must_use]
    pub fn alignment(&self) -> Alignment {
        let data_start = self.data_start();
        let is_misaligned = |info: TensorInfo<'_>| {
            let begin = data_start.saturating_add(info.data_offsets.0);
            let align = to_u64(info.dtype.bitsize() >> 3).max(1);
            begin & align.wrapping_sub(1) != 0
        };
        Alignment {
            data_start: 1 << data_start.trailing_zeros().min(63),
            misaligned_tensors: self.iter().fold(0, |count, info| {
                usize::saturating_add(count, usize::from(is_misaligned(info)))
            }),
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }
}

#[cfg(feature = "alloc")]
impl<'a> Table<'a, 'static> {
    /// Like [`Table::parse`], but allocates the slots.
    ///
    /// Allocates 40 bytes per tensor. While parsing, allocates up to 40 bytes for every 49 bytes of
    /// the header, because no entry is shorter. Only a header with more `__metadata__` keys than
    /// that needs more.
    ///
    /// # Errors
    /// Returns an error if the header is invalid.
    pub fn parse_owned(header: &Header<'a>) -> Result<Table<'a, 'static>, Error> {
        let header = header.parts();
        let (slots, facts) = fill_owned(header)?;
        Ok(Table { header: header.text, slots: Slots::Owned(slots), facts })
    }
}

/// Like [`fill`], but allocates the slots.
#[cfg(feature = "alloc")]
pub(crate) fn fill_owned(
    header: Parts<'_, '_>,
) -> Result<(alloc::vec::Vec<TensorSlot>, Facts), Error> {
    // The shortest entry is `"":{"dtype":"F4","shape":[],"data_offsets":[0,0]}` and a comma.
    let mut guess = header.text.len().div_ceil(49);
    loop {
        let mut slots = alloc::vec![TensorSlot::EMPTY; guess];
        match fill(header, &mut slots) {
            Ok((len, facts)) => {
                slots.truncate(len);
                slots.shrink_to_fit();
                return Ok((slots, facts));
            }
            Err(error) => match error.kind() {
                ErrorKind::TooFewSlots { needed, .. } if needed > to_u64(guess) => {
                    guess = usize::try_from(needed).unwrap_or(usize::MAX);
                }
                _ => return Err(error),
            },
        }
    }
}

impl fmt::Debug for Table<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("tensors", &self.len())
            .field("metadata", &self.metadata())
            .field("data_len", &self.data_len())
            .finish()
    }
}

impl<'a, 't> IntoIterator for &'t Table<'a, '_> {
    type Item = TensorInfo<'a>;
    type IntoIter = TableIter<'a, 't>;

    fn into_iter(self) -> TableIter<'a, 't> {
        self.iter()
    }
}

/// An iterator over the tensors of a [`Table`], in data order.
#[derive(Debug, Clone)]
pub struct TableIter<'a, 't> {
    header: &'a str,
    slots: core::slice::Iter<'t, TensorSlot>,
}

impl<'a> Iterator for TableIter<'a, '_> {
    type Item = TensorInfo<'a>;

    #[inline]
    fn next(&mut self) -> Option<TensorInfo<'a>> {
        Some(TensorInfo::of_slot(self.header, self.slots.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl DoubleEndedIterator for TableIter<'_, '_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(TensorInfo::of_slot(self.header, self.slots.next_back()?))
    }
}

impl ExactSizeIterator for TableIter<'_, '_> {}

/// The alignment of the data in a file.
///
/// The format does not require any. Tensors that are aligned in the file can be viewed in place
/// when the file is mapped, or loaded at an aligned address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alignment {
    /// The largest power of two that divides the offset of the data region.
    pub data_start: u64,
    /// The number of tensors whose offset in the file is not a multiple of their element size.
    pub misaligned_tensors: usize,
}

/// The number of tensors and metadata keys in a header, and of the slots it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// The number of tensors.
    pub tensors: usize,
    /// The number of keys in `__metadata__`.
    pub metadata_entries: usize,
}

impl Count {
    /// Returns the number of slots that [`Table::parse`] needs: the larger of the two counts.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.tensors.max(self.metadata_entries)
    }
}

impl Header<'_> {
    /// Counts the tensors and metadata keys. Checks each entry on its own, as [`Table::parse`]
    /// does, but not against the others.
    ///
    /// Takes time linear in the header and constant memory.
    ///
    /// # Errors
    /// Returns an error if the header's text or an entry is invalid.
    pub fn count(&self) -> Result<Count, Error> {
        let mut count = Count { tensors: 0, metadata_entries: 0 };
        let mut walk = Walk::new(self.parts());
        while let Some(item) = walk.next()? {
            match item {
                Item::Tensor(_) => count.tensors = count.tensors.saturating_add(1),
                Item::Metadata(metadata) => {
                    count.metadata_entries = metadata.map_or(0, |metadata| metadata.len());
                }
            }
        }
        Ok(count)
    }
}

/// Parses and checks a header. Returns the number of slots filled.
#[inline]
fn fill(header: Parts<'_, '_>, slots: &mut [TensorSlot]) -> Result<(usize, Facts), Error> {
    let mut keys_known = false;
    let Walked { tensors, metadata, in_order, .. } = loop {
        let walked = walk(header, slots)?;
        let keys = walked.metadata.map_or(0, |metadata| metadata.len());
        let needed = walked.tensors.max(keys);
        if needed > slots.len() {
            return Err(too_few_slots(needed, slots.len()));
        }
        if let Some(clash) = walked.clash {
            return Err(clash);
        }
        match walked.metadata {
            Some(metadata) if !walked.keys_checked && !keys_known => {
                // Too few slots were free when the metadata came. All slots are used to check the
                // keys now, and the next walk fills them with tensors again.
                check_distinct_keys(metadata, slots)?;
                keys_known = true;
            }
            _ => break walked,
        }
    };
    let filled = slots.get_mut(..tensors).unwrap_or_default();
    if !in_order {
        order::by_offset(filled);
    }
    // Before the chain: a duplicate name explains an overlap better.
    let index = match name_index::build(header.text, filled) {
        Ok(index) => index,
        Err(clash) => return Err(duplicate_name(filled, clash)),
    };
    check_chain(header, filled)?;
    let facts = Facts {
        metadata: metadata.map(|metadata| metadata.place()),
        index,
        data_len: header.data_len,
        dequant_elements: header.limits.dequant_elements,
    };
    Ok((tensors, facts))
}

#[cold]
fn too_few_slots(needed: usize, given: usize) -> Error {
    let (needed, given) = (to_u64(needed), to_u64(given));
    Error::new(ErrorKind::TooFewSlots { needed, given })
}

#[cold]
fn duplicate_name(slots: &[TensorSlot], clash: Clash) -> Error {
    let (first, second) = clash.in_header_order(slots);
    let span = NameSpan { start: second.name, len: second.name_len };
    let first = FRAME_BYTES.saturating_add(u64::from(first.name));
    Error::at(ErrorKind::DuplicateName { first }, to_usize(second.name)).of(span)
}

/// The results of one walk over a header.
struct Walked<'a> {
    tensors: usize,
    metadata: Option<Metadata<'a>>,
    /// Whether the tensors were listed in data order.
    in_order: bool,
    /// Whether enough slots were free to check that the metadata keys are distinct.
    keys_checked: bool,
    /// The error for a duplicate metadata key. Errors in entries are reported before it, so that
    /// the reported error does not depend on the number of slots.
    clash: Option<Error>,
}

/// Walks over the header once. Fills slots until they run out, but counts all tensors.
#[inline(always)]
fn walk<'a>(header: Parts<'_, 'a>, slots: &mut [TensorSlot]) -> Result<Walked<'a>, Error> {
    let mut walked =
        Walked { tensors: 0, metadata: None, in_order: true, keys_checked: true, clash: None };
    let mut previous = (0, 0);
    let mut walk = Walk::new(header);
    loop {
        let entry = match walk.next_fast() {
            Some(entry) => entry,
            None if walk.has_ended() => return Ok(walked),
            None => match walk.next_by_token()? {
                Some(Item::Tensor(entry)) => entry,
                Some(Item::Metadata(metadata)) => {
                    walked.record_metadata(metadata, slots);
                    continue;
                }
                None => return Ok(walked),
            },
        };
        walked.in_order &= previous <= (entry.begin, entry.end);
        previous = (entry.begin, entry.end);
        if let Some(slot) = slots.get_mut(walked.tensors) {
            *slot = slot_of(&entry);
        }
        walked.tensors = walked.tensors.saturating_add(1);
    }
}

impl<'a> Walked<'a> {
    /// Stores the metadata, and checks its keys if enough slots are free for that.
    #[inline(never)]
    fn record_metadata(&mut self, metadata: Option<Metadata<'a>>, slots: &mut [TensorSlot]) {
        self.metadata = metadata;
        let Some(metadata) = metadata else { return };
        let free = slots.get_mut(self.tensors..).unwrap_or_default();
        self.keys_checked = free.len() >= metadata.len();
        if self.keys_checked {
            self.clash = check_distinct_keys(metadata, free).err();
        }
    }
}

#[inline]
fn slot_of(entry: &Entry<'_>) -> TensorSlot {
    let hash = name_index::hash(entry.name);
    TensorSlot {
        begin: entry.begin,
        end: entry.end,
        name: entry.name.start,
        name_len: to_u32(entry.name.raw.len()),
        shape: entry.shape,
        head: NIL,
        next: hash,
        tag: name_index::tag(hash),
        dtype: entry.dtype,
        escaped: entry.name.escaped,
    }
}

/// Checks that the metadata keys are distinct. `scratch` must have at least one slot per key.
fn check_distinct_keys(metadata: Metadata<'_>, scratch: &mut [TensorSlot]) -> Result<(), Error> {
    let scratch = scratch.get_mut(..metadata.len()).unwrap_or_default();
    if scratch.len() < 2 {
        return Ok(());
    }
    for (slot, key) in scratch.iter_mut().zip(metadata.keys()) {
        let hash = name_index::hash(key);
        *slot = TensorSlot {
            name: key.start,
            name_len: to_u32(key.raw.len()),
            next: hash,
            tag: name_index::tag(hash),
            escaped: key.escaped,
            ..TensorSlot::EMPTY
        };
    }
    let header = metadata.header();
    let distinct = if BARE_METAL {
        name_index::build(header, scratch).map(drop)
    } else {
        name_index::by_hash(header, scratch)
            .unwrap_or_else(|| duplicate_keys::distinct(header, scratch))
    };
    match distinct {
        Ok(()) => Ok(()),
        Err(clash) => {
            let (first, second) = clash.in_header_order(scratch);
            let first = FRAME_BYTES.saturating_add(u64::from(first.name));
            Err(Error::at(ErrorKind::DuplicateMetadataKey { first }, to_usize(second.name)))
        }
    }
}

/// Checks that slots in data order cover the whole data region, each byte once.
#[inline]
fn check_chain(header: Parts<'_, '_>, slots: &[TensorSlot]) -> Result<(), Error> {
    let mut end = 0;
    for slot in slots {
        if slot.begin != end {
            return Err(broken_chain(header, slot, end));
        }
        end = slot.end;
    }
    let (needed, available) = (end, header.data_len);
    if needed == available {
        return Ok(());
    }
    let (kind, position) = if needed > available {
        (ErrorKind::DataTruncated { needed, available }, available)
    } else {
        (ErrorKind::DataTrailing { needed, available }, needed)
    };
    Err(Error::at_byte(kind, header.data_start().saturating_add(position)))
}

/// Returns the error for a tensor that does not begin where the previous one ends. Its position is
/// that of the tensor's `data_offsets`.
#[cold]
fn broken_chain(header: Parts<'_, '_>, slot: &TensorSlot, previous_end: u64) -> Error {
    let begin = slot.begin;
    let kind = if begin > previous_end {
        ErrorKind::Hole { begin: previous_end, end: begin }
    } else {
        ErrorKind::Overlap { begin, previous_end }
    };
    // Slots do not store the position of `data_offsets`, so the header is walked again.
    let mut walk = Walk::new(header);
    let mut position = slot.name;
    while let Ok(Some(item)) = walk.next() {
        if let Item::Tensor(entry) = item {
            if entry.name.start == slot.name {
                position = entry.offsets;
                break;
            }
        }
    }
    let span = NameSpan { start: slot.name, len: slot.name_len };
    Error::at(kind, to_usize(position)).of(span)
}
