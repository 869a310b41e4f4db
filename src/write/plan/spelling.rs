//! The text of a header: compact JSON, as the reference implementation writes it. Strings have only
//! the escapes that JSON requires.
//!
//! The same code writes the text and measures its length.

use core::fmt::{self, Write};

use crate::base::convert::to_u64;
use crate::json::tokenizer::skip_plain;
use crate::write::plan::{PlanTensor, RESERVED};

/// A destination for JSON text.
pub(crate) trait Out {
    fn text(&mut self, text: &str) -> fmt::Result;
    /// Writes a number in decimal.
    fn number(&mut self, number: u64) -> fmt::Result;
}

/// An [`Out`] that writes to a [`Write`].
pub(crate) struct TextWriter<'w>(pub(crate) &'w mut dyn Write);

impl Out for TextWriter<'_> {
    #[inline]
    fn text(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text)
    }

    fn number(&mut self, number: u64) -> fmt::Result {
        // `write!` is several times slower.
        let mut digits = [0; 20];
        let (mut rest, mut begin) = (number, digits.len());
        for slot in digits.iter_mut().rev() {
            let tenth = rest.wrapping_div(10);
            let digit = u8::try_from(rest.wrapping_sub(tenth.wrapping_mul(10))).unwrap_or(0);
            *slot = digit | b'0';
            begin = begin.wrapping_sub(1);
            rest = tenth;
            if rest == 0 {
                break;
            }
        }
        let digits = digits.get(begin..).unwrap_or_default();
        self.0.write_str(core::str::from_utf8(digits).unwrap_or_default())
    }
}

/// An [`Out`] that only counts bytes. It never fails.
#[derive(Debug, Default)]
pub(crate) struct Measure {
    len: u64,
}

impl Measure {
    /// Returns the number of bytes written.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

impl Out for Measure {
    #[inline]
    fn text(&mut self, text: &str) -> fmt::Result {
        self.len = self.len.saturating_add(to_u64(text.len()));
        Ok(())
    }

    #[inline]
    fn number(&mut self, number: u64) -> fmt::Result {
        let digits = number.checked_ilog10().unwrap_or(0).saturating_add(1);
        self.len = self.len.saturating_add(u64::from(digits));
        Ok(())
    }
}

/// A buffer filled through [`Write`].
pub(super) struct Sink<'b> {
    buffer: &'b mut [u8],
    len: usize,
}

impl<'b> Sink<'b> {
    pub(super) fn new(buffer: &'b mut [u8]) -> Self {
        Sink { buffer, len: 0 }
    }

    /// Returns the number of bytes written.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Writes all of the bytes. If they do not fit, writes nothing and returns `None`.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len.checked_add(bytes.len())?;
        self.buffer.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }
}

impl Write for Sink<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.push(s.as_bytes()).ok_or(fmt::Error)
    }
}

