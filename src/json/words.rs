//! Looking at eight bytes at a time: what may be skipped, and the number that digits are.

use crate::base::convert::to_usize;
use crate::json::text::hex_digits;

/// What is left after some spaces.
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

/// What is left after white space.
#[inline(never)]
pub(super) fn without_whitespace(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\n' | b'\r' | b'\t', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// Skips what may stand in a string as it is: all but the quote, the backslash and control
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

/// Skips what may stand in a string, escapes included, up to its closing quote, and tells whether
/// there were any. `None` if it is not well-formed, has a surrogate pair, or has fewer than eight
/// bytes after it.
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

/// Skips some of what may stand in a string as it is: of names that are spelled as usual, all.
#[inline(always)]
pub(super) fn skip_name(mut rest: &[u8]) -> &[u8] {
    // What is below 0x23 and may stand in a string is the space and the exclamation mark.
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

/// The number that eight digits are, of which the first is the lowest byte, as values below 10.
#[inline(always)]
pub(super) fn eight_digits(digits: u64) -> u64 {
    // Pairs, then fours, then all: each product adds a digit (or number) times its weight to the one
    // after it.
    let pairs = digits.wrapping_mul(1 | 10 << 8) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(1 | 100 << 16) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(1 | 10_000 << 32) >> 32
}

pub(super) const ONES: u64 = 0x0101_0101_0101_0101;
pub(super) const HIGH: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of every byte of `word` that is below that of `bound`, of which all are the
/// same and at most 0x80; and may set it of bytes above the lowest such, as borrows run upwards.
#[inline(always)]
pub(super) fn bytes_below(word: u64, bound: u64) -> u64 {
    word.wrapping_sub(bound) & !word
}

/// Sets the high bit of the lowest byte of `word` that is a quote, a backslash or a control
/// character. Bytes above it may be marked wrongly.
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
}
