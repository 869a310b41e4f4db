//! Two tensors of one name, compared piece by piece.

use safetensors_zero::FileTensor;

use crate::failure::Failure;
use crate::numbers;
use crate::progress::Progress;
use crate::values::{self, Buffers};

/// In what two tensors differ, besides dtype and shape.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Difference {
    /// Elements whose values differ. `None` if they were not compared.
    pub(crate) differing: Option<u64>,
    /// The largest difference between finite values that differ.
    pub(crate) max_abs: Option<f64>,
    /// The largest difference by the larger size of the two.
    pub(crate) max_rel: Option<f64>,
}

/// Compares dtype, shape, bytes and values. `None` if all are the same.
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
    for piece in values::pieces(0..a.elements()) {
        let bytes_a = values::byte_range(a.dtype(), &piece);
        let bytes_b = values::byte_range(b.dtype(), &piece);
        progress.add((bytes_a.end - bytes_a.start) + (bytes_b.end - bytes_b.start));
        let bytes_a = values::read_bytes(a, bytes_a, &mut buffer_a)?;
        let bytes_b = values::read_bytes(b, bytes_b, &mut buffer_b)?;
        if same_dtype && bytes_a == bytes_b {
            continue;
        }
        differs = true;
        if has_values {
            let len = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
            let values_a = values_a.widen(a.dtype(), bytes_a, len);
            let values_b = values_b.widen(b.dtype(), bytes_b, len);
            values_a.iter().zip(values_b).for_each(|(a, b)| difference.add(*a, *b));
        }
    }
    Ok(differs.then_some(difference))
}

impl Difference {
    fn add(&mut self, a: f64, b: f64) {
        if a == b || (a.is_nan() && b.is_nan()) {
            return;
        }
        self.differing = self.differing.map(|count| count + 1);
        if !a.is_finite() || !b.is_finite() {
            return;
        }
        let absolute = (a - b).abs();
        // Of halves where the difference is beyond f64.
        let larger = a.abs().max(b.abs());
        let relative = (a / larger - b / larger).abs();
        let largest =
            |before: Option<f64>, now: f64| Some(before.map_or(now, |before| before.max(now)));
        self.max_abs = largest(self.max_abs, absolute);
        self.max_rel = largest(self.max_rel, relative);
    }

    /// What is said of it, besides dtype and shape.
    pub(crate) fn in_words(&self, elements: u64) -> Vec<String> {
        let mut said = Vec::new();
        match self.differing {
            None => {}
            Some(0) => said.push("equal values".to_owned()),
            Some(count) => {
                let of = numbers::grouped(elements);
                said.push(format!("{} of {of} values differ", numbers::grouped(count)));
            }
        }
        if let Some(most) = self.max_abs {
            said.push(format!("at most by {}", numbers::short(most)));
        }
        if let Some(most) = self.max_rel {
            said.push(format!("relatively {}", numbers::short(most)));
        }
        said
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Difference {
        let mut difference = Difference { differing: Some(0), ..Default::default() };
        pairs.iter().for_each(|(a, b)| difference.add(*a, *b));
        difference
    }

    #[test]
    fn values() {
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
