//! A JSON string in a header, used as its decoded characters without a buffer.

use core::cmp::Ordering;
use core::fmt::{self, Write as _};
use core::hash::{Hash, Hasher};

use crate::base::convert::{to_u32, to_u64, to_usize};
use crate::base::error::{Error, ErrorKind, NameSpan, StringKind};

/// A string found by the tokenizer, without its quotes. It is well-formed: every escape is valid
/// and represents a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Str<'a> {
    /// The spelling.
    pub(crate) raw: &'a [u8],
    /// The position in the text.
    pub(crate) start: u32,
    /// Whether the string has escapes.
    pub(crate) escaped: bool,
}

impl Str<'_> {
    /// Returns the position and length, for errors.
    pub(crate) fn span(&self) -> NameSpan {
        NameSpan { start: self.start, len: to_u32(self.raw.len()) }
    }

    /// Checks that the decoded string has at most `limit` bytes.
    #[inline]
    pub(crate) fn check_len(&self, what: StringKind, limit: u32) -> Result<(), Error> {
        // A spelling is never shorter than the decoded string.
        if to_u32(self.raw.len()) <= limit {
            return Ok(());
        }
        let len = to_u64(core::str::from_utf8(self.raw).map_or(self.raw.len(), decoded_len));
        if len <= u64::from(limit) {
            return Ok(());
        }
        Err(Error::at(ErrorKind::StringTooLong { what, len, limit }, to_usize(self.start)))
    }
}

/// A string of a header: a tensor's name, a key or a value of `__metadata__`.
///
/// It borrows the header's spelling, in which characters can be escaped (`"a\u002eb"` is `a.b`),
/// and behaves like the decoded string: equality, order, hash, length and display use the decoded
/// characters. All of these take time linear in the string and allocate nothing.
///
/// `Display` writes the characters as they are. `Debug` writes them in quotes and escapes control
/// characters, bidirectional overrides and other invisible characters, so that a hostile name
/// cannot forge a line in a log or control a terminal.
#[derive(Clone, Copy, Default)]
pub struct Text<'a> {
    /// The spelling, well-formed: every escape is valid and represents a character.
    raw: &'a str,
}

impl<'a> Text<'a> {
    /// Creates the text of a string that the tokenizer found in a header.
    #[inline]
    pub(crate) fn in_header(header: &'a str, string: Str<'_>) -> Self {
        Text::in_header_at(header, string.start, to_u32(string.raw.len()))
    }

    /// Creates the text of a string that the tokenizer found in a header, from its position and
    /// length.
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(crate) fn in_header_at(header: &'a str, start: u32, len: u32) -> Self {
        let end = to_usize(start).saturating_add(to_usize(len));
        Text { raw: header.get(to_usize(start)..end).unwrap_or_default() }
    }

    /// Creates the text with this spelling, which is known to be well-formed. It can be the rest of
    /// a string.
    pub(crate) fn of_spelling(raw: &'a str) -> Self {
        Text { raw }
    }

    /// Returns the spelling in the header, between the quotes.
    #[inline]
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// Returns the string, or `None` if its spelling has escapes, which is rare.
    #[cfg_attr(not(target_os = "none"), inline)]
    #[must_use]
    pub fn as_str(&self) -> Option<&'a str> {
        match memchr::memchr(b'\\', self.raw.as_bytes()) {
            None => Some(self.raw),
            Some(_) => None,
        }
    }

    /// Returns an iterator over the decoded characters.
    #[must_use]
    pub fn chars(&self) -> Chars<'a> {
        Chars { rest: self.raw }
    }

    /// Returns the length of the decoded string in bytes of UTF-8.
    #[must_use]
    pub fn len(&self) -> usize {
        decoded_len(self.raw)
    }

    /// Returns `true` if the string is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Compares the decoded string with another, by characters, which is also the order of their
    /// bytes.
    pub(crate) fn cmp_str(&self, other: &str) -> Ordering {
        match self.as_str() {
            Some(plain) => plain.cmp(other),
            None => self.chars().cmp(other.chars()),
        }
    }

    /// Writes the decoded string as UTF-8 to the start of the buffer, and returns it.
    ///
    /// # Errors
    /// [`ErrorKind::BufferLength`] with the length needed, if the buffer is too short. The buffer's
    /// content is then unspecified.
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b str, Error> {
        let mut len: usize = 0;
        each_byte(self.raw.as_bytes(), |byte| {
            if let Some(place) = buffer.get_mut(len) {
                *place = byte;
            }
            len = len.wrapping_add(1);
        });
        let (needed, given) = (to_u64(len), to_u64(buffer.len()));
        let written = buffer.get(..len);
        let written =
            written.ok_or_else(|| Error::new(ErrorKind::BufferLength { needed, given }))?;
        Ok(core::str::from_utf8(written).unwrap_or_default())
    }

    /// Returns the string: borrowed if its spelling has no escapes, otherwise decoded to a new
    /// `String`.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_cow(&self) -> alloc::borrow::Cow<'a, str> {
        match self.as_str() {
            Some(plain) => alloc::borrow::Cow::Borrowed(plain),
            None => alloc::borrow::Cow::Owned(self.chars().collect()),
        }
    }
}

