//! Compares two tensors piece by piece.

use safetensors_zero::FileTensor;

use crate::files::failure::Failure;
use crate::files::values::{self, Buffers};
use crate::show::diff::Difference;
use crate::show::progress::Progress;

/// Compares dtype, shape, bytes and values. Returns `None` if all are equal.
pub(crate) fn compare(
    a: &FileTensor<'_>,
    b: &FileTensor<'_>,
    progress: &Progress,
) -> Result<Option<Difference>, Failure> {
    let all = a.byte_len().saturating_add(b.byte_len());
    if a.shape() != b.shape() {
        progress.add(all);
        return Ok(Some(Difference::default()));
    }
    let same_dtype = a.dtype() == b.dtype();
    let has_values = a.dtype().has_f32() && b.dtype().has_f32();
    if !same_dtype && !has_values {
        progress.add(all);
        return Ok(Some(Difference::default()));
    }
    let mut difference = Difference { differing: has_values.then_some(0), ..Default::default() };
    let mut differs = !same_dtype;
    let (mut buffer_a, mut buffer_b) = (Vec::new(), Vec::new());
    let (mut values_a, mut values_b) = (Buffers::default(), Buffers::default());
    progress.for_each_piece(0..a.elements(), &[a.dtype(), b.dtype()], |piece| {
        let bytes_a = values::byte_range(a.dtype(), &piece);
        let bytes_b = values::byte_range(b.dtype(), &piece);
        let bytes_a = values::read_into(a, bytes_a, &mut buffer_a)?;
        let bytes_b = values::read_into(b, bytes_b, &mut buffer_b)?;
        if same_dtype && bytes_a == bytes_b {
            return Ok(());
        }
        differs = true;
        if has_values {
            let len = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
            let values_a = values_a.widen(a.dtype(), bytes_a, len);
            let values_b = values_b.widen(b.dtype(), bytes_b, len);
            values_a.iter().zip(values_b).for_each(|(a, b)| add(&mut difference, *a, *b));
        }
        Ok(())
    })?;
    Ok(differs.then_some(difference))
}

/// Adds the two values of an element.
fn add(difference: &mut Difference, a: f64, b: f64) {
    if a == b || (a.is_nan() && b.is_nan()) {
        return;
    }
    difference.differing = difference.differing.map(|count| count + 1);
    if !a.is_finite() || !b.is_finite() {
        return;
    }
    let absolute = (a - b).abs();
    let larger = a.abs().max(b.abs());
    // Divided first, since the difference can overflow.
    let relative = (a / larger - b / larger).abs();
    let largest =
        |before: Option<f64>, now: f64| Some(before.map_or(now, |before| before.max(now)));
    difference.max_abs = largest(difference.max_abs, absolute);
    difference.max_rel = largest(difference.max_rel, relative);
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Difference {
        let mut difference = Difference { differing: Some(0), ..Default::default() };
        pairs.iter().for_each(|(a, b)| add(&mut difference, *a, *b));
        difference
    }

    #[test]
    fn differences_of_values() {
        let nan = f64::NAN;
        let same = of(&[(1.0, 1.0), (0.0, -0.0), (nan, -nan), (f64::INFINITY, f64::INFINITY)]);
        assert_eq!((same.differing, same.max_abs, same.max_rel), (Some(0), None, None));
        let found = of(&[(1.0, 2.0), (-4.0, 4.0), (nan, 1.0), (f64::INFINITY, 1.0)]);
        assert_eq!(
            (found.differing, found.max_abs, found.max_rel),
            (Some(4), Some(8.0), Some(2.0))
        );
        let found = of(&[(0.0, 3.0)]);
        assert_eq!((found.max_abs, found.max_rel), (Some(3.0), Some(1.0)));
        let found = of(&[(f64::MAX, -f64::MAX)]);
        assert_eq!((found.max_abs, found.max_rel), (Some(f64::INFINITY), Some(2.0)));
    }
}
