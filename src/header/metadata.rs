//! A header's `__metadata__`: a map from strings to strings.

use core::fmt;

use crate::base::convert::{to_u32, to_usize};
use crate::base::error::{Error, ErrorKind, Field, StringKind};
use crate::base::limits::Limits;
use crate::json::text::{Str, Text};
use crate::json::tokenizer::Cursor;

/// A file's free-form metadata: a map from strings to strings.
///
/// It borrows the header's text and is read back from there, so it takes no memory. Lookup and
/// iteration take time linear in its text.
#[derive(Clone, Copy)]
pub struct Metadata<'a> {
    header: &'a str,
    place: Place,
}

/// The metadata's position in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The position after the `{`.
    start: u32,
    /// The number of keys.
    len: u32,
}

impl<'a> Metadata<'a> {
    /// Parses the value of `__metadata__`: an object of strings, or null if the limits allow it.
    pub(crate) fn parse(
        header: &'a str,
        json: &mut Cursor<'a>,
        limits: &Limits,
    ) -> Result<Option<Metadata<'a>>, Error> {
        if json.peek() == Some(b'n') {
            if !limits.null_metadata {
                return Err(json.error(ErrorKind::NullMetadata));
            }
            json.literal(b"null")?;
            return Ok(None);
        }
        if !json.take(b'{') {
            return Err(json.wrong_type(Field::Metadata));
        }
        let start = to_u32(json.at());
        let mut len: u32 = 0;
        json.skip_whitespace();
        if !json.take(b'}') {
            loop {
                json.skip_whitespace();
                if len == limits.metadata_entries {
                    let limit = limits.metadata_entries;
                    return Err(json.error(ErrorKind::TooManyMetadataEntries { limit }));
                }
                let (key, value) = match json.fast_pair() {
                    Some((key, value)) => (key, Some(value)),
                    None => (json.key()?, None),
                };
                key.check_len(StringKind::Property, limits.string_bytes)?;
                let value = match value {
                    Some(value) => value,
                    None => json.string(Field::MetadataValue)?,
                };
                value.check_len(StringKind::MetadataValue, limits.metadata_value_bytes)?;
                len = len.saturating_add(1);
                if !json.comma_or(b'}')? {
                    break;
                }
            }
        }
        Ok(Some(Metadata { header, place: Place { start, len } }))
    }

    pub(crate) fn at(header: &'a str, place: Place) -> Self {
        Metadata { header, place }
    }

    /// Returns the header's text.
    pub(crate) fn header(&self) -> &'a str {
        self.header
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Returns the position of the metadata's `{` in the header.
    #[cfg(feature = "std")]
    pub(crate) fn begin(&self) -> usize {
        to_usize(self.place.start).saturating_sub(1)
    }

    /// Returns an iterator over the keys and values in the header's order.
    #[must_use]
    pub fn iter(&self) -> MetadataIter<'a> {
        let text = self.header.get(to_usize(self.place.start)..).unwrap_or_default();
        MetadataIter { text, json: Cursor::new(text), left: self.place.len }
    }

    /// Returns the value of a key, or `None` if there is no such key. Takes time linear in the
    /// metadata.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Text<'a>> {
        self.iter().find_map(|(k, value)| (k == *key).then_some(value))
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        to_usize(self.place.len)
    }

    /// Returns `true` if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.place.len == 0
    }

    /// Returns an iterator over the keys, exactly as the header spells them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Str<'a>> + '_ {
        let offset = self.place.start;
        let mut iter = self.iter();
        core::iter::from_fn(move || {
            let (key, _) = iter.next_raw()?;
            Some(Str { start: key.start.saturating_add(offset), ..key })
        })
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `debug_map` can panic.
        f.write_str("{")?;
        let mut separator = "";
        for (key, value) in self {
            write!(f, "{separator}{key:?}: {value:?}")?;
            separator = ", ";
        }
        f.write_str("}")
    }
}

impl<'a> IntoIterator for Metadata<'a> {
    type Item = (Text<'a>, Text<'a>);
    type IntoIter = MetadataIter<'a>;

    fn into_iter(self) -> MetadataIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Metadata<'a> {
    type Item = (Text<'a>, Text<'a>);
    type IntoIter = MetadataIter<'a>;

    fn into_iter(self) -> MetadataIter<'a> {
        self.iter()
    }
}

/// An iterator over the keys and values of [`Metadata`].
#[derive(Debug, Clone)]
pub struct MetadataIter<'a> {
    text: &'a str,
    json: Cursor<'a>,
    left: u32,
}

impl<'a> MetadataIter<'a> {
    /// Returns the next key and value. The text is known to be valid.
    fn next_raw(&mut self) -> Option<(Str<'a>, Str<'a>)> {
        self.left = self.left.checked_sub(1)?;
        let pair = match self.json.fast_pair() {
            Some(pair) => pair,
            None => (self.json.key().ok()?, self.json.string(Field::MetadataValue).ok()?),
        };
        self.json.comma_or(b'}').ok()?;
        Some(pair)
    }
}

impl<'a> Iterator for MetadataIter<'a> {
    type Item = (Text<'a>, Text<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.next_raw()?;
        Some((Text::in_header(self.text, key), Text::in_header(self.text, value)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (to_usize(self.left), Some(to_usize(self.left)))
    }
}

impl ExactSizeIterator for MetadataIter<'_> {}