/// Same as [`Text::to_cow`].
#[cfg(feature = "alloc")]
impl<'a> From<Text<'a>> for alloc::borrow::Cow<'a, str> {
    fn from(text: Text<'a>) -> Self {
        text.to_cow()
    }
}

#[cfg(feature = "alloc")]
impl From<Text<'_>> for alloc::string::String {
    fn from(text: Text<'_>) -> Self {
        text.to_cow().into_owned()
    }
}

/// Returns the length in bytes of UTF-8 of the string with this spelling.
pub(crate) fn decoded_len(raw: &str) -> usize {
    let mut len: usize = 0;
    each_byte(raw.as_bytes(), |_| len = len.wrapping_add(1));
    len
}

/// Calls `byte` with each byte of the string with this spelling.
#[inline]
pub(crate) fn each_byte(raw: &[u8], mut byte: impl FnMut(u8)) {
    let mut rest = raw;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            byte(*first);
            continue;
        }
        let (c, len) = unescape(rest);
        rest = rest.get(len..).unwrap_or_default();
        match u8::try_from(c) {
            Ok(ascii @ 0..=0x7f) => byte(ascii),
            _ => c.encode_utf8(&mut [0; 4]).bytes().for_each(&mut byte),
        }
    }
}

/// Decodes a string into a buffer. Returns `None` unless the buffer is at least eight bytes longer
/// than the spelling, which allows for copying eight bytes at a time.
#[inline]
pub(crate) fn decode_into<'b>(raw: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    if buffer.len() < raw.len().saturating_add(8) {
        return None;
    }
    let mut rest = raw;
    let mut len: usize = 0;
    while let Some(word) = rest.first_chunk::<8>() {
        *buffer.get_mut(len..)?.first_chunk_mut()? = *word;
        let plain = plain_bytes(*word);
        len = len.wrapping_add(plain);
        rest = rest.get(plain..)?;
        if let ([b'\\', escape @ ..], true) = (rest, plain < 8) {
            let (c, taken) = unescape(escape);
            rest = escape.get(taken..)?;
            len = len.wrapping_add(put(c, buffer.get_mut(len..)?)?);
        }
    }
    each_byte(rest, |byte| {
        if let Some(place) = buffer.get_mut(len) {
            *place = byte;
        }
        len = len.wrapping_add(1);
    });
    buffer.get(..len)
}

/// Returns the number of bytes before the first backslash.
#[inline]
fn plain_bytes(word: [u8; 8]) -> usize {
    let difference = u64::from_le_bytes(word) ^ 0x5c5c_5c5c_5c5c_5c5c;
    let backslashes = difference.wrapping_sub(0x0101_0101_0101_0101) & !difference;
    to_usize((backslashes & 0x8080_8080_8080_8080).trailing_zeros() >> 3)
}

/// Writes a character as UTF-8, and returns its length in bytes.
#[inline]
fn put(c: char, buffer: &mut [u8]) -> Option<usize> {
    if let Ok(ascii @ 0..=0x7f) = u8::try_from(c) {
        *buffer.first_mut()? = ascii;
        return Some(1);
    }
    let mut bytes = [0; 4];
    let len = c.encode_utf8(&mut bytes).len();
    *buffer.first_chunk_mut()? = bytes;
    Some(len)
}

