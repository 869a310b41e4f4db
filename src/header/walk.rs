//! The walk over a header's entries. Each entry is checked on its own.
//!
//! This is the only reader of the header's grammar. Its users (the table, the scan, the count) add
//! the checks between entries that they have the memory for.

use crate::base::bare::BARE_METAL;
use crate::base::convert::{to_u32, to_usize};
use crate::base::dtype::{ByteLenError, Dtype};
use crate::base::error::{Error, ErrorKind, Expected, Field, Key, StringKind};
use crate::base::limits::Limits;
use crate::header::entry::Entry;
use crate::header::fast;
use crate::header::frame::Parts;
use crate::header::metadata::Metadata;
use crate::header::shape::Product;
use crate::json::text::{Str, Text};
use crate::json::tokenizer::{Cursor, SkipLimits};

/// One member of the header's object.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    Tensor(Entry<'a>),
    /// `__metadata__`, or `None` if it is null.
    Metadata(Option<Metadata<'a>>),
}

/// A walk over the members of a header's object, in order.
#[derive(Debug, Clone)]
pub(crate) struct Walk<'l, 'a> {
    json: Cursor<'a>,
    text: &'a str,
    limits: &'l Limits,
    state: State,
    tensors: u32,
    seen_metadata: bool,
    /// Whether the last member read by token had white space after its name. Selects the version of
    /// the fast path.
    spaced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the object.
    Start,
    /// After a member.
    Member,
    /// After the object, or after an error.
    End,
}

impl<'l, 'a> Walk<'l, 'a> {
    #[inline]
    pub(crate) fn new(header: Parts<'l, 'a>) -> Self {
        Walk {
            json: Cursor::new(header.text),
            text: header.text,
            limits: header.limits,
            state: State::Start,
            tensors: 0,
            seen_metadata: false,
            spaced: false,
        }
    }

    /// Returns the position in the text after the last member.
    #[cfg(feature = "std")]
    pub(crate) fn at(&self) -> usize {
        self.json.at()
    }