/// Writes the header's text, without padding.
pub(crate) fn write_header(
    out: &mut impl Out,
    metadata: Option<&[(&str, &str)]>,
    tensors: &[PlanTensor<'_>],
) -> fmt::Result {
    let mut before = "{";
    if let Some(metadata) = metadata {
        out.text(before)?;
        write_string(out, RESERVED)?;
        out.text(":")?;
        write_map(out, metadata.iter().copied())?;
        before = ",";
    }
    for tensor in tensors {
        out.text(before)?;
        write_entry(out, tensor)?;
        before = ",";
    }
    out.text(if before == "{" { "{}" } else { "}" })
}

fn write_entry(out: &mut impl Out, tensor: &PlanTensor<'_>) -> fmt::Result {
    write_string(out, tensor.name)?;
    out.text(":{\"dtype\":\"")?;
    out.text(tensor.dtype.as_str())?;
    out.text("\",\"shape\":[")?;
    let mut before = "";
    for dimension in tensor.shape {
        out.text(before)?;
        out.number(dimension)?;
        before = ",";
    }
    out.text("],\"data_offsets\":[")?;
    out.number(tensor.begin)?;
    out.text(",")?;
    out.number(tensor.end)?;
    out.text("]}")
}

/// Writes an object whose values are strings.
pub(crate) fn write_map<K: AsRef<str>, V: AsRef<str>>(
    out: &mut impl Out,
    map: impl IntoIterator<Item = (K, V)>,
) -> fmt::Result {
    let mut before = "{";
    for (key, value) in map {
        out.text(before)?;
        write_string(out, key.as_ref())?;
        out.text(":")?;
        write_string(out, value.as_ref())?;
        before = ",";
    }
    out.text(if before == "{" { "{}" } else { "}" })
}

/// Writes a quoted string. Only control characters, quotes and backslashes are escaped.
pub(crate) fn write_string(out: &mut impl Out, string: &str) -> fmt::Result {
    out.text("\"")?;
    let mut rest = string;
    loop {
        // Every character that needs an escape is one byte long, so this splits at a boundary.
        let plain = rest.len().saturating_sub(skip_plain(rest.as_bytes()).len());
        let Some((plain, escaped)) = rest.split_at_checked(plain) else { break };
        out.text(plain)?;
        let mut chars = escaped.chars();
        let Some(c) = chars.next() else { break };
        write_escape(out, c)?;
        rest = chars.as_str();
    }
    out.text("\"")
}

fn write_escape(out: &mut impl Out, c: char) -> fmt::Result {
    const HEX: [&str; 16] =
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"];
    match c {
        '"' => out.text("\\\""),
        '\\' => out.text("\\\\"),
        '\u{8}' => out.text("\\b"),
        '\t' => out.text("\\t"),
        '\n' => out.text("\\n"),
        '\u{c}' => out.text("\\f"),
        '\r' => out.text("\\r"),
        // Only control characters below 0x20 are left.
        _ => {
            let low = usize::try_from(u32::from(c) & 0x0f).unwrap_or(0);
            out.text(if u32::from(c) < 0x10 { "\\u000" } else { "\\u001" })?;
            out.text(HEX.get(low).copied().unwrap_or_default())
        }
    }
}

/// Writes `len` spaces.
pub(crate) fn write_padding(sink: &mut dyn Write, len: u64) -> fmt::Result {
    const SPACES: &str = "                                                                ";
    let mut left = len;
    while left > 0 {
        let count = left.min(to_u64(SPACES.len()));
        let spaces = usize::try_from(count).ok().and_then(|count| SPACES.get(..count));
        sink.write_str(spaces.unwrap_or_default())?;
        left = left.saturating_sub(count);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn strings_match_serde_json() {
        let mut all: Vec<String> =
            (0..0x300).filter_map(char::from_u32).map(String::from).collect();
        all.extend(
            ["", "a\"b\\c", "\0\0", "é\n😀\u{7f}\u{2028}x", "123456789\u{1}0\""].map(String::from),
        );
        for string in all {
            let mut written = String::new();
            write_string(&mut TextWriter(&mut written), &string).unwrap();
            assert_eq!(written, serde_json::to_string(&string).unwrap());
            let mut measure = Measure::default();
            write_string(&mut measure, &string).unwrap();
            assert_eq!(measure.len(), to_u64(written.len()));
        }
    }

    #[test]
    fn numbers_match_to_string() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let edges = powers.flat_map(|power| [power - 1, power, power + 1]);
        for number in edges.chain([u64::MAX, u64::MAX - 1]) {
            let mut written = String::new();
            TextWriter(&mut written).number(number).unwrap();
            assert_eq!(written, number.to_string());
            let mut measure = Measure::default();
            measure.number(number).unwrap();
            assert_eq!(measure.len(), to_u64(written.len()));
        }
    }

    #[test]
    fn padding_has_the_requested_length() {
        for len in [0, 1, 63, 64, 65, 4095, 4096] {
            let mut written = String::new();
            write_padding(&mut written, len).unwrap();
            assert_eq!(to_u64(written.len()), len);
            assert!(written.bytes().all(|byte| byte == b' '));
        }
    }
}