/// Decodes an escape, given without its backslash. Returns the character and the length taken.
#[cfg_attr(not(target_os = "none"), inline(always))]
fn unescape(rest: &[u8]) -> (char, usize) {
    let c = match rest {
        [b'u', a, b, c, d, rest @ ..] => {
            let value = hex_value([*a, *b, *c, *d]);
            match (value, rest) {
                (0xd800..=0xdbff, [_, _, a, b, c, d, ..]) => {
                    let low = hex_value([*a, *b, *c, *d]);
                    let pair = ((value & 0x3ff) << 10) | (low & 0x3ff);
                    return (replaced(0x1_0000_u32.wrapping_add(pair)), 11);
                }
                _ => return (replaced(value), 5),
            }
        }
        [b'b', ..] => '\u{8}',
        [b'f', ..] => '\u{c}',
        [b'n', ..] => '\n',
        [b'r', ..] => '\r',
        [b't', ..] => '\t',
        [itself, ..] => char::from(*itself),
        [] => char::REPLACEMENT_CHARACTER,
    };
    (c, 1)
}

/// Returns the character with this code point, or U+FFFD if there is none. Well-formed strings have
/// only valid code points.
fn replaced(value: u32) -> char {
    char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Parses four hexadecimal digits at once. Returns `None` if any of them is not one.
#[inline]
pub(crate) fn hex_digits(digits: [u8; 4]) -> Option<u32> {
    const EACH: u32 = 0x0101_0101;
    let each = |byte: u32| EACH.wrapping_mul(byte);
    let digits = u32::from_be_bytes(digits);
    // 1 in every byte that is a letter, provided that it is a hexadecimal digit.
    let letter = (digits >> 6) & EACH;
    let low = digits & each(0x0f);
    let value = low.wrapping_add(letter.wrapping_mul(9));
    // A digit's upper half is 3 and its lower half at most 9. A letter's are 4 or 6, and 1 to 6.
    let upper = digits & each(0xf0) & !letter.wrapping_mul(0x20);
    let valid = upper == each(0x30).wrapping_add(letter.wrapping_mul(0x10))
        && low.wrapping_add(each(6)).wrapping_add(letter.wrapping_mul(3)) & each(0x10) == 0
        && (low | each(0x10)).wrapping_sub(letter) & each(0x10) == each(0x10);
    valid.then_some(from_nibbles(value))
}

/// Parses four bytes that are known to be hexadecimal digits.
#[inline]
fn hex_value(digits: [u8; 4]) -> u32 {
    let digits = u32::from_be_bytes(digits);
    let letter = (digits >> 6) & 0x0101_0101;
    from_nibbles((digits & 0x0f0f_0f0f).wrapping_add(letter.wrapping_mul(9)))
}

/// Combines four bytes, each the value of a hexadecimal digit, into a number.
#[inline]
fn from_nibbles(value: u32) -> u32 {
    let pairs = value | value >> 4;
    pairs >> 8 & 0xff00 | pairs & 0x00ff
}

/// An iterator over the decoded characters of a [`Text`].
#[derive(Debug, Clone)]
pub struct Chars<'a> {
    rest: &'a str,
}

impl<'a> Chars<'a> {
    /// Returns the spelling of the remaining characters.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }
}

impl Iterator for Chars<'_> {
    type Item = char;

    #[inline]
    fn next(&mut self) -> Option<char> {
        let (c, len) = match self.rest.as_bytes() {
            [b'\\', escape @ ..] => {
                let (c, len) = unescape(escape);
                (c, len.wrapping_add(1))
            }
            [ascii @ 0..=0x7f, ..] => (char::from(*ascii), 1),
            _ => {
                let c = self.rest.chars().next()?;
                (c, c.len_utf8())
            }
        };
        self.rest = self.rest.get(len..).unwrap_or_default();
        Some(c)
    }
}

impl PartialEq<str> for Text<'_> {
    #[cfg_attr(not(target_os = "none"), inline)]
    fn eq(&self, other: &str) -> bool {
        match self.as_str() {
            Some(plain) => plain == other,
            None => self.chars().eq(other.chars()),
        }
    }
}

impl PartialEq<&str> for Text<'_> {
    #[inline]
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq for Text<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match other.as_str() {
            Some(plain) => *self == *plain,
            None => self.chars().eq(other.chars()),
        }
    }
}

