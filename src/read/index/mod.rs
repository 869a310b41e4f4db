//! The shard index of a model in several files, `model.safetensors.index.json`. It maps each tensor
//! to the shard it is in.
//!
//! There is no specification of the format. Loaders agree on this:
//!
//! ```text
//! {"metadata": {"total_size": 13476835328}, "weight_map": {"a.weight": "model-00001-of-00002.safetensors"}}
//! ```
//!
//! Other keys are skipped, `metadata` is optional, and `total_size` is a hint.

mod name;

use core::fmt;

use crate::base::convert::{to_u32, to_u64, to_usize};
#[cfg(feature = "alloc")]
use crate::base::error::ShardNameFault;
use crate::base::error::{Error, ErrorKind, Expected, Field, Key, StringKind};
use crate::base::foreign::recognise;
use crate::base::limits::IndexLimits;
use crate::json::text::{Str, Text};
use crate::json::tokenizer::{Cursor, SkipLimits};

/// A shard index in memory, parsed and checked without allocation.
///
/// Each lookup and iteration reads the text again. Parsing does not reject duplicate names, because
/// that takes memory. [`WeightMap`](crate::WeightMap) rejects them, and finds tensors faster.
///
/// ```
/// use safetensors_zero::{Index, IndexLimits};
///
/// let text = br#"{"metadata": {"total_size": 8}, "weight_map": {"a": "model-1.safetensors"}}"#;
/// let index = Index::parse(text, &IndexLimits::default())?;
/// let (tensor, shard) = index.iter().next().unwrap();
/// assert_eq!((tensor.as_str(), shard.to_string()), (Some("a"), "model-1.safetensors".into()));
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Index<'a> {
    text: &'a str,
    facts: Facts,
}

/// The facts about an index other than its tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// The position after the `{` of `weight_map`.
    start: u32,
    pub(crate) tensors: u32,
    pub(crate) total_size: TotalSize,
}

/// The `total_size` of an index, a hint at the model's size. Some writers count the bytes of the
/// tensors, others those of the files, and some values are out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TotalSize {
    /// The index has no `total_size`.
    Absent,
    /// A number of bytes.
    Bytes(u64),
    /// Something other than a natural number, or a number above 2^64 - 1.
    Other,
}

/// The name of a shard, a path with `/` separators. It leads to a file in the index's folder or
/// below it, on every operating system.
///
/// `Display` prints it without a leading `./`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardName<'a> {
    text: Text<'a>,
    /// Whether the name begins with `./`.
    dot_prefix: bool,
}

impl<'a> ShardName<'a> {
    /// Checks that a text is a valid name for a shard.
    fn new(text: Text<'a>, at: Str<'_>, limits: &IndexLimits) -> Result<ShardName<'a>, Error> {
        at.check_len(StringKind::ShardName, limits.shard_name_bytes)?;
        match name::check(text.chars(), limits) {
            Ok(dot_prefix) => Ok(ShardName { text, dot_prefix }),
            Err(fault) => Err(Error::at(ErrorKind::ShardName { fault }, to_usize(at.start))),
        }
    }

    /// Returns the name exactly as the index spells it.
    #[cfg(feature = "alloc")]
    pub(crate) fn as_text(&self) -> Text<'a> {
        self.text
    }

    /// Returns the characters of the name, without a leading `./`.
    pub fn chars(&self) -> impl Iterator<Item = char> + 'a {
        self.text.chars().skip(if self.dot_prefix { 2 } else { 0 })
    }
}

/// Returns what is wrong with a shard name by the rules of [`IndexLimits::STRICT`].
#[cfg(feature = "alloc")]
pub(crate) fn shard_name_fault(name: &str) -> Option<ShardNameFault> {
    name::check(name.chars(), &IndexLimits::STRICT).err()
}

impl fmt::Display for ShardName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        self.chars().try_for_each(|c| f.write_char(c))
    }
}

impl<'a> Index<'a> {
    /// Parses and checks an index. The whole text is JSON; there is no frame.
    ///
    /// Takes time linear in the text and allocates nothing.
    ///
    /// # Errors
    /// Returns an error if the text is not a valid index or if the name of a shard is not allowed.
    /// Positions in the error are counted from the start of the text.
    pub fn parse(text: &'a [u8], limits: &IndexLimits) -> Result<Index<'a>, Error> {
        let text = checked(text, limits)?;
        let facts = walk(text, limits, |_, _| Ok(())).map_err(Error::without_frame)?;
        Ok(Index { text, facts })
    }

    /// Returns the tensors and their shards in the index's order.
    #[must_use]
    pub fn iter(&self) -> IndexIter<'a> {
        let text = self.text.get(to_usize(self.facts.start)..).unwrap_or_default();
        IndexIter { text, json: Cursor::new(text), left: self.facts.tensors }
    }

