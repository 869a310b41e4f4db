//! Bounds checks for ranges of elements and rows, against a tensor's dtype and shape. Does not need
//! the data, which can be in memory or in a file.

use core::ops::Range;

use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::header::shape::Shape;

/// A tensor without its data, and the limit on dequantising it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent<'a> {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Shape<'a>,
    pub(crate) elements: u64,
    /// [`Limits::dequant_elements`](crate::Limits::dequant_elements).
    pub(crate) dequant_elements: u64,
}

impl Extent<'_> {
    /// Checks that `count` elements can be converted to `f32` in one call.
    pub(crate) fn check_dequant(&self, count: u64) -> Result<(), Error> {
        let limit = self.dequant_elements;
        if count > limit {
            return Err(Error::new(ErrorKind::TooManyElements { count, limit }));
        }
        if !self.dtype.has_f32() {
            return Err(Error::new(ErrorKind::NoF32 { dtype: self.dtype }));
        }
        Ok(())
    }

    /// Returns the end of a range of elements, or an error if it is beyond the tensor's end.
    pub(crate) fn end_of(&self, first: u64, count: u64) -> Result<u64, Error> {
        let (begin, end, len) = (first, first.saturating_add(count), self.elements);
        if end > len {
            return Err(Error::new(ErrorKind::RangeOutOfBounds { begin, end, len }));
        }
        Ok(end)
    }

    /// Returns the number of rows: the first dimension.
    pub(crate) fn rows(&self) -> Result<u64, Error> {
        self.shape.iter().next().ok_or_else(|| Error::new(ErrorKind::NoRows))
    }

    /// Returns the number of elements in a row: those with the same first index.
    pub(crate) fn row_len(&self) -> Result<u64, Error> {
        Ok(self.elements.checked_div(self.rows()?).unwrap_or(0))
    }

    /// Returns the first element of a range of rows, and the number of elements in these rows.
    pub(crate) fn of_rows(&self, rows: Range<u64>) -> Result<(u64, u64), Error> {
        let len = self.rows()?;
        let row_len = self.row_len()?;
        let Range { start: begin, end } = rows;
        let count = match end.checked_sub(begin) {
            Some(count) if end <= len => count,
            _ => return Err(Error::new(ErrorKind::RangeOutOfBounds { begin, end, len })),
        };
        // Neither product overflows: both are at most the number of elements.
        Ok((begin.saturating_mul(row_len), count.saturating_mul(row_len)))
    }
}

/// Checks that a buffer has the length needed.
pub(crate) fn check_buffer(needed: u64, given: u64) -> Result<(), Error> {
    if needed != given {
        return Err(Error::new(ErrorKind::BufferLength { needed, given }));
    }
    Ok(())
}
