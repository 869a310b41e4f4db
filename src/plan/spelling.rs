//! How a header is written: compact JSON, as the reference implementation writes it, and strings
//! with the escapes that JSON asks for and no others.

use core::fmt::{self, Write};

use crate::convert::to_u64;
use crate::plan::{PlanTensor, RESERVED};

/// Writes the header's text, without padding.
pub(crate) fn write_header(
    sink: &mut dyn Write,
    metadata: Option<&[(&str, &str)]>,
    tensors: &[PlanTensor<'_>],
) -> fmt::Result {
    let mut before = "{";
    if let Some(metadata) = metadata {
        sink.write_str(before)?;
        write_string(sink, RESERVED)?;
        sink.write_str(":")?;
        write_map(sink, metadata.iter().copied())?;
        before = ",";
    }
    for tensor in tensors {
        sink.write_str(before)?;
        write_entry(sink, tensor)?;
        before = ",";
    }
    sink.write_str(if before == "{" { "{}" } else { "}" })
}

fn write_entry(sink: &mut dyn Write, tensor: &PlanTensor<'_>) -> fmt::Result {
    write_string(sink, tensor.name)?;
    write!(sink, ":{{\"dtype\":\"{}\",\"shape\":[", tensor.dtype)?;
    let mut before = "";
    for dimension in tensor.shape {
        write!(sink, "{before}{dimension}")?;
        before = ",";
    }
    write!(sink, "],\"data_offsets\":[{},{}]}}", tensor.begin, tensor.end)
}

/// Writes an object of strings.
pub(crate) fn write_map<K: AsRef<str>, V: AsRef<str>>(
    sink: &mut dyn Write,
    map: impl IntoIterator<Item = (K, V)>,
) -> fmt::Result {
    let mut before = "{";
    for (key, value) in map {
        sink.write_str(before)?;
        write_string(sink, key.as_ref())?;
        sink.write_str(":")?;
        write_string(sink, value.as_ref())?;
        before = ",";
    }
    sink.write_str(if before == "{" { "{}" } else { "}" })
}

/// Writes a string in quotes: control characters, quotes and backslashes escaped, all others as they
/// are.
pub(crate) fn write_string(sink: &mut dyn Write, string: &str) -> fmt::Result {
    sink.write_str("\"")?;
    let mut rest = string;
    // Every byte that needs an escape is a character by itself.
    while let Some(at) = rest.as_bytes().iter().position(|byte| needs_escape(*byte)) {
        let Some((plain, escaped)) = rest.split_at_checked(at) else { break };
        sink.write_str(plain)?;
        let mut chars = escaped.chars();
        write_escape(sink, chars.next().unwrap_or_default())?;
        rest = chars.as_str();
    }
    sink.write_str(rest)?;
    sink.write_str("\"")
}

fn needs_escape(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | b'"' | b'\\')
}

fn write_escape(sink: &mut dyn Write, c: char) -> fmt::Result {
    match c {
        '"' => sink.write_str("\\\""),
        '\\' => sink.write_str("\\\\"),
        '\u{8}' => sink.write_str("\\b"),
        '\t' => sink.write_str("\\t"),
        '\n' => sink.write_str("\\n"),
        '\u{c}' => sink.write_str("\\f"),
        '\r' => sink.write_str("\\r"),
        _ => write!(sink, "\\u{:04x}", u32::from(c)),
    }
}

/// Writes spaces.
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

/// A sink that keeps nothing but the length of what it is given.
#[derive(Debug, Default)]
pub(crate) struct Measure {
    len: u64,
}

impl Measure {
    /// Bytes that were written.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

impl Write for Measure {
    fn write_str(&mut self, string: &str) -> fmt::Result {
        self.len = self.len.saturating_add(to_u64(string.len()));
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn strings_are_spelled_as_serde_json_spells_them() {
        let mut all: Vec<String> =
            (0..0x300).filter_map(char::from_u32).map(String::from).collect();
        all.extend(["", "a\"b\\c", "\0\0", "é\n😀\u{7f}\u{2028}x"].map(String::from));
        for string in all {
            let mut written = String::new();
            write_string(&mut written, &string).unwrap();
            assert_eq!(written, serde_json::to_string(&string).unwrap());
        }
    }

    #[test]
    fn padding_has_its_length() {
        for len in [0, 1, 63, 64, 65, 4095, 4096] {
            let mut written = String::new();
            write_padding(&mut written, len).unwrap();
            assert_eq!(to_u64(written.len()), len);
            assert!(written.bytes().all(|byte| byte == b' '));
        }
    }
}
