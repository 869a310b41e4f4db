//! The plan of a file to write, made from names, dtypes and shapes before there is any data.
//!
//! A plan checks everything, fixes the order and the offsets, and knows the header. A reader with
//! the same limits accepts every planned file. As with reading, the memory is the caller's: the
//! list of tensors, which is sorted in place into data order.

mod arrange;
mod spelling;

use core::fmt;

use crate::base::convert::{to_u32, to_u64};
use crate::base::dtype::{ByteLenError, Dtype};
use crate::base::error::{Error, ErrorKind, StringKind, FRAME_BYTES};
use crate::base::limits::Limits;
use crate::header::frame::header_limit;
use crate::header::shape::Shape;
use crate::table::sort::{self, By};

#[cfg(feature = "alloc")]
pub(crate) use spelling::{write_header, Measure};
#[cfg(feature = "std")]
pub(crate) use spelling::{write_map, write_padding};
#[cfg(feature = "alloc")]
pub(crate) use spelling::{write_string, TextWriter};

/// The header key that holds the metadata. No tensor can have this name.
pub(crate) const RESERVED: &str = "__metadata__";

/// The order of the tensors in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Order {
    /// The order of the reference implementation: by dtype, U64 first and BOOL last (the reverse of
    /// the order of [`Dtype`]), then by name.
    ///
    /// It does not depend on the order of the list. Dtypes with a larger alignment come before
    /// those with a smaller one.
    #[default]
    ByDtype,
    /// The order of the list.
    Given,
}

/// Options for planning a file.
///
/// ```
/// use safetensors_zero::PlanOptions;
///
/// let mut options = PlanOptions::default();
/// options.align = 4096; // for maps and direct I/O
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The order of the tensors. [`Order::ByDtype`] by default.
    pub order: Order,
    /// The alignment of the data's start in the file, in bytes: a power of two. The header is
    /// padded with spaces to reach it. 8 by default, as in the reference implementation; 1 means no
    /// padding.
    pub align: u64,
    /// The limits of the file's readers. [`Limits::DEFAULT`] by default.
    pub limits: Limits,
}

impl PlanOptions {
    /// The options that [`PlanOptions::default`] returns.
    pub const DEFAULT: PlanOptions =
        PlanOptions { order: Order::ByDtype, align: 8, limits: Limits::DEFAULT };
}

impl Default for PlanOptions {
    /// Returns [`PlanOptions::DEFAULT`].
    fn default() -> Self {
        PlanOptions::DEFAULT
    }
}

/// A tensor of a [`Plan`].
#[derive(Debug, Clone, Copy)]
pub struct PlanTensor<'t> {
    name: &'t str,
    dtype: Dtype,
    shape: Shape<'t>,
    begin: u64,
    end: u64,
    /// The tensor's position in the caller's list.
    index: usize,
    /// The tensor's rank by name. Only valid while `arrange` sorts by dtype.
    rank: u32,
}

impl<'t> PlanTensor<'t> {
    /// Creates a tensor from its name, dtype and shape. Nothing is checked yet.
    #[must_use]
    pub fn new(name: &'t str, dtype: Dtype, shape: Shape<'t>) -> Self {
        PlanTensor { name, dtype, shape, begin: 0, end: 0, index: 0, rank: 0 }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'t str {
        self.name
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape<'t> {
        self.shape
    }

    /// Returns the start and end of the tensor's data, in bytes from the start of the data region.
    /// Both are 0 until the tensor is part of a plan.
    #[must_use]
    pub fn data_offsets(&self) -> (u64, u64) {
        (self.begin, self.end)
    }

