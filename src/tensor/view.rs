//! One tensor with its data in memory: as bytes, as typed elements, or as `f32` values.

use core::fmt;
use core::ops::Range;

use crate::base::convert::to_u64;
use crate::base::dtype::{ByteLenError, Dtype};
use crate::base::error::{Error, ErrorKind};
use crate::header::shape::Shape;
use crate::json::text::Text;
use crate::table::info::TensorInfo;
use crate::tensor::dequant;
use crate::tensor::extent::{check_buffer, Extent};

/// A tensor: name, dtype, shape, and its data in place in the file.
///
/// A view borrows only the file, not the slots or the table it came from, and is cheap to copy. The
/// size of its data always matches its dtype and shape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TensorView<'a> {
    name: Text<'a>,
    dtype: Dtype,
    shape: Shape<'a>,
    data: &'a [u8],
    /// [`Limits::dequant_elements`](crate::Limits::dequant_elements).
    dequant_elements: u64,
}

impl<'a> TensorView<'a> {
    /// Creates a view of the caller's bytes, without a name.
    ///
    /// # Errors
    /// [`ShapeOverflow`](ErrorKind::ShapeOverflow), [`PartialByte`](ErrorKind::PartialByte), or
    /// [`SizeMismatch`](ErrorKind::SizeMismatch) if the size of the data does not match dtype and
    /// shape.
    pub fn new(dtype: Dtype, shape: &'a [usize], data: &'a [u8]) -> Result<TensorView<'a>, Error> {
        let shape = Shape::new(shape);
        let overflow = Error::new(ErrorKind::ShapeOverflow);
        let elements = shape.elements().ok_or(overflow)?;
        let needed = dtype.byte_len(elements).map_err(|error| match error {
            ByteLenError::PartialByte => Error::new(ErrorKind::PartialByte { dtype, elements }),
            ByteLenError::Overflow => overflow,
        })?;
        let end = to_u64(data.len());
        if end != needed {
            return Err(Error::new(ErrorKind::SizeMismatch { begin: 0, end, dtype, elements }));
        }
        let name = Text::default();
        Ok(TensorView { name, dtype, shape, data, dequant_elements: u64::MAX })
    }

    /// Creates the view of a tensor in the data region.
    #[inline]
    pub(crate) fn of_info(
        info: &TensorInfo<'a>,
        region: &'a [u8],
        dequant_elements: u64,
    ) -> Result<TensorView<'a>, Error> {
        let (begin, end) = info.data_offsets;
        let range = (usize::try_from(begin), usize::try_from(end));
        let data = match range {
            (Ok(begin), Ok(end)) => region.get(begin..end),
            _ => None,
        };
        let Some(data) = data else {
            let available = to_u64(region.len());
            return Err(Error::new(ErrorKind::DataTruncated { needed: end, available }));
        };
        let TensorInfo { name, dtype, shape, .. } = *info;
        Ok(TensorView { name, dtype, shape, data, dequant_elements })
    }

    /// Returns the name. It is empty for a view created by [`TensorView::new`].
    #[must_use]
    pub fn name(&self) -> Text<'a> {
        self.name
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape<'a> {
        self.shape
    }

    /// Returns the data exactly as in the file: elements in row-major order, little-endian.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Returns the size of the data in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        to_u64(self.data.len())
    }

    /// Returns the number of elements. Takes constant time.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.dtype.elements_in(to_u64(self.data.len()))
    }

    /// Returns the elements in place, as a slice of their own type: `&[f32]` for F32,
    /// `&[half::bf16]` for BF16, and so on as listed for [`Element`]. Zero-copy; takes constant
    /// time.
    ///
    /// ```
    /// # use safetensors_zero::{Dtype, ErrorKind, TensorView};
    /// let numbers = [1.5_f32, -2.0];
    /// # #[cfg(target_endian = "little")] {
    /// let view = TensorView::new(Dtype::F32, &[2], bytemuck::cast_slice(&numbers))?;
    /// assert_eq!(view.as_slice::<f32>()?, [1.5, -2.0]);
    /// assert_eq!(view.as_slice::<i32>().unwrap_err().kind().name(), "wrong_element_type");
    /// # }
    /// # Ok::<(), safetensors_zero::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`WrongElementType`](ErrorKind::WrongElementType) if `T` is not the type for this dtype;
    /// [`BigEndianHost`](ErrorKind::BigEndianHost) on a big-endian machine, for elements larger
    /// than a byte; [`Misaligned`](ErrorKind::Misaligned) if the address of the data is not aligned
    /// for `T`, which the format allows. [`dequant_into`](Self::dequant_into) and
    /// [`data`](Self::data) work at any address on any machine.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T], Error> {
        if self.dtype != T::DTYPE {
            let kind = ErrorKind::WrongElementType { dtype: self.dtype, asked: T::DTYPE };
            return Err(Error::new(kind));
        }
        if cfg!(target_endian = "big") && size_of::<T>() > 1 {
            return Err(Error::new(ErrorKind::BigEndianHost));
        }
        if self.data.is_empty() {
            return Ok(&[]);
        }
        bytemuck::try_cast_slice(self.data).map_err(|_| {
            let align = align_of::<T>();
            let missing = self.data.as_ptr().align_offset(align);
            let remainder = align.saturating_sub(missing);
            Error::new(ErrorKind::Misaligned { align, remainder })
        })
    }

    /// Returns the largest power of two, up to 4096, that divides the address of the data.
    #[must_use]
    pub fn alignment(&self) -> usize {
        let start = self.data.as_ptr();
        let divides = |align: &usize| start.align_offset(*align) == 0;
        (0..=12).map(|power| 1 << power).take_while(divides).last().unwrap_or(1)
    }

    /// Writes all elements to `out` as `f32`, in row-major order. See [`dequant`] for how each
    /// dtype is converted.
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if the length of `out` is not the number of
    /// elements; [`NoF32`](ErrorKind::NoF32) for C64;
    /// [`TooManyElements`](ErrorKind::TooManyElements) above the limit that the file was parsed
    /// with. `out` is then unchanged.
    pub fn dequant_into(&self, out: &mut [f32]) -> Result<(), Error> {
        check_buffer(self.elements(), to_u64(out.len()))?;
        self.dequant_range(0, out)
    }

    /// Fills `out` with elements as `f32`, starting at the element `first`. The range can begin
    /// anywhere, even inside a byte. The cost depends only on the length of `out`.
    ///
    /// # Errors
    /// [`RangeOutOfBounds`](ErrorKind::RangeOutOfBounds) if the range extends beyond the tensor;
    /// [`NoF32`](ErrorKind::NoF32) for C64; [`TooManyElements`](ErrorKind::TooManyElements). `out`
    /// is then unchanged.
    pub fn dequant_range(&self, first: u64, out: &mut [f32]) -> Result<(), Error> {
        self.extent().check_dequant(to_u64(out.len()))?;
        dequant::dequant_range(self.dtype, self.data, first, out)
    }

    /// Returns the tensor without its data, for bounds checks.
    pub(crate) fn extent(&self) -> Extent<'a> {
        let TensorView { dtype, shape, dequant_elements, .. } = *self;
        Extent { dtype, shape, elements: self.elements(), dequant_elements }
    }

    /// Returns the number of elements in a row: those with the same first index. It is 0 for a
    /// tensor with no rows.
    ///
    /// # Errors
    /// [`NoRows`](ErrorKind::NoRows) for a scalar.
    pub fn row_len(&self) -> Result<u64, Error> {
        self.extent().row_len()
    }

    /// Writes a range of rows, counted along the first dimension, to `out` as `f32`.
    ///
    /// ```
    /// # use safetensors_zero::{Dtype, TensorView};
    /// let view = TensorView::new(Dtype::I8, &[3, 2], &[1, 2, 3, 4, 5, 6])?;
    /// let mut rows = [0.0; 4];
    /// view.dequant_rows(1..3, &mut rows)?;
    /// assert_eq!(rows, [3.0, 4.0, 5.0, 6.0]);
    /// # Ok::<(), safetensors_zero::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NoRows`](ErrorKind::NoRows) for a scalar;
    /// [`RangeOutOfBounds`](ErrorKind::RangeOutOfBounds) if the range is reversed or extends beyond
    /// the tensor; [`BufferLength`](ErrorKind::BufferLength) if the length of `out` is not the
    /// number of elements in these rows; [`NoF32`](ErrorKind::NoF32) for C64;
    /// [`TooManyElements`](ErrorKind::TooManyElements). `out` is then unchanged.
    pub fn dequant_rows(&self, rows: Range<u64>, out: &mut [f32]) -> Result<(), Error> {
        let (first, count) = self.extent().of_rows(rows)?;
        check_buffer(count, to_u64(out.len()))?;
        self.dequant_range(first, out)
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorView")
            .field("name", &self.name)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .field("bytes", &self.data.len())
            .finish()
    }
}

/// The Rust types in which a tensor's elements can be viewed in place.
///
/// Each type corresponds to one dtype. BOOL has no type, because bytes other than 0 and 1 are not
/// valid `bool` values. Floats of 8 bits or less have none either, because their data is raw codes.
pub trait Element: sealed::Sealed {
    /// The dtype that corresponds to this type.
    const DTYPE: Dtype;
}

mod sealed {
    pub trait Sealed: bytemuck::Pod {}
}

macro_rules! elements {
    ($($type:ty: $dtype:ident,)*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;
        }
    )*};
}

elements! {
    u8: U8,
    i8: I8,
    u16: U16,
    i16: I16,
    u32: U32,
    i32: I32,
    u64: U64,
    i64: I64,
    half::f16: F16,
    half::bf16: BF16,
    f32: F32,
    f64: F64,
    [f32; 2]: C64,
}
