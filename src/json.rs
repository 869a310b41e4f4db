//! A bounded pull tokenizer for JSON: structure, strings, natural numbers, and values skipped
//! whole. It knows no format, allocates nothing and does not recurse.
//!
//! How this file works: a [`Cursor`] holds what is left of a text that is known to be UTF-8. Every
//! step looks at the first bytes of that rest by slice patterns, which cannot be out of bounds, and
//! replaces it by a shorter one. So no step can panic, every loop ends, and time is linear. What to
//! keep: no index arithmetic, and no step that looks at a byte more than a constant number of times.
//!
//! JSON here is RFC 8259 with what its parsers agree on: a string is characters (no lone
//! surrogates), a number is within the range of an `f64`, nesting has a bound.

use crate::convert::{to_u32, to_usize};
use crate::error::{Error, ErrorKind, Expected, Field, JsonType, StringKind};
use crate::text::Str;

/// The bounds on a value that is skipped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkipLimits {
    /// Levels of nesting, those that are open already included.
    pub(crate) depth: u8,
    /// Levels that are open already.
    pub(crate) open: u8,
    /// Bytes of a string, decoded.
    pub(crate) string_bytes: u32,
}

/// What is left of a text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// Length of the whole text.
    len: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Cursor { rest: text.as_bytes(), len: text.len() }
    }

    /// The position in the text of what comes next.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        // Never wraps: the rest is a part of the text.
        self.len.wrapping_sub(self.rest.len())
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::at(kind, self.at())
    }

    /// The error that something else is here than what has to be.
    #[cold]
    pub(crate) fn unexpected(&self, expected: Expected) -> Error {
        self.error(match self.peek() {
            Some(found) => ErrorKind::UnexpectedByte { found, expected },
            None => ErrorKind::UnexpectedEnd { expected },
        })
    }

    /// The error that the value here is of another type than the field's.
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

    /// Skips the four white-space characters of JSON.
    #[inline]
    pub(crate) fn skip_whitespace(&mut self) {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Takes the byte if it comes next.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Takes the byte, after white space, or fails.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, expected: Expected) -> Result<(), Error> {
        self.skip_whitespace();
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    /// After an element of an object or array: takes the comma that another one follows, or the
    /// bracket that closes it, and tells whether it was the comma.
    #[inline]
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

    /// Takes a string, as the value of a field.
    #[inline]
    pub(crate) fn string(&mut self, field: Field) -> Result<Str<'a>, Error> {
        if self.take(b'"') {
            self.string_body()
        } else {
            Err(self.wrong_type(field))
        }
    }

    /// Takes what follows the opening quote of a string, and its closing quote.
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

    /// Takes an escape, or the two that make a surrogate pair.
    fn escape(&mut self) -> Result<(), Error> {
        let begin = self.at();
        let lone = || Error::at(ErrorKind::LoneSurrogate, begin);
        match self.rest {
            [_, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => {
                self.rest = rest;
                Ok(())
            }
            [_, b'u', rest @ ..] => {
                self.rest = rest;
                match self.hex_digits()? {
                    0xd800..=0xdbff => {
                        let [b'\\', b'u', rest @ ..] = self.rest else { return Err(lone()) };
                        self.rest = rest;
                        if matches!(self.hex_digits()?, 0xdc00..=0xdfff) {
                            Ok(())
                        } else {
                            Err(lone())
                        }
                    }
                    0xdc00..=0xdfff => Err(lone()),
                    _ => Ok(()),
                }
            }
            [_, _, ..] => Err(self.error(ErrorKind::InvalidEscape)),
            _ => {
                self.rest = &[];
                Err(self.unexpected(Expected::ClosingQuote))
            }
        }
    }

    fn hex_digits(&mut self) -> Result<u32, Error> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let (Some(digit), [_, rest @ ..]) = (digit, self.rest) else {
                return Err(self.unexpected(Expected::HexDigits));
            };
            value = (value << 4) | digit;
            self.rest = rest;
        }
        Ok(value)
    }

    /// Takes a natural number written in digits alone, as the value of a field.
    #[inline]
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

    /// Which rule is broken by what stands here in place of a natural number.
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

    /// Takes a number of any form, and checks that an `f64` can hold its magnitude.
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

    /// Takes `true`, `false` or `null`, whichever is asked for.
    pub(crate) fn literal(&mut self, literal: &[u8]) -> Result<(), Error> {
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.unexpected(Expected::Literal)),
        }
    }

    /// Takes a value of any type, after white space.
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
            // A value has ended; so may what it is in.
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

/// Skips what may stand in a string as it is: all but the quote, the backslash and control
/// characters.
#[inline]
fn skip_plain(mut rest: &[u8]) -> &[u8] {
    while let Some((word, tail)) = rest.split_first_chunk::<8>() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            let plain = to_usize(special.trailing_zeros() >> 3);
            return rest.get(plain..).unwrap_or_default();
        }
        rest = tail;
    }
    while let [byte, tail @ ..] = rest {
        if matches!(byte, b'"' | b'\\' | 0..=0x1f) {
            break;
        }
        rest = tail;
    }
    rest
}