    /// Returns the next member, or `None` if the object has ended and only padding follows. After
    /// an error, returns `None`.
    #[inline(never)]
    pub(crate) fn next(&mut self) -> Result<Option<Item<'a>>, Error> {
        if let Some(entry) = self.next_fast() {
            return Ok(Some(Item::Tensor(entry)));
        }
        self.next_by_token()
    }

    /// Returns the next member if it is a tensor with an entry in the usual spelling.
    ///
    /// Inlined into the loop of the one caller that needs the speed.
    #[inline(always)]
    pub(crate) fn next_fast(&mut self) -> Option<Entry<'a>> {
        // Takes 20 KB of code wherever it is inlined.
        if BARE_METAL {
            return None;
        }
        let before = match self.state {
            State::Start => b'{',
            State::Member => b',',
            State::End => return None,
        };
        let limits = self.limits;
        if self.tensors == limits.tensors {
            return None;
        }
        let (entry, json) = if self.spaced {
            fast::member::<true>(self.json.clone(), before, limits)?
        } else {
            fast::member::<false>(self.json.clone(), before, limits)?
        };
        self.json = json;
        self.state = State::Member;
        self.tensors = self.tensors.wrapping_add(1);
        Some(entry)
    }

    /// Returns `true` if the object ends here, followed only by spaces. The walk is then at its
    /// end.
    #[inline]
    pub(crate) fn has_ended(&mut self) -> bool {
        let ended = self.state == State::Member && self.json.is_closed();
        if ended {
            self.state = State::End;
        }
        ended
    }

    /// Returns the next member, read with the tokenizer.
    #[inline(never)]
    pub(crate) fn next_by_token(&mut self) -> Result<Option<Item<'a>>, Error> {
        let state = core::mem::replace(&mut self.state, State::End);
        let more = match state {
            State::Start => {
                self.json.expect(b'{', Expected::Object)?;
                self.json.skip_whitespace();
                !self.json.take(b'}')
            }
            State::Member => self.json.comma_or(b'}')?,
            State::End => return Ok(None),
        };
        if !more {
            self.padding()?;
            return Ok(None);
        }
        let name = self.json.key()?;
        // More than the quote and the colon is white space.
        let name_end = to_usize(name.start).saturating_add(name.raw.len());
        self.spaced = self.json.at().saturating_sub(name_end) > 2;
        let item =
            if self.is(name, "__metadata__") { self.metadata(name)? } else { self.tensor(name)? };
        self.state = State::Member;
        Ok(Some(item))
    }

    /// Returns `true` if the decoded string is `short`.
    #[inline]
    fn is(&self, string: Str<'a>, short: &str) -> bool {
        if string.escaped {
            Text::in_header(self.text, string) == *short
        } else {
            string.raw == short.as_bytes()
        }
    }

    #[inline(never)]
    fn metadata(&mut self, name: Str<'a>) -> Result<Item<'a>, Error> {
        if self.seen_metadata {
            return Err(Error::at(ErrorKind::DuplicateMetadata, to_usize(name.start)));
        }
        self.seen_metadata = true;
        Metadata::parse(self.text, &mut self.json, self.limits).map(Item::Metadata)
    }

    #[inline]
    fn tensor(&mut self, name: Str<'a>) -> Result<Item<'a>, Error> {
        let span = name.span();
        let limits = self.limits;
        if self.tensors == limits.tensors {
            let kind = ErrorKind::TooManyTensors { limit: limits.tensors };
            return Err(Error::at(kind, to_usize(name.start)).of(span));
        }
        self.tensors = self.tensors.saturating_add(1);
        name.check_len(StringKind::Name, limits.name_bytes).map_err(|error| error.of(span))?;
        self.entry(name).map(Item::Tensor).map_err(|error| error.of(span))
    }

    /// Takes the object of a tensor's entry.
    #[inline]
    fn entry(&mut self, name: Str<'a>) -> Result<Entry<'a>, Error> {
        let start = self.json.at();
        if !self.json.take(b'{') {
            return Err(self.json.wrong_type(Field::Entry));
        }
        let mut dtype = None;
        let mut shape = None;
        let mut offsets = None;
        self.json.skip_whitespace();
        if !self.json.take(b'}') {
            loop {
                let key = self.json.key()?;
                if self.is(key, "dtype") {
                    let value = self.dtype()?;
                    set_once(&mut dtype, value, Key::Dtype, key)?;
                } else if self.is(key, "shape") {
                    let value = ShapeValue::parse(&mut self.json, self.limits)?;
                    set_once(&mut shape, value, Key::Shape, key)?;
                } else if self.is(key, "data_offsets") {
                    let value = Offsets::parse(&mut self.json, self.limits)?;
                    set_once(&mut offsets, value, Key::DataOffsets, key)?;
                } else {
                    self.unknown(key)?;
                }
                if !self.json.comma_or(b'}')? {
                    break;
                }
            }
        }
        let missing = |key| Error::at(ErrorKind::MissingKey { key }, start);
        let dtype = dtype.ok_or_else(|| missing(Key::Dtype))?;
        let shape = shape.ok_or_else(|| missing(Key::Shape))?;
        let offsets = offsets.ok_or_else(|| missing(Key::DataOffsets))?;
        check_size(dtype, &shape, &offsets)?;
        let Offsets { begin, end, position } = offsets;
        Ok(Entry { name, dtype, shape: shape.position, begin, end, offsets: position })
    }

    #[inline(never)]
    fn dtype(&mut self) -> Result<Dtype, Error> {
        let value = self.json.string(Field::Dtype)?;
        let at = to_usize(value.start);
        value.check_len(StringKind::Property, self.limits.string_bytes)?;
        let dtype = if value.escaped {
            let mut buffer = [0; 16];
            let text = Text::in_header(self.text, value);
            text.copy_to(&mut buffer).ok().and_then(|text| text.parse().ok())
        } else {
            Dtype::from_spelling(value.raw)
        };
        let dtype = dtype.ok_or_else(|| Error::at(ErrorKind::UnknownDtype, at))?;
        if !self.limits.dtypes.contains(dtype) {
            return Err(Error::at(ErrorKind::DtypeNotAccepted { dtype }, at));
        }
        Ok(dtype)
    }

    /// Skips the value of an unknown key, if the limits allow it.
    #[cold]
    #[inline(never)]
    fn unknown(&mut self, key: Str<'a>) -> Result<(), Error> {
        let limits = self.limits;
        if !limits.unknown_keys {
            return Err(Error::at(ErrorKind::UnknownKey, to_usize(key.start)));
        }
        key.check_len(StringKind::Property, limits.string_bytes)?;
        // The header's object and the entry are open.
        let skip = SkipLimits { depth: limits.depth, open: 2, string_bytes: limits.string_bytes };
        self.json.skip_value(skip)
    }

    /// Checks that the header's object is followed only by padding.
    fn padding(&mut self) -> Result<(), Error> {
        loop {
            let kind = match self.json.peek() {
                None => return Ok(()),
                Some(b' ') => {
                    self.json.take(b' ');
                    continue;
                }
                Some(found @ (b'\t' | b'\n' | b'\r')) => {
                    if self.limits.any_padding {
                        self.json.take(found);
                        continue;
                    }
                    ErrorKind::Padding { found }
                }
                Some(0) => ErrorKind::NulPadding,
                Some(found) => ErrorKind::AfterHeader { found },
            };
            return Err(self.json.error(kind));
        }
    }
}

/// Sets the value of a key, which must not be set already.
#[inline]
fn set_once<T>(place: &mut Option<T>, value: T, key: Key, at: Str<'_>) -> Result<(), Error> {
    if place.is_some() {
        return Err(Error::at(ErrorKind::DuplicateKey { key }, to_usize(at.start)));
    }
    *place = Some(value);
    Ok(())
}

/// The value of `shape`.
#[derive(Debug, Clone, Copy)]
struct ShapeValue {
    position: u32,
    /// The product of the dimensions.
    elements: u64,
}

impl ShapeValue {
    #[inline(never)]
    fn parse(json: &mut Cursor<'_>, limits: &Limits) -> Result<ShapeValue, Error> {
        let at = json.at();
        if !json.take(b'[') {
            return Err(json.wrong_type(Field::Shape));
        }
        let mut rank: u32 = 0;
        let mut product = Product::default();
        let mut largest = 0;
        json.skip_whitespace();
        if !json.take(b']') {
            loop {
                json.skip_whitespace();
                if rank == limits.rank {
                    return Err(json.error(ErrorKind::RankTooLarge { limit: limits.rank }));
                }
                rank = rank.saturating_add(1);
                let dimension = json.natural(Field::Dimension)?;
                product.push(dimension);
                largest = dimension.max(largest);
                if !json.comma_or(b']')? {
                    break;
                }
            }
        }
        let elements = product.get();
        let limit = if elements == Some(0) { limits.empty_dimension } else { limits.integer };
        if largest > limit {
            return Err(Error::at(ErrorKind::IntegerTooLarge { value: largest, limit }, at));
        }
        let elements = elements.ok_or_else(|| Error::at(ErrorKind::ShapeOverflow, at))?;
        Ok(ShapeValue { position: to_u32(at), elements })
    }
}

/// The value of `data_offsets`.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    position: u32,
    begin: u64,
    end: u64,
}

impl Offsets {
    #[inline(never)]
    fn parse(json: &mut Cursor<'_>, limits: &Limits) -> Result<Offsets, Error> {
        let at = json.at();
        if !json.take(b'[') {
            return Err(json.wrong_type(Field::DataOffsets));
        }
        let not_two = || Error::at(ErrorKind::OffsetCount, at);
        json.skip_whitespace();
        if json.take(b']') {
            return Err(not_two());
        }
        let begin = json.natural(Field::Offset)?;
        if !json.comma_or(b']')? {
            return Err(not_two());
        }
        json.skip_whitespace();
        let end = json.natural(Field::Offset)?;
        if json.comma_or(b']')? {
            return Err(not_two());
        }
        if begin > end {
            return Err(Error::at(ErrorKind::OffsetsReversed { begin, end }, at));
        }
        if end > limits.integer {
            let kind = ErrorKind::IntegerTooLarge { value: end, limit: limits.integer };
            return Err(Error::at(kind, at));
        }
        Ok(Offsets { position: to_u32(at), begin, end })
    }
}

/// Checks that dtype, shape and `data_offsets` match.
#[inline(never)]
fn check_size(dtype: Dtype, shape: &ShapeValue, offsets: &Offsets) -> Result<(), Error> {
    let elements = shape.elements;
    let needed = dtype.byte_len(elements).map_err(|error| {
        let kind = match error {
            ByteLenError::PartialByte => ErrorKind::PartialByte { dtype, elements },
            ByteLenError::Overflow => ErrorKind::ShapeOverflow,
        };
        Error::at(kind, to_usize(shape.position))
    })?;
    let Offsets { begin, end, position } = *offsets;
    if end.checked_sub(begin) == Some(needed) {
        return Ok(());
    }
    let kind = ErrorKind::SizeMismatch { begin, end, dtype, elements };
    Err(Error::at(kind, to_usize(position)))
}