    /// Returns the shard of a tensor. Takes time linear in the text.
    ///
    /// # Errors
    /// [`TensorNotFound`](ErrorKind::TensorNotFound) if the index does not list the tensor,
    /// [`DuplicateName`](ErrorKind::DuplicateName) if it lists the tensor twice.
    pub fn shard_of(&self, tensor: &str) -> Result<ShardName<'a>, Error> {
        let start = self.facts.start;
        let in_text = |position: u32| start.saturating_add(position);
        let mut found: Option<(Str<'a>, ShardName<'a>)> = None;
        let mut iter = self.iter();
        while let Some((key, shard)) = iter.next_raw() {
            if Text::in_header(iter.text, key) != *tensor {
                continue;
            }
            if let Some((first, _)) = found {
                let kind = ErrorKind::DuplicateName { first: u64::from(in_text(first.start)) };
                let error = Error::at(kind, to_usize(in_text(key.start)));
                let key = Str { start: in_text(key.start), ..key };
                return Err(error.of(key.span()).without_frame());
            }
            found = Some((key, shard));
        }
        found.map(|(_, shard)| shard).ok_or_else(|| Error::new(ErrorKind::TensorNotFound))
    }

    /// Returns the number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        to_usize(self.facts.tensors)
    }

    /// Returns `true` if there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.facts.tensors == 0
    }

    /// Returns the model's size in bytes according to the index.
    #[must_use]
    pub fn total_size(&self) -> TotalSize {
        self.facts.total_size
    }
}

impl fmt::Debug for Index<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("tensors", &self.len())
            .field("total_size", &self.total_size())
            .finish_non_exhaustive()
    }
}

impl<'a> IntoIterator for &Index<'a> {
    type Item = (Text<'a>, ShardName<'a>);
    type IntoIter = IndexIter<'a>;

    fn into_iter(self) -> IndexIter<'a> {
        self.iter()
    }
}

/// An iterator over the tensors and shards of an [`Index`].
#[derive(Debug, Clone)]
pub struct IndexIter<'a> {
    text: &'a str,
    json: Cursor<'a>,
    left: u32,
}

impl<'a> IndexIter<'a> {
    /// Returns the next tensor and its shard. The text was checked when the index was parsed.
    fn next_raw(&mut self) -> Option<(Str<'a>, ShardName<'a>)> {
        self.left = self.left.checked_sub(1)?;
        let key = self.json.key().ok()?;
        let value = self.json.string(Field::ShardName).ok()?;
        self.json.comma_or(b'}').ok()?;
        let text = Text::in_header(self.text, value);
        let dot_prefix = text.chars().take(2).eq(['.', '/']);
        Some((key, ShardName { text, dot_prefix }))
    }
}

impl<'a> Iterator for IndexIter<'a> {
    type Item = (Text<'a>, ShardName<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, shard) = self.next_raw()?;
        Some((Text::in_header(self.text, key), shard))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (to_usize(self.left), Some(to_usize(self.left)))
    }
}

impl ExactSizeIterator for IndexIter<'_> {}

/// Checks that the text of an index is UTF-8, not too long, and not a file of another format.
pub(crate) fn checked<'a>(text: &'a [u8], limits: &IndexLimits) -> Result<&'a str, Error> {
    // Positions plus the 8 bytes of a frame must fit 32 bits, and `u32::MAX` is reserved.
    let limit = limits.bytes.min(u64::from(u32::MAX).saturating_sub(9));
    let len = to_u64(text.len());
    if len > limit {
        return Err(Error::at_byte(ErrorKind::IndexTooLarge { len, limit }, 0));
    }
    let may_be_json = text.trim_ascii_start().first() == Some(&b'{');
    match recognise(text) {
        Some(format) if !may_be_json => {
            return Err(Error::at_byte(ErrorKind::ForeignIndex { format }, 0));
        }
        _ => {}
    }
    core::str::from_utf8(text)
        .map_err(|error| Error::at_byte(ErrorKind::InvalidUtf8, to_u64(error.valid_up_to())))
}

