//! The fast path for entries in the usual spelling.
//!
//! How it works: whole words are compared (`"dtype":`, `"shape":`, `"data_offsets":`), and nothing
//! is recorded for error messages. The result is an entry, or `None` at anything unexpected: an
//! error, an exceeded limit, an unknown key, an escape in a key or a dtype, the metadata, the end.
//! The walk then reads the member again with the tokenizer, which finds the error. So this file
//! decides nothing: whatever it accepts, the tokenizer accepts with the same result, which
//! `tests/spellings.rs` checks.
//!
//! It is compiled twice: for headers without white space between tokens (`SPACED` is false), and
//! for headers with white space in the usual places: after colons, commas and opening brackets, and
//! before closing brackets. Keys can be in any order.

use crate::base::convert::to_u32;
use crate::base::dtype::Dtype;
use crate::base::limits::Limits;
use crate::header::entry::Entry;
use crate::header::shape::Product;
use crate::json::text::Str;
use crate::json::tokenizer::Cursor;

/// Takes the byte before a member of the header's object, the tensor's name and its entry. Returns
/// the entry and the cursor after it.
#[inline(always)]
pub(crate) fn member<'a, const SPACED: bool>(
    json: Cursor<'a>,
    before: u8,
    limits: &Limits,
) -> Option<(Entry<'a>, Cursor<'a>)> {
    let mut fast = FastEntry::<SPACED> { json };
    fast.token(before)?;
    let name = fast.name(limits)?;
    fast.token(b':')?;
    fast.token(b'{')?;

    let mut fields = Fields::default();
    fast.field(&mut fields, limits)?;
    fast.token(b',')?;
    fast.field(&mut fields, limits)?;
    fast.token(b',')?;
    fast.field(&mut fields, limits)?;
    fast.close(b'}')?;

    // There are no duplicates, so three fields are all of them.
    let Fields { dtype, shape, elements, begin, end, offsets, .. } = fields;
    let needed = dtype.byte_len(elements).ok()?;
    let valid = end.checked_sub(begin) == Some(needed)
        && end <= limits.integer
        && limits.dtypes.contains(dtype);
    valid.then_some((Entry { name, dtype, shape, begin, end, offsets }, fast.json))
}

/// The fields of an entry that have been read so far.
struct Fields {
    seen_dtype: bool,
    dtype: Dtype,
    /// The position of the `[`, or 0 if not yet seen.
    shape: u32,
    elements: u64,
    /// The position of the `[`, or 0 if not yet seen.
    offsets: u32,
    begin: u64,
    end: u64,
}

impl Default for Fields {
    fn default() -> Self {
        Fields {
            seen_dtype: false,
            dtype: Dtype::BOOL,
            shape: 0,
            elements: 0,
            offsets: 0,
            begin: 0,
            end: 0,
        }
    }
}

struct FastEntry<'a, const SPACED: bool> {
    json: Cursor<'a>,
}

impl<'a, const SPACED: bool> FastEntry<'a, SPACED> {
    /// Skips white space if the header has any between tokens.
    #[inline(always)]
    fn gap(&mut self) {
        if SPACED {
            self.json.fast_gap();
        }
    }

    /// Takes a byte and the white space after it.
    #[inline(always)]
    fn token(&mut self, byte: u8) -> Option<()> {
        let found = self.json.take(byte);
        self.gap();
        found.then_some(())
    }

    /// Takes a key, its colon, and the white space after it.
    #[inline(always)]
    fn key<const N: usize>(&mut self, key: &[u8; N]) -> bool {
        let found = self.json.take_word(key);
        if found {
            self.gap();
        }
        found
    }

    /// Takes a closing bracket and the white space before it.
    #[inline(always)]
    fn close(&mut self, byte: u8) -> Option<()> {
        self.gap();
        self.json.take(byte).then_some(())
    }

    #[inline(always)]
    fn name(&mut self, limits: &Limits) -> Option<Str<'a>> {
        let name = self.json.fast_string()?;
        // A name with an escape can be `__metadata__` only if it begins with one of these.
        let maybe_metadata = if name.escaped {
            matches!(name.raw, [b'_' | b'\\', ..])
        } else {
            name.raw == b"__metadata__"
        };
        (!maybe_metadata && to_u32(name.raw.len()) <= limits.name_bytes).then_some(name)
    }

    /// Takes a key that has not been seen yet, and its value.
    #[inline(always)]
    fn field(&mut self, fields: &mut Fields, limits: &Limits) -> Option<()> {
        // A duplicate key matches no branch, so the tokenizer reports it.
        if !fields.seen_dtype && self.key(b"\"dtype\":") {
            fields.seen_dtype = true;
            fields.dtype = Dtype::from_word(self.json.fast_short()?)?;
            Some(())
        } else if fields.shape == 0 && self.key(b"\"shape\":") {
            self.shape(fields, limits)
        } else if fields.offsets == 0 && self.key(b"\"data_offsets\":") {
            self.offsets(fields)
        } else {
            None
        }
    }

    #[inline(always)]
    fn shape(&mut self, fields: &mut Fields, limits: &Limits) -> Option<()> {
        fields.shape = to_u32(self.json.at());
        self.token(b'[')?;
        let mut product = Product::default();
        if !self.json.take(b']') {
            let mut rank: u32 = 0;
            loop {
                let dimension = self.json.fast_natural()?;
                product.push(dimension);
                rank = rank.wrapping_add(1);
                if dimension > limits.integer || rank > limits.rank {
                    return None;
                }
                if !self.json.take(b',') {
                    break;
                }
                self.gap();
            }
            self.close(b']')?;
        }
        fields.elements = product.get()?;
        Some(())
    }

    #[inline(always)]
    fn offsets(&mut self, fields: &mut Fields) -> Option<()> {
        fields.offsets = to_u32(self.json.at());
        self.token(b'[')?;
        fields.begin = self.json.fast_natural()?;
        self.token(b',')?;
        fields.end = self.json.fast_natural()?;
        self.close(b']')
    }
}
