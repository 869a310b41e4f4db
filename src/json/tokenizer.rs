//! A bounded pull tokenizer for JSON: structure, strings, natural numbers, and skipping of whole
//! values. It does not know the format, allocate or recurse.
//!
//! How this file works: a [`Cursor`] holds the rest of a text that is known to be UTF-8. Each step
//! matches the first bytes of the rest with slice patterns, which cannot be out of bounds, and
//! replaces the rest with a shorter one. So no step can panic, every loop ends, and time is linear.
//! Keep it this way: no index arithmetic, and no step that looks at a byte more than a constant
//! number of times.
//!
//! JSON is RFC 8259, with the restrictions that parsers agree on: strings have no unpaired
//! surrogates, numbers are in the range of `f64`, and nesting is bounded.

use crate::base::bare::BARE_METAL;
use crate::base::convert::{to_u32, to_usize};
use crate::base::error::{Error, ErrorKind, Expected, Field, JsonType, StringKind};
use crate::json::magnitude::Magnitude;
use crate::json::nesting::Nesting;
use crate::json::text::{hex_digits, Str};
pub(crate) use crate::json::words::skip_plain;
use crate::json::words::{
    bytes_below, eight_digits, skip_escaped, skip_name, without_spaces, without_whitespace, HIGH,
    ONES,
};

/// The limits for skipping a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkipLimits {
    /// Levels of nesting, including those already open.
    pub(crate) depth: u8,
    /// Levels already open.
    pub(crate) open: u8,
    /// Bytes of a string, decoded.
    pub(crate) string_bytes: u32,
}