/// Walks over an index, checks it, and calls `each` with every tensor and its shard. Positions in
/// errors include the 8 bytes of a frame, until [`Error::without_frame`] removes them.
pub(crate) fn walk<'a>(
    text: &'a str,
    limits: &IndexLimits,
    mut each: impl FnMut(Str<'a>, ShardName<'a>) -> Result<(), Error>,
) -> Result<Facts, Error> {
    let mut json = Cursor::new(text);
    let skip = SkipLimits { depth: limits.depth, open: 1, string_bytes: limits.string_bytes };
    let mut weight_map = None;
    let mut total_size = None;
    json.expect(b'{', Expected::Object)?;
    json.skip_whitespace();
    if !json.take(b'}') {
        loop {
            let key = json.key()?;
            let duplicate =
                |key_is| Error::at(ErrorKind::DuplicateKey { key: key_is }, to_usize(key.start));
            let name = Text::in_header(text, key);
            if name == *"weight_map" {
                if weight_map.is_some() {
                    return Err(duplicate(Key::WeightMap));
                }
                weight_map = Some(walk_weight_map(text, &mut json, limits, &mut each)?);
            } else if name == *"metadata" {
                if total_size.is_some() {
                    return Err(duplicate(Key::Metadata));
                }
                total_size = Some(walk_metadata(text, &mut json, limits)?);
            } else {
                key.check_len(StringKind::Property, limits.string_bytes)?;
                json.skip_value(skip)?;
            }
            if !json.comma_or(b'}')? {
                break;
            }
        }
    }
    json.skip_whitespace();
    if let Some(found) = json.peek() {
        return Err(json.error(ErrorKind::AfterHeader { found }));
    }
    let missing = || Error::at(ErrorKind::MissingKey { key: Key::WeightMap }, 0);
    let (start, tensors) = weight_map.ok_or_else(missing)?;
    Ok(Facts { start, tensors, total_size: total_size.unwrap_or(TotalSize::Absent) })
}

/// Parses the value of `weight_map`. Returns the position after its `{` and the number of tensors.
#[inline]
fn walk_weight_map<'a>(
    text: &'a str,
    json: &mut Cursor<'a>,
    limits: &IndexLimits,
    each: &mut impl FnMut(Str<'a>, ShardName<'a>) -> Result<(), Error>,
) -> Result<(u32, u32), Error> {
    if !json.take(b'{') {
        return Err(json.wrong_type(Field::WeightMap));
    }
    let start = to_u32(json.at());
    let mut tensors: u32 = 0;
    // Neighbouring tensors are nearly always in the same shard. Its name is checked only once.
    let mut previous: Option<(Str<'a>, ShardName<'a>)> = None;
    json.skip_whitespace();
    if json.take(b'}') {
        if !limits.empty_weight_map {
            return Err(json.error(ErrorKind::EmptyWeightMap));
        }
        return Ok((start, 0));
    }
    loop {
        json.skip_whitespace();
        if tensors == limits.tensors {
            return Err(json.error(ErrorKind::TooManyTensors { limit: limits.tensors }));
        }
        let key = json.key()?;
        key.check_len(StringKind::Name, limits.name_bytes).map_err(|error| error.of(key.span()))?;
        let value = json.string(Field::ShardName).map_err(|error| error.of(key.span()))?;
        let shard = match previous {
            Some((spelling, shard)) if spelling.raw == value.raw => shard,
            _ => ShardName::new(Text::in_header(text, value), value, limits)
                .map_err(|error| error.of(key.span()))?,
        };
        previous = Some((value, shard));
        tensors = tensors.saturating_add(1);
        each(key, shard)?;
        if !json.comma_or(b'}')? {
            return Ok((start, tensors));
        }
    }
}

/// Parses the value of `metadata`, and returns its `total_size`.
fn walk_metadata(
    text: &str,
    json: &mut Cursor<'_>,
    limits: &IndexLimits,
) -> Result<TotalSize, Error> {
    if json.peek() == Some(b'n') {
        if !limits.null_metadata {
            return Err(json.error(ErrorKind::NullMetadata));
        }
        json.literal(b"null")?;
        return Ok(TotalSize::Absent);
    }
    if !json.take(b'{') {
        return Err(json.wrong_type(Field::IndexMetadata));
    }
    let skip = SkipLimits { depth: limits.depth, open: 2, string_bytes: limits.string_bytes };
    let mut total_size = None;
    json.skip_whitespace();
    if !json.take(b'}') {
        loop {
            let key = json.key()?;
            key.check_len(StringKind::Property, limits.string_bytes)?;
            if Text::in_header(text, key) == *"total_size" {
                if total_size.is_some() {
                    let kind = ErrorKind::DuplicateKey { key: Key::TotalSize };
                    return Err(Error::at(kind, to_usize(key.start)));
                }
                let before = json.clone();
                total_size = Some(match json.natural(Field::TotalSize) {
                    Ok(bytes) => TotalSize::Bytes(bytes),
                    Err(error) if !limits.any_total_size => return Err(error),
                    Err(_) => {
                        *json = before;
                        json.skip_value(skip)?;
                        TotalSize::Other
                    }
                });
            } else {
                json.skip_value(skip)?;
            }
            if !json.comma_or(b'}')? {
                break;
            }
        }
    }
    Ok(total_size.unwrap_or(TotalSize::Absent))
}