    /// Returns the length of the tensor's data in bytes. It is 0 until the tensor is part of a
    /// plan.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Returns the tensor's position in the list passed to [`Plan::new`], counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Checks the tensor on its own, without the other tensors, and returns its length in bytes.
    fn check(&self, limits: &Limits) -> Result<u64, ErrorKind> {
        if self.name == RESERVED {
            return Err(ErrorKind::ReservedName);
        }
        check_len(self.name, StringKind::Name, limits.name_bytes)?;
        let (dtype, limit) = (self.dtype, limits.rank);
        if !limits.dtypes.contains(dtype) {
            return Err(ErrorKind::DtypeNotAccepted { dtype });
        }
        if to_u64(self.shape.rank()) > u64::from(limit) {
            return Err(ErrorKind::RankTooLarge { limit });
        }
        let elements = self.shape.elements();
        let limit = if elements == Some(0) { limits.empty_dimension } else { limits.integer };
        if let Some(value) = self.shape.iter().find(|dimension| *dimension > limit) {
            return Err(ErrorKind::IntegerTooLarge { value, limit });
        }
        let elements = elements.ok_or(ErrorKind::ShapeOverflow)?;
        dtype.byte_len(elements).map_err(|error| match error {
            ByteLenError::PartialByte => ErrorKind::PartialByte { dtype, elements },
            ByteLenError::Overflow => ErrorKind::ShapeOverflow,
        })
    }
}

/// A plan of a file to write: its header and the offsets of each tensor's data.
///
/// ```
/// use safetensors_zero::{Dtype, Plan, PlanOptions, PlanTensor, SafeTensors, Shape, TensorSlot};
///
/// let mut tensors = [
///     PlanTensor::new("bias", Dtype::F32, Shape::new(&[2])),
///     PlanTensor::new("steps", Dtype::I64, Shape::new(&[])),
/// ];
/// let plan = Plan::new(&mut tensors, None, &PlanOptions::default())?;
/// assert_eq!((plan.data_len(), plan.tensors()[0].name()), (16, "steps"));
///
/// let mut file = [0; 256];
/// let header = plan.copy_to(&mut file)?; // then 16 bytes of data
/// # let file_len = header + 16;
/// let mut slots = [TensorSlot::EMPTY; 2];
/// let tensors = SafeTensors::parse(&file[..file_len], &mut slots)?;
/// assert_eq!(tensors.tensor("bias")?.shape(), [2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Plan<'p, 't> {
    tensors: &'p [PlanTensor<'t>],
    metadata: Option<&'p [(&'t str, &'t str)]>,
    /// Length of the header's text in bytes, including padding.
    header_len: u64,
    /// Length of the padding in bytes.
    padding: u64,
    data_len: u64,
}