/// A position in a JSON text, as the rest of the text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// The length of the whole text.
    len: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Cursor { rest: text.as_bytes(), len: text.len() }
    }

    /// Returns the position of the next byte in the text.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        // Never wraps, since the rest is part of the text.
        self.len.wrapping_sub(self.rest.len())
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Returns `true` if only a closing brace and spaces are left.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.rest, [b'}', padding @ ..] if padding.iter().all(|byte| *byte == b' '))
    }

    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::at(kind, self.at())
    }

    /// Returns the error that the next byte is not what is expected.
    #[cold]
    pub(crate) fn unexpected(&self, expected: Expected) -> Error {
        self.error(match self.peek() {
            Some(found) => ErrorKind::UnexpectedByte { found, expected },
            None => ErrorKind::UnexpectedEnd { expected },
        })
    }

    /// Returns the error that the next value has the wrong type for the field.
    #[cold]
    pub(crate) fn wrong_type(&self, field: Field) -> Error {
        let found = match self.peek() {
            Some(b'{') => JsonType::Object,
            Some(b'[') => JsonType::Array,
            Some(b'"') => JsonType::String,
            Some(b'-' | b'0'..=b'9') => JsonType::Number,
            Some(b't' | b'f') => JsonType::Bool,
            Some(b'n') => JsonType::Null,
            _ => return self.unexpected(Expected::Value),
        };
        self.error(ErrorKind::WrongType { field, found })
    }

    /// Skips JSON's four white-space characters.
    #[inline]
    pub(crate) fn skip_whitespace(&mut self) {
        if !matches!(self.rest, [first, ..] if *first > b' ') {
            self.rest = without_whitespace(self.rest);
        }
    }

    /// Skips white space. Fast for none, for a single space, and for a line feed and spaces.
    #[inline(always)]
    pub(crate) fn fast_gap(&mut self) {
        let rest = match self.rest {
            [b'\n', rest @ ..] => without_spaces(rest),
            [b' ', rest @ ..] => rest,
            rest => rest,
        };
        self.rest = match rest {
            [first, ..] if *first > b' ' => rest,
            _ => without_whitespace(rest),
        };
    }

    /// Takes the byte if it is next, and returns whether it was.
    #[inline(always)]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Takes the word if it is next, and returns whether it was.
    #[inline(always)]
    pub(crate) fn take_word<const N: usize>(&mut self, word: &[u8; N]) -> bool {
        match self.rest.split_first_chunk() {
            Some((first, rest)) if first == word => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Skips white space and takes the byte, or fails.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, expected: Expected) -> Result<(), Error> {
        self.skip_whitespace();
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    /// Takes the comma or the closing bracket after an element of an object or array. Returns
    /// whether it was a comma.
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(crate) fn comma_or(&mut self, close: u8) -> Result<bool, Error> {
        self.skip_whitespace();
        if self.take(b',') {
            Ok(true)
        } else if self.take(close) {
            Ok(false)
        } else if close == b'}' {
            Err(self.unexpected(Expected::CommaOrBrace))
        } else {
            Err(self.unexpected(Expected::CommaOrBracket))
        }
    }

    /// Takes a key, the colon after it, and the white space around them.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Str<'a>, Error> {
        self.expect(b'"', Expected::Key)?;
        let key = self.string_body()?;
        self.expect(b':', Expected::Colon)?;
        self.skip_whitespace();
        Ok(key)
    }

    /// Takes a string as the value of a field.
    #[inline]
    pub(crate) fn string(&mut self, field: Field) -> Result<Str<'a>, Error> {
        if self.take(b'"') {
            self.string_body()
        } else {
            Err(self.wrong_type(field))
        }
    }

    /// Takes the rest of a string after its opening quote.
    #[inline]
    fn string_body(&mut self) -> Result<Str<'a>, Error> {
        let start = to_u32(self.at());
        let body = self.rest;
        let mut escaped = false;
        loop {
            self.rest = skip_plain(self.rest);
            match self.rest {
                [b'"', rest @ ..] => {
                    let len = body.len().wrapping_sub(self.rest.len());
                    self.rest = rest;
                    return Ok(Str { raw: body.get(..len).unwrap_or_default(), start, escaped });
                }
                [b'\\', ..] => {
                    escaped = true;
                    self.escape()?;
                }
                [found, ..] => {
                    return Err(self.error(ErrorKind::ControlCharacter { found: *found }));
                }
                [] => return Err(self.unexpected(Expected::ClosingQuote)),
            }
        }
    }

    /// Takes a string if one is next and it is well-formed. Returns `None` also for strings with
    /// surrogates, and for some with escapes near the end of the text.
    #[inline(always)]
    pub(crate) fn fast_string(&mut self) -> Option<Str<'a>> {
        let [b'"', body @ ..] = self.rest else { return None };
        let rest = skip_name(body);
        if let [b'"', after @ ..] = rest {
            let start = to_u32(self.len.wrapping_sub(body.len()));
            let len = body.len().wrapping_sub(rest.len());
            self.rest = after;
            return Some(Str { raw: body.get(..len)?, start, escaped: false });
        }
        let (rest, escaped) = skip_escaped(body)?;
        let start = to_u32(self.len.wrapping_sub(body.len()));
        let len = body.len().wrapping_sub(rest.len());
        self.rest = rest.get(1..)?;
        Some(Str { raw: body.get(..len)?, start, escaped })
    }

    /// Takes a key and its string value if they are next, well-formed, and have no white space
    /// between them except a space after the colon.
    #[inline]
    pub(crate) fn fast_pair(&mut self) -> Option<(Str<'a>, Str<'a>)> {
        if BARE_METAL {
            return None;
        }
        let mut json = self.clone();
        let key = json.fast_string()?;
        if !json.take(b':') {
            return None;
        }
        json.take(b' ');
        let value = json.fast_string()?;
        *self = json;
        Some((key, value))
    }

    /// Takes a natural number if one is next, with at most 19 digits and at least eight bytes left.
    #[inline(always)]
    pub(crate) fn fast_natural(&mut self) -> Option<u64> {
        let [first @ b'0'..=b'9', rest @ ..] = self.rest else { return None };
        if !matches!(rest, [b'0'..=b'9', ..]) {
            self.rest = rest;
            return Some(u64::from(first & 0x0f));
        }
        if *first == b'0' {
            return None;
        }
        let digits = u64::from_le_bytes(*self.rest.first_chunk()?) ^ 0x3030_3030_3030_3030;
        // Sets the high bit of every byte above 9. Exact up to the first one.
        let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH;
        if others == 0 {
            let mut value = eight_digits(digits);
            let mut rest = self.rest.get(8..)?;
            let whole = rest.len();
            while let [digit @ b'0'..=b'9', after @ ..] = rest {
                value = value.wrapping_mul(10).wrapping_add(u64::from(digit & 0x0f));
                rest = after;
            }
            self.rest = rest;
            // 19 digits cannot overflow.
            return (whole.wrapping_sub(rest.len()) <= 11).then_some(value);
        }
        let bits = others.trailing_zeros() & 0x38;
        self.rest = self.rest.get(to_usize(bits >> 3)..)?;
        Some(eight_digits(digits << (64_u32.wrapping_sub(bits) & 63)))
    }

    /// Takes a string of at most seven bytes if one is next, and returns its spelling and closing
    /// quote as a little-endian number. At least eight bytes must follow the opening quote.
    #[inline(always)]
    pub(crate) fn fast_short(&mut self) -> Option<u64> {
        let [b'"', body @ ..] = self.rest else { return None };
        let word = u64::from_le_bytes(*body.first_chunk()?);
        let quote = bytes_below(word ^ 0x2222_2222_2222_2222, ONES) & HIGH;
        // Bits before the quote. A string with a backslash matches none of the callers' spellings.
        let bits = quote.trailing_zeros() & 0x38;
        let len = to_usize(bits >> 3);
        if quote == 0 {
            return None;
        }
        self.rest = body.get(len.wrapping_add(1)..)?;
        // The quote is kept so that NUL bytes before it are not lost.
        Some(word & u64::MAX >> (56_u32.wrapping_sub(bits) & 63))
    }

    /// Takes an escape, or the two escapes of a surrogate pair.
    #[inline]
    fn escape(&mut self) -> Result<(), Error> {
        match self.rest {
            [_, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => {
                self.rest = rest;
                Ok(())
            }
            [_, b'u', a, b, c, d, rest @ ..] => match hex_digits([*a, *b, *c, *d]) {
                Some(0..=0xd7ff | 0xe000..) => {
                    self.rest = rest;
                    Ok(())
                }
                _ => self.surrogates(),
            },
            _ => self.surrogates(),
        }
    }

    /// Takes a surrogate pair, or returns the error for an invalid escape.
    #[cold]
    fn surrogates(&mut self) -> Result<(), Error> {
        let lone = self.error(ErrorKind::LoneSurrogate);
        match self.rest {
            [_, b'u', rest @ ..] => self.rest = rest,
            [_, _, ..] => return Err(self.error(ErrorKind::InvalidEscape)),
            _ => {
                self.rest = &[];
                return Err(self.unexpected(Expected::ClosingQuote));
            }
        }
        if !matches!(self.hex_digits()?, 0xd800..=0xdbff) {
            return Err(lone);
        }
        let [b'\\', b'u', rest @ ..] = self.rest else { return Err(lone) };
        self.rest = rest;
        if matches!(self.hex_digits()?, 0xdc00..=0xdfff) {
            Ok(())
        } else {
            Err(lone)
        }
    }

    /// Takes four hexadecimal digits.
    fn hex_digits(&mut self) -> Result<u32, Error> {
        if let Some((digits, rest)) = self.rest.split_first_chunk() {
            if let Some(value) = hex_digits(*digits) {
                self.rest = rest;
                return Ok(value);
            }
        }
        while matches!(self.rest, [digit, ..] if digit.is_ascii_hexdigit()) {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        Err(self.unexpected(Expected::HexDigits))
    }

    /// Takes a natural number in plain digits as the value of a field.
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(crate) fn natural(&mut self, field: Field) -> Result<u64, Error> {
        let before = self.clone();
        let mut value: u64 = match self.rest {
            [digit @ b'0'..=b'9', rest @ ..] => {
                self.rest = rest;
                u64::from(digit & 0x0f)
            }
            _ => return Err(before.not_natural(field)),
        };
        let zero = value == 0;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            let tens = value.checked_mul(10);
            match tens.and_then(|tens| tens.checked_add(u64::from(digit & 0x0f))) {
                Some(next) if !zero => value = next,
                _ => return Err(before.not_natural(field)),
            }
            self.rest = rest;
        }
        if let [b'.' | b'e' | b'E', ..] = self.rest {
            return Err(before.not_natural(field));
        }
        Ok(value)
    }

    /// Returns the error for a value that is not a valid natural number.
    #[cold]
    fn not_natural(mut self, field: Field) -> Error {
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return self.wrong_type(field);
        }
        let begin = self.at();
        let text = self.rest;
        let checked = self.number();
        let len = text.len().wrapping_sub(self.rest.len());
        let digits = text.iter().take(len).all(u8::is_ascii_digit);
        match checked {
            Err(error) if error.kind() != ErrorKind::NumberRange => error,
            _ if digits => Error::at(ErrorKind::IntegerOverflow { field }, begin),
            _ => Error::at(ErrorKind::NotNatural { field }, begin),
        }
    }

    /// Takes any number, and checks that it is in the range of `f64`.
    fn number(&mut self) -> Result<(), Error> {
        let begin = self.at();
        self.take(b'-');
        let mut magnitude = Magnitude::default();
        if self.take(b'0') {
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(Error::at(ErrorKind::InvalidNumber, begin));
            }
        } else {
            self.digits(|digit| magnitude.whole(digit))?;
        }
        if self.take(b'.') {
            self.digits(|digit| magnitude.fraction(digit))?;
        }
        if self.take(b'e') || self.take(b'E') {
            let negative = self.take(b'-');
            if !negative {
                self.take(b'+');
            }
            let mut exponent: i64 = 0;
            self.digits(|digit| {
                exponent = exponent.saturating_mul(10).saturating_add(i64::from(digit));
            })?;
            magnitude.scale(if negative { exponent.saturating_neg() } else { exponent });
        }
        if magnitude.is_in_range() {
            Ok(())
        } else {
            Err(Error::at(ErrorKind::NumberRange, begin))
        }
    }

    /// Takes one or more digits.
    fn digits(&mut self, mut each: impl FnMut(u8)) -> Result<(), Error> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(match self.peek() {
                Some(_) => self.error(ErrorKind::InvalidNumber),
                None => self.unexpected(Expected::Digits),
            });
        }
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            each(digit & 0x0f);
            self.rest = rest;
        }
        Ok(())
    }

    /// Takes `literal`: `true`, `false` or `null`.
    pub(crate) fn literal(&mut self, literal: &[u8]) -> Result<(), Error> {
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.unexpected(Expected::Literal)),
        }
    }

    /// Skips white space and a value of any type.
    pub(crate) fn skip_value(&mut self, limits: SkipLimits) -> Result<(), Error> {
        let mut nesting = Nesting::default();
        loop {
            self.skip_whitespace();
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    let depth = nesting.depth.saturating_add(u16::from(limits.open));
                    if depth >= u16::from(limits.depth) {
                        return Err(self.error(ErrorKind::TooDeep { limit: limits.depth }));
                    }
                    self.take(open);
                    self.skip_whitespace();
                    let object = open == b'{';
                    nesting.push(object);
                    if object && !self.take(b'}') {
                        self.key()?.check_len(StringKind::Property, limits.string_bytes)?;
                        continue;
                    }
                    if !object && !self.take(b']') {
                        continue;
                    }
                    nesting.pop();
                }
                Some(b'"') => {
                    self.take(b'"');
                    self.string_body()?.check_len(StringKind::Property, limits.string_bytes)?;
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                _ => return Err(self.unexpected(Expected::Value)),
            }
            // A value has ended. What contains it may end as well.
            loop {
                let Some(object) = nesting.top() else { return Ok(()) };
                if self.comma_or(if object { b'}' } else { b']' })? {
                    if object {
                        self.key()?.check_len(StringKind::Property, limits.string_bytes)?;
                    }
                    break;
                }
                nesting.pop();
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::format;
    use std::prelude::v1::*;

    const LIMITS: SkipLimits = SkipLimits { depth: 128, open: 0, string_bytes: u32::MAX };

    /// Checks that a text is a single value.
    fn check(text: &str) -> Result<(), Error> {
        let mut cursor = Cursor::new(text);
        cursor.skip_value(LIMITS)?;
        cursor.skip_whitespace();
        match cursor.peek() {
            None => Ok(()),
            Some(found) => Err(cursor.error(ErrorKind::AfterHeader { found })),
        }
    }

    /// Checks the same with `serde_json`. Its range check for numbers depends on the target type,
    /// so this parses to a `Value`, as the reference does.
    fn serde(text: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    }

    #[test]
    fn agrees_with_serde_json_on_every_kind_of_token() {
        let tokens = [
            "",
            " ",
            "0",
            "-0",
            "-",
            "+1",
            "01",
            "00",
            "1",
            "10",
            "1.",
            ".1",
            "1.0",
            "1.e1",
            "1e",
            "1e+",
            "1e1",
            "1E+2",
            "1e-2",
            "0.5e-3",
            "1e308",
            "1e309",
            "-1e309",
            "1.7976931348623157e308",
            "1.7976931348623159e308",
            "0e999999999999",
            "0.0e400",
            "0.00001e312",
            "0.00001e314",
            "1e-999999999",
            "123456789012345678901234567890",
            "1e400",
            "true",
            "tru",
            "truE",
            "truex",
            "false",
            "null",
            "nul",
            "NaN",
            "Infinity",
            "\"\"",
            "\"",
            "\"a",
            "\"\\\"",
            "\"\\\"\"",
            "\"\\x41\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\u1234\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\ud800\\udc00\"",
            "\"\\udc00\"",
            "\"\\ud83D\\uDe00\"",
            "\"\\ud800x\"",
            "\"\n\"",
            "\"\u{1f}\"",
            "\"\u{7f}\"",
            "\"é😀\"",
            "\"\\/\\b\\f\\n\\r\\t\\\\\"",
            "[]",
            "[",
            "]",
            "[1]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1,2]",
            "[[]]",
            "[[]",
            "{}",
            "{",
            "}",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{,\"a\":1}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\" : [ { } , 2 ] }",
            "{a:1}",
            "{1:1}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":1,\"a\":2}",
            "[1}",
            "{\"a\":1]",
            "1 2",
            "[] []",
            "\u{b}1",
            "\u{a0}1",
            "\u{feff}1",
            " \t\r\n1 \t\r\n",
        ];
        for token in tokens {
            assert_eq!(check(token).is_ok(), serde(token), "{token:?}: {:?}", check(token));
            let nested = format!("[{{\"k\" : [{token}, 1]}}]");
            assert_eq!(check(&nested).is_ok(), serde(&nested), "{nested:?}: {:?}", check(&nested));
        }
    }

    #[test]
    fn enforces_the_depth_limit_exactly() {
        let nested =
            |open: &str, close: &str, levels| open.repeat(levels) + "0" + &close.repeat(levels);
        for (open, close) in [("[", "]"), ("[{\"a\":", "}]"), ("{\"a\":[", "]}")] {
            let levels_each = open.matches(['[', '{']).count();
            let most = 128 / levels_each;
            assert_eq!(check(&nested(open, close, most)), Ok(()), "{open}");
            let error = check(&nested(open, close, most + 1)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooDeep { limit: 128 });
            let unclosed = check(&open.repeat(100_000)).unwrap_err();
            assert_eq!(unclosed.kind(), ErrorKind::TooDeep { limit: 128 });
        }
    }

    #[test]
    fn natural_numbers_are_exact_and_errors_specific() {
        let natural = |text| Cursor::new(text).natural(Field::Offset);
        assert_eq!(natural("0"), Ok(0));
        assert_eq!(natural("18446744073709551615,"), Ok(u64::MAX));
        assert_eq!(natural("9007199254740993]"), Ok(9_007_199_254_740_993));
        let field = Field::Offset;
        let kinds = [
            ("18446744073709551616", ErrorKind::IntegerOverflow { field }),
            ("99999999999999999999999", ErrorKind::IntegerOverflow { field }),
            ("1.0", ErrorKind::NotNatural { field }),
            ("1e0", ErrorKind::NotNatural { field }),
            ("-0", ErrorKind::NotNatural { field }),
            ("-1", ErrorKind::NotNatural { field }),
            ("1e999", ErrorKind::NotNatural { field }),
            ("01", ErrorKind::InvalidNumber),
            ("00", ErrorKind::InvalidNumber),
            ("1.", ErrorKind::UnexpectedEnd { expected: Expected::Digits }),
            ("1.]", ErrorKind::InvalidNumber),
            ("+1", ErrorKind::UnexpectedByte { found: b'+', expected: Expected::Value }),
            ("true", ErrorKind::WrongType { field, found: JsonType::Bool }),
            ("\"1\"", ErrorKind::WrongType { field, found: JsonType::String }),
            ("", ErrorKind::UnexpectedEnd { expected: Expected::Value }),
        ];
        for (text, kind) in kinds {
            assert_eq!(natural(text).unwrap_err().kind(), kind, "{text:?}");
        }
    }
}
