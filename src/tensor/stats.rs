//! Statistics of a tensor's values, in one pass over its data.

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::tensor::dequant;
use crate::tensor::view::TensorView;

/// Statistics of a tensor's values: counts by kind, and the distribution of the finite values.
///
/// All statistics are computed in `f64`. F64, I64 and U64 values are not rounded to `f32` first.
/// I64 and U64 values beyond 2^53 are rounded to `f64`. `min`, `max`, `mean` and `std_dev` are
/// `None` if no value is finite.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The number of values.
    pub count: u64,
    /// The number of finite values: those that are not NaN or infinite.
    pub finite: u64,
    /// The number of NaN values, of either sign.
    pub nan: u64,
    /// The number of values that are positive infinity.
    pub positive_infinity: u64,
    /// The number of values that are negative infinity.
    pub negative_infinity: u64,
    /// The number of zeros, of either sign.
    pub zeros: u64,
    /// The smallest finite value.
    pub min: Option<f64>,
    /// The largest finite value.
    pub max: Option<f64>,
    /// The mean of the finite values.
    pub mean: Option<f64>,
    /// The population standard deviation of the finite values. Infinite if the square of a
    /// deviation overflows `f64`, which happens from about 1e154.
    pub std_dev: Option<f64>,
}

impl TensorView<'_> {
    /// Computes statistics of the tensor's values in one pass, in constant memory and in time
    /// linear in the data.
    ///
    /// ```
    /// # use safetensors_zero::{Dtype, TensorView};
    /// let view = TensorView::new(Dtype::F8_E5M2, &[5], &[0x3c, 0x40, 0x7c, 0x7e, 0x00])?;
    /// let stats = view.stats()?; // 1, 2, infinity, NaN, 0
    /// assert_eq!((stats.count, stats.finite, stats.nan, stats.zeros), (5, 3, 1, 1));
    /// assert_eq!((stats.min, stats.max, stats.mean), (Some(0.0), Some(2.0), Some(1.0)));
    /// # Ok::<(), safetensors_zero::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NoF32`](ErrorKind::NoF32) for C64.
    pub fn stats(&self) -> Result<Stats, Error> {
        let mut accumulator = Accumulator::new(self.dtype())?;
        accumulator.push(self.data());
        Ok(accumulator.finish())
    }
}

/// Computes [`Stats`] from data that arrives in pieces.
#[derive(Debug, Clone, Copy)]
pub struct Accumulator {
    dtype: Dtype,
    /// The size in bytes of a block of elements.
    block_bytes: usize,
    stats: Stats,
    mean: f64,
    /// The sum of the squared deviations from the mean.
    squares: f64,
}

/// The number of elements processed at a time, in buffers on the stack.
const BLOCK: usize = 32;

impl Accumulator {
    /// Creates an accumulator for elements of this dtype.
    ///
    /// # Errors
    /// [`NoF32`](ErrorKind::NoF32) for C64, whose values have no order.
    pub fn new(dtype: Dtype) -> Result<Accumulator, Error> {
        if !dtype.has_f32() {
            return Err(Error::new(ErrorKind::NoF32 { dtype }));
        }
        let block_bytes = dtype.bitsize().saturating_mul(BLOCK) >> 3;
        Ok(Accumulator { dtype, block_bytes, stats: Stats::default(), mean: 0.0, squares: 0.0 })
    }

    /// Adds the elements of a piece of data. The piece must begin and end between elements: on a
    /// multiple of the element size, or of three bytes for the two F6 dtypes. Bytes left over at
    /// the end are ignored.
    pub fn push(&mut self, data: &[u8]) {
        let mut block = [0.0; BLOCK];
        for bytes in data.chunks(self.block_bytes.max(1)) {
            let elements = self.dtype.elements_in(to_u64(bytes.len()));
            let len = usize::try_from(elements).unwrap_or(BLOCK);
            if let Some(values) = block.get_mut(..len) {
                widen(self.dtype, bytes, values);
                self.add(values);
            }
        }
    }

    /// Returns the statistics of all elements added so far.
    #[must_use]
    pub fn finish(&self) -> Stats {
        let mut stats = self.stats;
        if stats.finite > 0 {
            stats.mean = Some(self.mean);
            stats.std_dev = Some(libm::sqrt(self.squares / float(stats.finite)));
        }
        stats
    }