impl<'p, 't> Plan<'p, 't> {
    /// Checks the tensors and the metadata, and sorts them in place: tensors into data order,
    /// metadata by key.
    ///
    /// Takes O(n log n) time in the number of tensors and keys, and allocates nothing.
    ///
    /// # Errors
    /// Returns an error if the format or the limits do not allow the file, or if `options.align`
    /// is not a power of two. [`PlanError::tensor`] is the position of the tensor at fault. The
    /// lists are then in an unspecified order.
    pub fn new(
        tensors: &'p mut [PlanTensor<'t>],
        metadata: Option<&'p mut [(&'t str, &'t str)]>,
        options: &PlanOptions,
    ) -> Result<Plan<'p, 't>, PlanError> {
        let limits = &options.limits;
        if !options.align.is_power_of_two() {
            return Err(ErrorKind::NotPowerOfTwo { align: options.align }.into());
        }
        let metadata = match metadata {
            Some(metadata) => Some(sorted_metadata(metadata, limits)?),
            None => None,
        };
        let data_len = arrange::arrange(tensors, options)?;
        let mut text = spelling::Measure::default();
        // `Measure` never fails.
        let _ = spelling::write_header(&mut text, metadata, tensors);
        let unpadded = text.len();
        let limit = header_limit(limits);
        let data_start = unpadded
            .checked_add(FRAME_BYTES)
            .and_then(|len| len.checked_next_multiple_of(options.align))
            .ok_or(ErrorKind::FileTooLarge)?;
        let header_len = data_start.saturating_sub(FRAME_BYTES);
        if header_len > limit {
            return Err(ErrorKind::HeaderTooLarge { len: header_len, limit }.into());
        }
        if data_start.checked_add(data_len).is_none() {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let padding = header_len.saturating_sub(unpadded);
        Ok(Plan { tensors, metadata, header_len, padding, data_len })
    }

    /// Returns the tensors in data order.
    #[must_use]
    pub fn tensors(&self) -> &'p [PlanTensor<'t>] {
        self.tensors
    }

    /// Returns the metadata, sorted by key, or `None` if the file has none.
    #[must_use]
    pub fn metadata(&self) -> Option<&'p [(&'t str, &'t str)]> {
        self.metadata
    }

    /// Returns the first 8 bytes of the file: the header's length.
    #[must_use]
    pub fn frame(&self) -> [u8; 8] {
        self.header_len.to_le_bytes()
    }

    /// Returns the length of the header's text in bytes, including padding.
    #[must_use]
    pub fn header_len(&self) -> u64 {
        self.header_len
    }

    /// Returns the offset of the data region in the file.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        FRAME_BYTES.saturating_add(self.header_len)
    }

    /// Returns the length of the data region in bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// Returns the length of the file in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.data_start().saturating_add(self.data_len)
    }

    /// Writes the header's text and padding: everything between the frame and the data.
    ///
    /// # Errors
    /// Returns an error if the sink does.
    pub fn write_header(&self, sink: &mut dyn fmt::Write) -> fmt::Result {
        spelling::write_header(&mut spelling::TextWriter(sink), self.metadata, self.tensors)?;
        spelling::write_padding(sink, self.padding)
    }

    /// Writes the frame and the header to the start of a buffer, and returns their length, which is
    /// [`Plan::data_start`].
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if the buffer is shorter than that. Nothing is
    /// written in this case.
    pub fn copy_to(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        let (needed, given) = (self.data_start(), to_u64(buffer.len()));
        if given < needed {
            return Err(Error::new(ErrorKind::BufferLength { needed, given }));
        }
        let mut sink = spelling::Sink::new(buffer);
        sink.push(&self.frame());
        // The length was checked above.
        let _ = self.write_header(&mut sink);
        Ok(sink.len())
    }
}

/// Checks metadata and sorts it by key.
fn sorted_metadata<'p, 't>(
    metadata: &'p mut [(&'t str, &'t str)],
    limits: &Limits,
) -> Result<&'p [(&'t str, &'t str)], ErrorKind> {
    if to_u64(metadata.len()) > u64::from(limits.metadata_entries) {
        return Err(ErrorKind::TooManyMetadataEntries { limit: limits.metadata_entries });
    }
    for (key, value) in metadata.iter() {
        check_len(key, StringKind::Property, limits.string_bytes)?;
        check_len(value, StringKind::MetadataValue, limits.metadata_value_bytes)?;
    }
    sort::sort(&mut By(metadata, |a: &(&str, &str), b: &(&str, &str)| a.0 < b.0));
    let repeated = metadata.windows(2).any(|pair| matches!(pair, [a, b] if a.0 == b.0));
    if repeated {
        return Err(ErrorKind::MetadataKeyRepeated);
    }
    Ok(metadata)
}

fn check_len(string: &str, what: StringKind, limit: u32) -> Result<(), ErrorKind> {
    if to_u32(string.len()) <= limit {
        return Ok(());
    }
    Err(ErrorKind::StringTooLong { what, len: to_u64(string.len()), limit })
}

/// The error returned by [`Plan::new`].
///
/// Its `Display` is one sentence, with the tensor's position in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanError {
    kind: ErrorKind,
    tensor: Option<usize>,
}

impl PlanError {
    #[cold]
    fn of_tensor(kind: ErrorKind, tensor: usize) -> PlanError {
        PlanError { kind, tensor: Some(tensor) }
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the position of the tensor at fault in the list passed to [`Plan::new`], counted
    /// from 0, or `None` if the error is not about a single tensor.
    #[must_use]
    pub fn tensor(&self) -> Option<usize> {
        self.tensor
    }
}

impl From<ErrorKind> for PlanError {
    fn from(kind: ErrorKind) -> Self {
        PlanError { kind, tensor: None }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tensor {
            Some(tensor) => write!(f, "the tensor at index {tensor}: {}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl core::error::Error for PlanError {}