/// Sets the high bit of the lowest byte of `word` that is a quote, a backslash or a control
/// character. Bytes above it may be marked wrongly, as borrows run upwards.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ 0x2222_2222_2222_2222;
    let backslash = word ^ 0x5c5c_5c5c_5c5c_5c5c;
    let below = |value: u64, bound: u64| value.wrapping_sub(bound) & !value;
    (below(quote, ONES) | below(backslash, ONES) | below(word, 0x2020_2020_2020_2020)) & HIGH
}

/// Which brackets are open, one bit a level: set for an object, clear for an array.
#[derive(Debug, Default)]
struct Nesting {
    /// The innermost level is the lowest bit of the first word.
    bits: [u64; 4],
    depth: u16,
}

impl Nesting {
    /// At most 255 times more than `pop`: the bound on depth is a `u8`.
    fn push(&mut self, object: bool) {
        let mut carry = u64::from(object);
        for word in &mut self.bits {
            let out = *word >> 63;
            *word = (*word << 1) | carry;
            carry = out;
        }
        self.depth = self.depth.saturating_add(1);
    }

    fn pop(&mut self) {
        let mut carry = 0;
        for word in self.bits.iter_mut().rev() {
            let out = *word << 63;
            *word = (*word >> 1) | carry;
            carry = out;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// Whether the innermost open bracket is an object's.
    fn top(&self) -> Option<bool> {
        let [first, ..] = self.bits;
        (self.depth > 0).then_some(first & 1 == 1)
    }
}

/// How large a decimal number is, as far as it takes to compare it with the largest `f64`.
#[derive(Debug, Default)]
struct Magnitude {
    /// The first 17 digits from the first that is not zero.
    leading: u64,
    /// How many digits that is.
    count: u8,
    /// The decimal exponent of the first of them; meaningless while there is none.
    exponent: i64,
    /// Zeros after the point, before the first digit that is not zero.
    zeros: i64,
}

impl Magnitude {
    fn push(&mut self, digit: u8) {
        if self.count < 17 {
            self.leading = self.leading.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.count = self.count.wrapping_add(1);
        }
    }

    fn whole(&mut self, digit: u8) {
        if self.count > 0 {
            self.exponent = self.exponent.saturating_add(1);
        }
        self.push(digit);
    }

    fn fraction(&mut self, digit: u8) {
        if self.count == 0 {
            self.zeros = self.zeros.saturating_add(1);
            if digit == 0 {
                return;
            }
            self.exponent = self.zeros.saturating_neg();
        }
        self.push(digit);
    }

    fn scale(&mut self, exponent: i64) {
        self.exponent = self.exponent.saturating_add(exponent);
    }

    /// The largest `f64` is 1.7976931348623157e308.
    fn is_in_range(&self) -> bool {
        if self.count == 0 || self.exponent < 308 {
            return true;
        }
        let missing = u32::from(17_u8.saturating_sub(self.count));
        let leading = self.leading.saturating_mul(10_u64.saturating_pow(missing));
        self.exponent == 308 && leading <= 17_976_931_348_623_157
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::format;
    use std::prelude::v1::*;

    const LIMITS: SkipLimits = SkipLimits { depth: 128, open: 0, string_bytes: u32::MAX };

    /// The verdict on a text that has to be one value.
    fn check(text: &str) -> Result<(), Error> {
        let mut cursor = Cursor::new(text);
        cursor.skip_value(LIMITS)?;
        cursor.skip_whitespace();
        match cursor.peek() {
            None => Ok(()),
            Some(found) => Err(cursor.error(ErrorKind::AfterHeader { found })),
        }
    }

    /// `serde_json` reads numbers of many digits in ways of its own, so what it says of the range is
    /// taken from a `Value`, as the reference does.
    fn serde(text: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    }

    #[test]
    fn agrees_with_serde_json_on_every_form_of_token() {
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
    fn depth_is_bounded_to_the_level() {
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
    fn nesting_remembers_every_level() {
        let mut nesting = Nesting::default();
        let object = |level: u16| level % 3 == 0 || level % 7 == 2;
        for level in 0..255 {
            assert_eq!(nesting.depth, level);
            nesting.push(object(level));
        }
        for level in (0..255).rev() {
            assert_eq!(nesting.top(), Some(object(level)));
            nesting.pop();
        }
        assert_eq!(nesting.top(), None);
    }

    #[test]
    fn special_bytes_finds_the_first_in_every_place() {
        for byte in 0..=255_u8 {
            for place in 0..8 {
                let mut word = *b"plain\xff\x80 ";
                word[place] = byte;
                let special = special_bytes(u64::from_le_bytes(word));
                let expected = matches!(byte, b'"' | b'\\' | 0..=0x1f);
                assert_eq!(special != 0, expected, "{byte:#x}");
                if expected {
                    assert_eq!(special.trailing_zeros() / 8, u32::try_from(place).unwrap());
                }
            }
        }
    }

    #[test]
    fn naturals_are_exact_and_say_what_is_wrong() {
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
