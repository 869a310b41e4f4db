//! The NumPy file format: its header and its names for dtypes.

use safetensors_zero::Dtype;

/// Returns NumPy's type descriptor for a dtype, or that of `f32` if NumPy does not have the dtype.
pub(crate) fn descr(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::BOOL => "|b1",
        Dtype::U8 => "|u1",
        Dtype::I8 => "|i1",
        Dtype::U16 => "<u2",
        Dtype::I16 => "<i2",
        Dtype::F16 => "<f2",
        Dtype::U32 => "<u4",
        Dtype::I32 => "<i4",
        Dtype::U64 => "<u8",
        Dtype::I64 => "<i8",
        Dtype::F64 => "<f8",
        Dtype::C64 => "<c8",
        _ => "<f4",
    }
}

/// Whether NumPy has the dtype, so that stored bytes can be copied unchanged.
pub(crate) fn is_own(dtype: Dtype) -> bool {
    dtype == Dtype::F32 || descr(dtype) != "<f4"
}

/// Returns the header for an array with this shape, in C order. It has version 1.0, or 2.0 if it is
/// too long for that, and is padded so that the array begins at a multiple of 64.
pub(crate) fn header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let mut dimensions: String = shape.iter().map(|dimension| format!("{dimension}, ")).collect();
    let end =
        if shape.len() == 1 { dimensions.len() - 1 } else { dimensions.len().saturating_sub(2) };
    dimensions.truncate(end);
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dimensions}), }}");
    let is_long = text.len() + 128 > usize::from(u16::MAX);
    let frame = if is_long { 12 } else { 10 };
    let padded = (frame + text.len() + 1).next_multiple_of(64) - frame;
    while text.len() + 1 < padded {
        text.push(' ');
    }
    text.push('\n');
    let mut header = b"\x93NUMPY".to_vec();
    if is_long {
        header.extend([2, 0]);
        header.extend((text.len() as u32).to_le_bytes());
    } else {
        header.extend([1, 0]);
        header.extend((text.len() as u16).to_le_bytes());
    }
    header.extend(text.as_bytes());
    header
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_valid_at_every_rank() {
        let text = |shape: &[u64]| String::from_utf8(header("<f4", shape)[10..].to_vec()).unwrap();
        assert!(text(&[]).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (), }"));
        assert!(text(&[7]).contains("'shape': (7,), }"));
        assert!(text(&[10, 8]).contains("'shape': (10, 8), }"));
        for rank in [0, 1, 2, 64, 10_000, 21_800, 21_900] {
            let header = header("<f4", &vec![1; rank]);
            assert_eq!((header.len() % 64, header.last()), (0, Some(&b'\n')), "{rank}");
            assert_eq!(&header[..6], b"\x93NUMPY");
            let len = match header[6] {
                1 => 10 + usize::from(u16::from_le_bytes([header[8], header[9]])),
                _ => 12 + u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize,
            };
            assert_eq!(len, header.len());
        }
    }
}
