//! Reads a tensor's data in pieces, as bytes or as `f64` values. An `f64` holds the values of every
//! dtype but C64; I64 and U64 are rounded above 2^53.

use std::ops::Range;

use safetensors_zero::{dequant, Dtype, FileTensor};

use crate::files::failure::Failure;

/// The number of elements in a piece. A multiple of four, so that no piece begins inside a byte.
pub(crate) const PIECE: u64 = 32 << 10;

/// Buffers for one piece, reused for the next.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    bytes: Vec<u8>,
    singles: Vec<f32>,
    values: Vec<f64>,
}

/// Splits a range of elements into pieces.
pub(crate) fn pieces(elements: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut begin = elements.start;
    std::iter::from_fn(move || {
        if begin >= elements.end {
            return None;
        }
        // The first piece ends at a multiple of `PIECE`, so that the following ones begin on
        // whole bytes.
        let end = (begin - begin % PIECE).saturating_add(PIECE).min(elements.end);
        let piece = begin..end;
        begin = end;
        Some(piece)
    })
}

/// Returns the bytes of a range of elements, partly filled ones included.
pub(crate) fn byte_range(dtype: Dtype, elements: &Range<u64>) -> Range<u64> {
    let bits = dtype.bitsize() as u128;
    let begin = u128::from(elements.start) * bits / 8;
    let end = (u128::from(elements.end) * bits).div_ceil(8);
    let in_file = |byte: u128| u64::try_from(byte).unwrap_or(u64::MAX);
    in_file(begin)..in_file(end)
}

/// Reads a range of a tensor's bytes into the buffer.
pub(crate) fn read_into<'b>(
    tensor: &FileTensor<'_>,
    bytes: Range<u64>,
    buffer: &'b mut Vec<u8>,
) -> Result<&'b [u8], Failure> {
    buffer.resize(usize::try_from(bytes.end - bytes.start).unwrap_or(usize::MAX), 0);
    tensor.read_into_at(bytes.start, buffer)?;
    Ok(buffer)
}

impl Buffers {
    /// Reads the values of a piece.
    pub(crate) fn read(
        &mut self,
        tensor: &FileTensor<'_>,
        piece: &Range<u64>,
    ) -> Result<&[f64], Failure> {
        let Buffers { bytes, singles, values } = self;
        let len = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
        if is_wide(tensor.dtype()) {
            read_into(tensor, byte_range(tensor.dtype(), piece), bytes)?;
            widen(tensor.dtype(), bytes, values);
        } else {
            singles.resize(len, 0.0);
            tensor.dequant_range(piece.start, singles)?;
            values.clear();
            values.extend(singles.iter().map(|single| f64::from(*single)));
        }
        Ok(values)
    }

    /// Converts the bytes of a piece to values. The piece must begin on a whole byte.
    pub(crate) fn widen(&mut self, dtype: Dtype, bytes: &[u8], elements: usize) -> &[f64] {
        let Buffers { singles, values, .. } = self;
        if is_wide(dtype) {
            widen(dtype, bytes, values);
        } else {
            singles.resize(elements, 0.0);
            values.clear();
            if dequant::dequant_range(dtype, bytes, 0, singles).is_ok() {
                values.extend(singles.iter().map(|single| f64::from(*single)));
            }
        }
        values
    }
}

/// Whether the dtype has values that an `f32` cannot hold.
fn is_wide(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F64 | Dtype::I64 | Dtype::U64 | Dtype::I32 | Dtype::U32)
}

fn widen(dtype: Dtype, bytes: &[u8], values: &mut Vec<f64>) {
    values.clear();
    match dtype {
        Dtype::F64 => extend(values, bytes, f64::from_le_bytes),
        Dtype::I64 => extend(values, bytes, |octet| i64::from_le_bytes(octet) as f64),
        Dtype::U64 => extend(values, bytes, |octet| u64::from_le_bytes(octet) as f64),
        Dtype::I32 => extend(values, bytes, |quad| f64::from(i32::from_le_bytes(quad))),
        Dtype::U32 => extend(values, bytes, |quad| f64::from(u32::from_le_bytes(quad))),
        _ => {}
    }
}

fn extend<const N: usize>(values: &mut Vec<f64>, bytes: &[u8], value: impl Fn([u8; N]) -> f64) {
    let groups = bytes.chunks_exact(N).filter_map(|group| group.first_chunk());
    values.extend(groups.map(|group| value(*group)));
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_range_and_begin_on_whole_bytes() {
        for (begin, end) in [(0, 0), (0, 1), (5, PIECE + 5), (PIECE, 3 * PIECE), (7, 7)] {
            let all: Vec<Range<u64>> = pieces(begin..end).collect();
            let mut at = begin;
            for piece in &all {
                assert_eq!(piece.start, at);
                assert!(piece.start == begin || piece.start % 4 == 0);
                assert!(piece.end > piece.start && piece.end - piece.start <= PIECE);
                at = piece.end;
            }
            assert_eq!(at, end);
        }
        assert_eq!(pieces(u64::MAX - 1..u64::MAX).count(), 1);
    }

    #[test]
    fn byte_ranges_include_partial_bytes() {
        assert_eq!(byte_range(Dtype::F4, &(1..3)), 0..2);
        assert_eq!(byte_range(Dtype::F6_E2M3, &(4..8)), 3..6);
        assert_eq!(byte_range(Dtype::F64, &(2..3)), 16..24);
        assert_eq!(byte_range(Dtype::F4, &(0..u64::MAX)), 0..1 << 63);
    }
}