impl Eq for Text<'_> {}

impl Ord for Text<'_> {
    /// Compares by decoded characters, which is also the order of the decoded strings' bytes.
    fn cmp(&self, other: &Self) -> Ordering {
        match other.as_str() {
            Some(plain) => self.cmp_str(plain),
            None => self.chars().cmp(other.chars()),
        }
    }
}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for c in self.chars() {
            c.hash(state);
        }
        state.write_u8(0xff);
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(plain) => f.write_str(plain),
            None => self.chars().try_for_each(|c| f.write_char(c)),
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_quoted(f, usize::MAX)
    }
}

impl Text<'_> {
    /// Writes at most `most` characters as `Debug` does, and an ellipsis if there are more.
    pub(crate) fn fmt_quoted(&self, f: &mut fmt::Formatter<'_>, most: usize) -> fmt::Result {
        write_quoted(f, self.chars(), most)
    }
}

/// Displays a string as `Debug` displays a [`Text`].
#[cfg(feature = "alloc")]
pub(crate) struct Quoted<'q>(pub(crate) &'q str);

#[cfg(feature = "alloc")]
impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, self.0.chars(), usize::MAX)
    }
}

fn write_quoted(
    f: &mut fmt::Formatter<'_>,
    mut chars: impl Iterator<Item = char>,
    most: usize,
) -> fmt::Result {
    f.write_char('"')?;
    for c in chars.by_ref().take(most) {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\0' => f.write_str("\\0")?,
            _ if is_hidden(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            _ => f.write_char(c)?,
        }
    }
    if chars.next().is_some() {
        f.write_char('…')?;
    }
    f.write_char('"')
}

/// Returns `true` if a character is invisible, moves the cursor, or changes how its neighbours
/// look: control and format characters, separators, private use and noncharacters. `core`'s own
/// escaping is not used, since its tables take kilobytes and it leaves some of these characters
/// unescaped.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{a0}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{1680}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{3000}'
            | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}'
    )
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::format;
    use std::prelude::v1::*;

    fn text(raw: &str) -> Text<'_> {
        Text { raw }
    }

    #[test]
    fn behaves_like_the_decoded_string() {
        let cases = [
            ("", ""),
            ("model.weight", "model.weight"),
            (r"model\u002eweight", "model.weight"),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r"\u00e9\u20AC", "é€"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\uDBFF\uDFFF", "\u{10ffff}"),
            (r"a\u0000b", "a\0b"),
        ];
        for (raw, decoded) in cases {
            assert_eq!(text(raw), decoded);
            assert_eq!(text(raw), text(raw));
            assert_eq!(text(raw).len(), decoded.len());
            assert_eq!(format!("{}", text(raw)), decoded);
            let mut buffer = [0; 16];
            assert_eq!(text(raw).copy_to(&mut buffer).unwrap(), decoded);
            if let Some(short) = buffer.get_mut(..decoded.len().saturating_sub(1)) {
                let given = to_u64(short.len());
                if given < to_u64(decoded.len()) {
                    let needed = to_u64(decoded.len());
                    let error = text(raw).copy_to(short).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::BufferLength { needed, given });
                }
            }
            for (other_raw, other) in cases {
                assert_eq!(text(raw).cmp(&text(other_raw)), decoded.cmp(other));
                assert_eq!(text(raw) == *other, decoded == other);
            }
        }
    }

    #[test]
    fn hex_digits_accepts_exactly_hexadecimal_digits() {
        for byte in 0..=255_u8 {
            for place in 0..4 {
                let mut digits = *b"a0F9";
                digits[place] = byte;
                let text: String = digits.iter().map(|byte| char::from(*byte)).collect();
                let all = digits.iter().all(u8::is_ascii_hexdigit);
                let expected = all.then(|| u32::from_str_radix(&text, 16).unwrap());
                assert_eq!(hex_digits(digits), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn debug_escapes_invisible_characters() {
        assert_eq!(format!("{:?}", text("it's")), "\"it's\"");
        assert_eq!(format!("{:?}", text(r"\u001b[31m\n\u202e")), r#""\u{1b}[31m\n\u{202e}""#);
        assert_eq!(format!("{:?}", text(r#"\"\\\u0000"#)), r#""\"\\\0""#);
    }
}
