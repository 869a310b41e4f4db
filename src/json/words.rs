//! Scanning and number parsing, eight or sixteen bytes at a time.

use crate::base::convert::to_usize;
use crate::json::text::hex_digits;

/// Skips spaces, and returns the rest. Fewer than eight bytes at the end are not examined.
#[inline(always)]
pub(super) fn without_spaces(mut rest: &[u8]) -> &[u8] {
    while let Some((word, after)) = rest.split_first_chunk() {
        let others = u64::from_le_bytes(*word) ^ 0x2020_2020_2020_2020;
        if others != 0 {
            return rest.get(to_usize(others.trailing_zeros() >> 3)..).unwrap_or_default();
        }
        rest = after;
    }
    rest
}

/// Skips white space, and returns the rest.
#[inline(never)]
pub(super) fn without_whitespace(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\n' | b'\r' | b'\t', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// Skips characters that need no escape in a string: all but quotes, backslashes and control
/// characters.
#[inline]
pub(crate) fn skip_plain(mut rest: &[u8]) -> &[u8] {
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

/// Skips the rest of a string up to its closing quote. Returns what is left, and whether the string
/// has escapes. Returns `None` if the string is not well-formed, has surrogates, or ends too
/// close to the end of the text to be read eight bytes at a time.
#[inline(never)]
pub(super) fn skip_escaped(mut rest: &[u8]) -> Option<(&[u8], bool)> {
    let mut escaped = false;
    loop {
        let special = special_bytes(u64::from_le_bytes(*rest.first_chunk()?));
        rest = rest.get(to_usize(special.trailing_zeros() >> 3)..)?;
        if special == 0 {
            continue;
        }
        rest = match rest {
            [b'"', ..] => return Some((rest, escaped)),
            [b'\\', b'u', a, b, c, d, after @ ..] => match hex_digits([*a, *b, *c, *d]) {
                Some(0..=0xd7ff | 0xe000..) => after,
                _ => return None,
            },
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', after @ ..] => after,
            _ => return None,
        };
        escaped = true;
    }
}

/// Like [`skip_plain`], but faster, and can stop early at a character that is not special.
#[inline(always)]
pub(super) fn skip_name(mut rest: &[u8]) -> &[u8] {
    // Everything below 0x23 counts as special, including the space and `!`, which are not.
    let special = |word: u64| {
        let below = bytes_below(word, 0x2323_2323_2323_2323);
        (below | bytes_below(word ^ 0x5c5c_5c5c_5c5c_5c5c, ONES)) & HIGH
    };
    while let Some((words, tail)) = rest.split_first_chunk::<16>() {
        let words = u128::from_le_bytes(*words);
        let low = special(u64::try_from(words & u128::from(u64::MAX)).unwrap_or(0));
        let high = special(u64::try_from(words >> 64).unwrap_or(0));
        if low | high != 0 {
            let zeros = if low != 0 { low.trailing_zeros() } else { high.trailing_zeros() | 64 };
            return rest.get(to_usize(zeros >> 3)..).unwrap_or_default();
        }
        rest = tail;
    }
    skip_plain(rest)
}

/// Returns the number that eight digits form. Each byte is a digit's value; the first digit is in
/// the lowest byte.
#[inline(always)]
pub(super) fn eight_digits(digits: u64) -> u64 {
    // Pairs, then fours, then all eight: each product adds a number times its weight to the next
    // one.
    let pairs = digits.wrapping_mul(1 | 10 << 8) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(1 | 100 << 16) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(1 | 10_000 << 32) >> 32
}

pub(super) const ONES: u64 = 0x0101_0101_0101_0101;
pub(super) const HIGH: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of every byte of `word` that is below the one in `bound`, whose bytes must all
/// be equal and at most 0x80. Since borrows propagate upwards, bytes above the lowest match can be
/// marked wrongly.
#[inline(always)]
pub(super) fn bytes_below(word: u64, bound: u64) -> u64 {
    word.wrapping_sub(bound) & !word
}

/// Sets the high bit of the lowest byte of `word` that is a quote, a backslash or a control
/// character. Bytes above it can be marked wrongly.
#[inline(always)]
pub(super) fn special_bytes(word: u64) -> u64 {
    let quote = bytes_below(word ^ 0x2222_2222_2222_2222, ONES);
    let backslash = bytes_below(word ^ 0x5c5c_5c5c_5c5c_5c5c, ONES);
    let control = bytes_below(word, 0x2020_2020_2020_2020);
    (quote | backslash | control) & HIGH
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_finds_the_first_at_every_position() {
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
}
