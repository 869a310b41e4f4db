//! A summary of a tensor's values, in one pass over its data.

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::tensor::dequant;
use crate::tensor::view::TensorView;

/// What is in a tensor: how many values of which kind, and where the finite ones lie.
///
/// All figures are of the values as the file holds them, in `f64`: an F64, I64 or U64 is not rounded
/// to `f32` first (an I64 or U64 above 2^53 is rounded to `f64`). The figures of the finite values
/// are `None` where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// All values.
    pub count: u64,
    /// Values that are neither NaN nor infinite.
    pub finite: u64,
    /// Values that are NaN, of either sign.
    pub nan: u64,
    /// Values that are positive infinity.
    pub positive_infinity: u64,
    /// Values that are negative infinity.
    pub negative_infinity: u64,
    /// Values that are zero, of either sign.
    pub zeros: u64,
    /// The smallest finite value.
    pub min: Option<f64>,
    /// The largest finite value.
    pub max: Option<f64>,
    /// The mean of the finite values.
    pub mean: Option<f64>,
    /// The standard deviation of the finite values, as of a whole population. Infinite where the
    /// square of a deviation is beyond `f64`, from about 1e154 on.
    pub std_dev: Option<f64>,
}

impl TensorView<'_> {
    /// Summarises the tensor's values in one pass, in constant memory and time linear in its data.
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

/// Gathers [`Stats`] from data that come in pieces.
#[derive(Debug, Clone, Copy)]
pub struct Accumulator {
    dtype: Dtype,
    /// Bytes that hold a block of elements, of the dtype.
    block_bytes: usize,
    stats: Stats,
    mean: f64,
    /// Sum of the squares of all deviations from the mean.
    squares: f64,
}

/// Elements summed up at a time, in buffers on the stack.
const BLOCK: usize = 32;

impl Accumulator {
    /// Begins a summary of elements of this dtype.
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

    /// Adds the elements of a piece of data, which has to begin and end between elements: on a
    /// multiple of the element's size, of three bytes for the two F6. Bytes left over at the end are
    /// not counted.
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

    /// The summary of all that was pushed.
    #[must_use]
    pub fn finish(&self) -> Stats {
        let mut stats = self.stats;
        if stats.finite > 0 {
            stats.mean = Some(self.mean);
            stats.std_dev = Some(libm::sqrt(self.squares / float(stats.finite)));
        }
        stats
    }

    /// Adds a block of values: their own mean and squares first, merged with those before by the
    /// formula of Chan, Golub and LeVeque (1979), which loses no digits on long tensors.
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
            // The sum is beyond f64, which the mean is not.
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

/// A number of elements as a float; exact below 2^53.
#[allow(clippy::as_conversions, clippy::cast_precision_loss)]
fn float(count: u64) -> f64 {
    count as f64
}

/// The values of a block of elements, as exact as `f64` can be.
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
    fn of_nothing() {
        assert_eq!(stats(&[]), Stats::default());
        let none_finite = stats(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN]);
        assert_eq!(none_finite.nan, 2);
        assert_eq!((none_finite.positive_infinity, none_finite.negative_infinity), (1, 1));
        assert_eq!((none_finite.min, none_finite.mean, none_finite.std_dev), (None, None, None));
    }

    #[test]
    fn keeps_its_digits() {
        // A spread of 1 around 1e9, over many blocks: the textbook sum of squares would drown it.
        let values: Vec<f64> = (0..10_000).map(|i| 1e9 + f64::from(i % 2)).collect();
        let stats = stats(&values);
        assert_eq!(stats.mean, Some(1e9 + 0.5));
        assert!((stats.std_dev.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!((stats.min, stats.max), (Some(1e9), Some(1e9 + 1.0)));
    }

    #[test]
    fn of_the_largest_numbers() {
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
