//! The plan of a file that is to be written: made of names, dtypes and shapes, before there is a
//! byte of data. It checks everything, fixes the order and the offsets, and knows the header.
//!
//! What it plans, a reader with the same limits accepts. Memory is the caller's, as it is for
//! reading: the list of tensors, which is put in the order of the data.

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
pub(crate) use spelling::{write_string, Writing};

/// The name that no tensor can have.
pub(crate) const RESERVED: &str = "__metadata__";

/// In which order a file has its tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Order {
    /// That of the reference implementation: by dtype, U64 first and BOOL last (the reverse of the
    /// order of [`Dtype`]), then by name. It does not depend on the order of the list, and numbers
    /// that need an alignment come before those that need a smaller one.
    #[default]
    ByDtype,
    /// That of the list.
    Given,
}

/// How a file is to be written.
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
    /// The data begins at a multiple of this number, a power of two: the header is padded with
    /// spaces. 8 by default, as in the reference implementation; 1 pads nothing.
    pub align: u64,
    /// What the file's readers accept. [`Limits::DEFAULT`] by default.
    pub limits: Limits,
}

impl PlanOptions {
    /// What [`PlanOptions::default`] returns.
    pub const DEFAULT: PlanOptions =
        PlanOptions { order: Order::ByDtype, align: 8, limits: Limits::DEFAULT };
}

impl Default for PlanOptions {
    /// [`PlanOptions::DEFAULT`].
    fn default() -> Self {
        PlanOptions::DEFAULT
    }
}

/// One tensor of a [`Plan`].
#[derive(Debug, Clone, Copy)]
pub struct PlanTensor<'t> {
    name: &'t str,
    dtype: Dtype,
    shape: Shape<'t>,
    begin: u64,
    end: u64,
    /// Where it stood in the caller's list.
    index: usize,
    /// Which it is in the order of names, while that is made.
    rank: u32,
}

impl<'t> PlanTensor<'t> {
    /// A tensor of this name, dtype and shape. Nothing is checked yet.
    #[must_use]
    pub fn new(name: &'t str, dtype: Dtype, shape: Shape<'t>) -> Self {
        PlanTensor { name, dtype, shape, begin: 0, end: 0, index: 0, rank: 0 }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'t str {
        self.name
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape<'t> {
        self.shape
    }

    /// Begin and end of the data, in bytes from the data region's begin. 0 and 0 until it is part of
    /// a plan.
    #[must_use]
    pub fn data_offsets(&self) -> (u64, u64) {
        (self.begin, self.end)
    }

    /// Bytes of the data. 0 until it is part of a plan.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Where it stood in the list that the plan was made of, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Checks what can be told of it alone, and returns its bytes.
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

/// A file that is to be written: its header, and where each tensor's data will stand.
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
    /// Bytes of the header's text, its padding included.
    header_len: u64,
    /// Of these, bytes of padding.
    padding: u64,
    data_len: u64,
}

impl<'p, 't> Plan<'p, 't> {
    /// Checks the tensors and puts them in the order of the data, and the metadata in the order of
    /// its keys.
    ///
    /// Takes time n log n in the tensors and keys, and needs no memory.
    ///
    /// # Errors
    /// What the format, or the limits, do not allow: [`PlanError`] tells of which tensor. The lists
    /// are then in an unspecified order.
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
            Some(metadata) => Some(in_order_of_keys(metadata, limits)?),
            None => None,
        };
        let data_len = arrange::arrange(tensors, options)?;
        let mut text = spelling::Measure::default();
        // A measure takes everything.
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

    /// The tensors in the order of the data.
    #[must_use]
    pub fn tensors(&self) -> &'p [PlanTensor<'t>] {
        self.tensors
    }

    /// The metadata in the order of its keys. `None` if the file is to have none.
    #[must_use]
    pub fn metadata(&self) -> Option<&'p [(&'t str, &'t str)]> {
        self.metadata
    }

    /// The first 8 bytes of the file: the header's length.
    #[must_use]
    pub fn frame(&self) -> [u8; 8] {
        self.header_len.to_le_bytes()
    }

    /// Bytes of the header's text, its padding included.
    #[must_use]
    pub fn header_len(&self) -> u64 {
        self.header_len
    }

    /// Where the data begins in the file.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        FRAME_BYTES.saturating_add(self.header_len)
    }

    /// Bytes of the data.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// Bytes of the file.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.data_start().saturating_add(self.data_len)
    }

    /// Writes the header's text and its padding: what stands between the frame and the data.
    ///
    /// # Errors
    /// The sink's own.
    pub fn write_header(&self, sink: &mut dyn fmt::Write) -> fmt::Result {
        spelling::write_header(&mut spelling::Writing(sink), self.metadata, self.tensors)?;
        spelling::write_padding(sink, self.padding)
    }

    /// Writes all that stands before the data, frame and header, to the begin of a buffer, and
    /// returns its length: [`Plan::data_start`].
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if the buffer is shorter than that. Nothing is
    /// then written.
    pub fn copy_to(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        let (needed, given) = (self.data_start(), to_u64(buffer.len()));
        if given < needed {
            return Err(Error::new(ErrorKind::BufferLength { needed, given }));
        }
        let mut sink = spelling::Sink::new(buffer);
        sink.push(&self.frame());
        // There is room for all of it.
        let _ = self.write_header(&mut sink);
        Ok(sink.len())
    }
}

/// Checks metadata and puts it in the order of its keys.
fn in_order_of_keys<'p, 't>(
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

/// Why a file cannot be written as planned.
///
/// Its `Display` is one sentence, which tells the tensor by its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanError {
    kind: ErrorKind,
    tensor: Option<usize>,
}

impl PlanError {
    #[cold]
    fn of(kind: ErrorKind, tensor: usize) -> PlanError {
        PlanError { kind, tensor: Some(tensor) }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The tensor concerned, by its place in the list that was given, counted from 0.
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