    /// Adds a block of values. The block's own mean and squares are computed first. They are merged
    /// with the previous ones by the formula of Chan, Golub and LeVeque (1979), which stays precise
    /// on long tensors.
    fn add(&mut self, values: &[f64]) {
        let mut finite: u32 = 0;
        let mut nan: u32 = 0;
        let mut positive: u32 = 0;
        let mut zeros: u32 = 0;
        let (mut min, mut max, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        for &value in values {
            let is_finite = value.is_finite();
            finite = finite.wrapping_add(u32::from(is_finite));
            nan = nan.wrapping_add(u32::from(value.is_nan()));
            positive = positive.wrapping_add(u32::from(value == f64::INFINITY));
            zeros = zeros.wrapping_add(u32::from(value == 0.0));
            min = if is_finite && value < min { value } else { min };
            max = if is_finite && value > max { value } else { max };
            sum += if is_finite { value } else { 0.0 };
        }
        let count = to_u64(values.len());
        let infinite = count.saturating_sub(u64::from(finite)).saturating_sub(u64::from(nan));
        let stats = &mut self.stats;
        let before = stats.finite;
        stats.count = stats.count.saturating_add(count);
        stats.finite = before.saturating_add(u64::from(finite));
        stats.nan = stats.nan.saturating_add(u64::from(nan));
        stats.zeros = stats.zeros.saturating_add(u64::from(zeros));
        stats.positive_infinity = stats.positive_infinity.saturating_add(u64::from(positive));
        stats.negative_infinity =
            stats.negative_infinity.saturating_add(infinite.saturating_sub(u64::from(positive)));
        if finite == 0 {
            return;
        }
        stats.min = Some(stats.min.map_or(min, |least| if min < least { min } else { least }));
        stats.max = Some(stats.max.map_or(max, |most| if max > most { max } else { most }));

        let block = f64::from(finite);
        let mut mean = sum / block;
        if !mean.is_finite() {
            // The sum overflows `f64`, but the mean does not.
            mean = values.iter().filter(|value| value.is_finite()).map(|value| value / block).sum();
        }
        let deviation = |value: &f64| if value.is_finite() { value - mean } else { 0.0 };
        let squares: f64 =
            values.iter().map(deviation).map(|deviation| deviation * deviation).sum();
        if before == 0 {
            (self.mean, self.squares) = (mean, squares);
            return;
        }
        let all = float(stats.finite);
        let delta = mean - self.mean;
        self.squares += squares + delta * delta * (float(before) * block / all);
        if delta.is_finite() {
            self.mean += delta * (block / all);
        } else {
            self.mean = self.mean * (float(before) / all) + mean * (block / all);
        }
    }
}

/// Converts a number of elements to a float. Exact below 2^53.
#[allow(clippy::as_conversions, clippy::cast_precision_loss)]
fn float(count: u64) -> f64 {
    count as f64
}

/// Converts a block of elements to `f64`. Only I64 and U64 values beyond 2^53 are rounded.
#[allow(clippy::as_conversions, clippy::cast_precision_loss, reason = "rounds to nearest")]
fn widen(dtype: Dtype, bytes: &[u8], values: &mut [f64]) {
    match dtype {
        Dtype::F64 => each(bytes, values, f64::from_le_bytes),
        Dtype::I64 => each(bytes, values, |octet| i64::from_le_bytes(octet) as f64),
        Dtype::U64 => each(bytes, values, |octet| u64::from_le_bytes(octet) as f64),
        Dtype::I32 => each(bytes, values, |quad| f64::from(i32::from_le_bytes(quad))),
        Dtype::U32 => each(bytes, values, |quad| f64::from(u32::from_le_bytes(quad))),
        _ => {
            let mut block = [0.0; BLOCK];
            let Some(singles) = block.get_mut(..values.len()) else { return };
            if dequant::dequant_range(dtype, bytes, 0, singles).is_ok() {
                for (value, single) in values.iter_mut().zip(singles) {
                    *value = f64::from(*single);
                }
            }
        }
    }
}

fn each<const N: usize>(bytes: &[u8], values: &mut [f64], widen: impl Fn([u8; N]) -> f64) {
    for (place, group) in values.iter_mut().zip(bytes.chunks_exact(N)) {
        if let Some(group) = group.first_chunk() {
            *place = widen(*group);
        }
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn stats(values: &[f64]) -> Stats {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        TensorView::new(Dtype::F64, &[values.len()], &data).unwrap().stats().unwrap()
    }

    #[test]
    fn handles_empty_and_nonfinite_data() {
        assert_eq!(stats(&[]), Stats::default());
        let none_finite = stats(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN]);
        assert_eq!(none_finite.nan, 2);
        assert_eq!((none_finite.positive_infinity, none_finite.negative_infinity), (1, 1));
        assert_eq!((none_finite.min, none_finite.mean, none_finite.std_dev), (None, None, None));
    }

    #[test]
    fn keeps_precision_on_long_tensors() {
        // A spread of 1 around 1e9, over many blocks: too small for the textbook sum of squares.
        let values: Vec<f64> = (0..10_000).map(|i| 1e9 + f64::from(i % 2)).collect();
        let stats = stats(&values);
        assert_eq!(stats.mean, Some(1e9 + 0.5));
        assert!((stats.std_dev.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!((stats.min, stats.max), (Some(1e9), Some(1e9 + 1.0)));
    }

    #[test]
    fn mean_of_the_largest_values_does_not_overflow() {
        let stats = stats(&[f64::MAX; 200]);
        assert!((stats.mean.unwrap() / f64::MAX - 1.0).abs() < 1e-12);
        let both: Vec<f64> = (0..200).map(|i| if i < 100 { f64::MAX } else { -f64::MAX }).collect();
        let stats = super::tests::stats(&both);
        assert!(stats.mean.unwrap().abs() < f64::MAX * 1e-12);
        assert_eq!(stats.std_dev, Some(f64::INFINITY));
    }

    #[test]
    fn does_not_round_integers_to_f32() {
        let values = [16_777_217_i64, 16_777_217];
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let stats = TensorView::new(Dtype::I64, &[2], &data).unwrap().stats().unwrap();
        assert_eq!((stats.min, stats.mean), (Some(16_777_217.0), Some(16_777_217.0)));
    }
}
