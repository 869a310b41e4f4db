//! A tensor in a file, and a slice of one. Data is read on request; long calls report progress.

use core::fmt;
use core::ops::{ControlFlow, Range};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::prelude::v1::*;
use std::sync::Arc;
use std::vec;

use super::error::{FileError, FileErrorKind};
use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::header::shape::Shape;
use crate::json::text::Text;
use crate::read::reader::{SliceReader, TensorReader, Watch};
use crate::read::source::ReadError;
use crate::table::info::TensorInfo;
use crate::tensor::slice::TensorIndexer;
use crate::tensor::stats::{Accumulator, Stats};

/// The largest buffer, in bytes, for data that is not read directly into the caller's output.
const BUFFER: usize = 64 << 10;

/// The progress of a call, in bytes if it produces bytes and in elements if it produces elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The amount done so far.
    pub done: u64,
    /// The total amount.
    pub total: u64,
}

/// A progress function. It is called at least once per MiB, and stops the call by returning
/// [`ControlFlow::Break`]. The call then returns [`FileErrorKind::Stopped`].
type OnProgress<'p> = &'p mut dyn FnMut(Progress) -> ControlFlow<()>;

type Descriptor = Arc<fs::File>;

/// A tensor of a [`File`](crate::File) or of [`Shards`](crate::Shards).
///
/// It keeps its file open, so do not collect the tensors of many shards. Get each one when it is
/// needed.
///
/// Methods read exactly the bytes requested and cache nothing. If a read fails or is stopped, the
/// contents of the output beyond the completed part are unspecified.
///
/// Methods whose name ends in `_with` take a function that receives the [`Progress`]. It is called
/// at least once per MiB, and stops the call by returning [`ControlFlow::Break`]:
///
/// ```
/// # use core::ops::ControlFlow;
/// # let file = safetensors_zero::File::open("examples/animals.safetensors")?;
/// let tensor = file.tensor("embedding.weight")?;
/// let mut copied = Vec::new();
/// tensor.copy_to_with(&mut copied, &mut |progress| {
///     println!("{} of {} bytes", progress.done, progress.total);
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(copied.len(), 160);
/// # Ok::<(), safetensors_zero::FileError>(())
/// ```
#[derive(Clone)]
pub struct FileTensor<'f> {
    path: &'f Path,
    reader: TensorReader<'f, Descriptor>,
}

impl<'f> FileTensor<'f> {
    pub(crate) fn new(path: &'f Path, reader: TensorReader<'f, Descriptor>) -> Self {
        FileTensor { path, reader }
    }

    /// Returns the tensor's description in the header.
    #[must_use]
    pub fn info(&self) -> TensorInfo<'f> {
        self.reader.info()
    }

    /// Returns the tensor's name.
    #[must_use]
    pub fn name(&self) -> Text<'f> {
        self.reader.name()
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.reader.dtype()
    }

    /// Returns the tensor's dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape<'f> {
        self.reader.shape()
    }

    /// Returns the number of elements. Takes constant time.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.reader.elements()
    }

    /// Returns the length of the data in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.reader.byte_len()
    }

    /// Returns the path of the tensor's file.
    #[must_use]
    pub fn path(&self) -> &'f Path {
        self.path
    }

    /// Returns the data's byte range in the file.
    #[must_use]
    pub fn file_range(&self) -> Range<u64> {
        self.reader.file_range()
    }

    /// Returns the number of elements in a row: those with the same first index. It is 0 for a
    /// tensor with no rows.
    ///
    /// # Errors
    /// [`NoRows`](crate::ErrorKind::NoRows) for a scalar.
    pub fn row_len(&self) -> Result<u64, FileError> {
        self.reader.row_len().map_err(|error| self.error(error.into()))
    }

    /// Reads all of the data, unconverted.
    ///
    /// # Errors
    /// [`BufferLength`](crate::ErrorKind::BufferLength) if the buffer's length is not
    /// [`byte_len`](Self::byte_len), or an error if the file cannot be read.
    pub fn read_into(&self, out: &mut [u8]) -> Result<(), FileError> {
        self.read_into_with(out, &mut keep_going)
    }

    /// Like [`FileTensor::read_into`], but reports progress.
    ///
    /// # Errors
    /// Same as [`FileTensor::read_into`], or [`FileErrorKind::Stopped`].
    pub fn read_into_with(
        &self,
        out: &mut [u8],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        self.check_buffer(self.byte_len(), out.len())?;
        self.read_into_at_with(0, out, progress)
    }

    /// Fills `out` with the data from byte `first` on, unconverted.
    ///
    /// # Errors
    /// [`RangeOutOfBounds`](crate::ErrorKind::RangeOutOfBounds) if the range ends beyond the data,
    /// or an error if the file cannot be read.
    pub fn read_into_at(&self, first: u64, out: &mut [u8]) -> Result<(), FileError> {
        self.read_into_at_with(first, out, &mut keep_going)
    }

    fn read_into_at_with(
        &self,
        first: u64,
        out: &mut [u8],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        self.watched(to_u64(out.len()), progress, |watch| {
            self.reader.read_bytes_watched(first, out, watch)
        })
    }

    /// Reads all elements and converts them to `f32`. See [`dequant`](crate::tensor::dequant) for
    /// the conversion of each dtype.
    ///
    /// # Errors
    /// Same as [`TensorView::dequant_into`](crate::TensorView::dequant_into), with `out` unchanged,
    /// or an error if the file cannot be read.
    pub fn dequant_into(&self, out: &mut [f32]) -> Result<(), FileError> {
        self.dequant_into_with(out, &mut keep_going)
    }

    /// Like [`FileTensor::dequant_into`], but reports progress.
    ///
    /// # Errors
    /// Same as [`FileTensor::dequant_into`], or [`FileErrorKind::Stopped`].
    pub fn dequant_into_with(
        &self,
        out: &mut [f32],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        self.check_buffer(self.elements(), out.len())?;
        self.dequant_range_with(0, out, progress)
    }

    /// Fills `out` with the elements from `first` on, converted to `f32`.
    ///
    /// # Errors
    /// Same as [`TensorView::dequant_range`](crate::TensorView::dequant_range), with `out`
    /// unchanged, or an error if the file cannot be read.
    pub fn dequant_range(&self, first: u64, out: &mut [f32]) -> Result<(), FileError> {
        self.dequant_range_with(first, out, &mut keep_going)
    }

    fn dequant_range_with(
        &self,
        first: u64,
        out: &mut [f32],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        let mut buffer = widening_buffer(self.dtype(), out.len());
        self.watched(to_u64(out.len()), progress, |watch| {
            self.reader.dequant_range_watched(first, out, &mut buffer, watch)
        })
    }

    /// Reads a range of rows, along the first dimension, and converts it to `f32`.
    ///
    /// # Errors
    /// Same as [`TensorView::dequant_rows`](crate::TensorView::dequant_rows), with `out` unchanged,
    /// or an error if the file cannot be read.
    pub fn dequant_rows(&self, rows: Range<u64>, out: &mut [f32]) -> Result<(), FileError> {
        let first = self.reader.first_of_rows(rows, out);
        let first = first.map_err(|error| self.error(error.into()))?;
        self.dequant_range(first, out)
    }

    /// Copies the data to a writer, unconverted and at most 64 KiB at a time. Returns the number of
    /// bytes copied.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read; [`FileErrorKind::Write`] if the writer fails.
    pub fn copy_to(&self, writer: &mut (impl Write + ?Sized)) -> Result<u64, FileError> {
        self.copy_to_with(writer, &mut keep_going)
    }

    /// Like [`FileTensor::copy_to`], but reports progress.
    ///
    /// # Errors
    /// Same as [`FileTensor::copy_to`], or [`FileErrorKind::Stopped`].
    pub fn copy_to_with(
        &self,
        writer: &mut (impl Write + ?Sized),
        progress: OnProgress<'_>,
    ) -> Result<u64, FileError> {
        let total = self.byte_len();
        let mut copy = Copy { writer, failed: None };
        let done = self.in_pieces_with(&mut |piece| copy.write(piece), progress);
        copy.finish(done, total, self)
    }

    /// Calls `each` with successive pieces of the data, until it returns [`ControlFlow::Break`]. A
    /// piece has at most 64 KiB, and holds whole elements.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read_pieces<B>(
        &self,
        each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, FileError> {
        let mut buffer = copying_buffer(self.byte_len());
        self.reader.read_pieces(&mut buffer, each).map_err(|error| self.error(error))
    }

    /// Summarises the tensor's values like [`TensorView::stats`](crate::TensorView::stats). The
    /// mean and the standard deviation can differ in the last digits, because the values are summed
    /// in different pieces.
    ///
    /// # Errors
    /// [`NoF32`](crate::ErrorKind::NoF32) for C64, or an error if the file cannot be read.
    pub fn stats(&self) -> Result<Stats, FileError> {
        self.stats_with(&mut keep_going)
    }

    /// Like [`FileTensor::stats`], but reports progress in bytes.
    ///
    /// # Errors
    /// Same as [`FileTensor::stats`], or [`FileErrorKind::Stopped`].
    pub fn stats_with(&self, progress: OnProgress<'_>) -> Result<Stats, FileError> {
        let accumulator = Accumulator::new(self.dtype());
        let mut accumulator = accumulator.map_err(|error| self.error(error.into()))?;
        let mut push = |piece: &[u8]| {
            accumulator.push(piece);
            ControlFlow::Continue(())
        };
        self.in_pieces_with(&mut push, progress)?;
        Ok(accumulator.finish())
    }

    /// Returns a slice of the tensor. The indexers apply to its first dimensions; see
    /// [`Slice::new`](crate::Slice::new).
    ///
    /// # Errors
    /// Same as [`Slice::new`](crate::Slice::new).
    pub fn slice(&self, indexers: &[TensorIndexer]) -> Result<FileSlice<'_, 'f>, FileError> {
        let slice = self.reader.slice(indexers).map_err(|error| self.error(error.into()))?;
        Ok(FileSlice { tensor: self, slice })
    }

    /// Calls `each` with successive pieces of the data, and reports progress in bytes.
    fn in_pieces_with(
        &self,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        let mut buffer = copying_buffer(self.byte_len());
        self.watched(self.byte_len(), progress, |watch| {
            let mut done: u64 = 0;
            self.reader.read_pieces(&mut buffer, |piece| {
                each(piece)?;
                done = done.saturating_add(to_u64(piece.len()));
                watch(done)
            })
        })
    }

    /// Runs `run` and forwards the progress that it reports. Converts a stop to an error.
    fn watched(
        &self,
        total: u64,
        progress: OnProgress<'_>,
        run: impl FnOnce(Watch<'_>) -> Result<ControlFlow<()>, ReadError<io::Error>>,
    ) -> Result<(), FileError> {
        let mut last_done = 0;
        let mut watch = |done: u64| {
            last_done = done;
            progress(Progress { done, total })
        };
        match run(&mut watch) {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(())) => {
                let kind = FileErrorKind::Stopped { done: last_done };
                Err(self.named(FileError::new(self.path, kind)))
            }
            Err(error) => Err(self.error(error)),
        }
    }

    fn check_buffer(&self, needed: u64, given: usize) -> Result<(), FileError> {
        let checked = crate::tensor::extent::check_buffer(needed, to_u64(given));
        checked.map_err(|error| self.error(error.into()))
    }

    #[cold]
    fn error(&self, error: ReadError<io::Error>) -> FileError {
        self.named(FileError::of_read(self.path, error))
    }

    fn named(&self, error: FileError) -> FileError {
        error.of(&self.name().to_string())
    }
}

impl fmt::Debug for FileTensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileTensor")
            .field("path", &self.path)
            .field("info", &self.info())
            .finish_non_exhaustive()
    }
}

/// A slice of a [`FileTensor`].
///
/// Each contiguous run of the slice is read on its own. A slice of many short runs, such as a
/// column of a matrix, takes as many short reads.
#[derive(Clone)]
pub struct FileSlice<'t, 'f> {
    tensor: &'t FileTensor<'f>,
    slice: SliceReader<'f, &'t Descriptor>,
}

impl FileSlice<'_, '_> {
    /// Returns the slice's shape. See [`Slice::shape`](crate::Slice::shape).
    pub fn shape(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.slice.shape()
    }

    /// Returns the number of elements in the slice.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.slice.elements()
    }

    /// Returns the length of the slice in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.slice.byte_len()
    }

    /// Reads the slice's data, unconverted and in row-major order.
    ///
    /// # Errors
    /// [`BufferLength`](crate::ErrorKind::BufferLength) if the buffer's length is not
    /// [`byte_len`](Self::byte_len), or an error if the file cannot be read.
    pub fn read_into(&self, out: &mut [u8]) -> Result<(), FileError> {
        self.read_into_with(out, &mut keep_going)
    }

    /// Like [`FileSlice::read_into`], but reports progress.
    ///
    /// # Errors
    /// Same as [`FileSlice::read_into`], or [`FileErrorKind::Stopped`].
    pub fn read_into_with(
        &self,
        out: &mut [u8],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        self.tensor
            .watched(to_u64(out.len()), progress, |watch| self.slice.read_bytes_watched(out, watch))
    }

    /// Reads the slice's elements in row-major order and converts them to `f32`.
    ///
    /// # Errors
    /// Same as [`SliceView::dequant_into`](crate::SliceView::dequant_into), with `out` unchanged,
    /// or an error if the file cannot be read.
    pub fn dequant_into(&self, out: &mut [f32]) -> Result<(), FileError> {
        self.dequant_into_with(out, &mut keep_going)
    }

    /// Like [`FileSlice::dequant_into`], but reports progress.
    ///
    /// # Errors
    /// Same as [`FileSlice::dequant_into`], or [`FileErrorKind::Stopped`].
    pub fn dequant_into_with(
        &self,
        out: &mut [f32],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        let mut buffer = widening_buffer(self.tensor.dtype(), out.len());
        self.tensor.watched(to_u64(out.len()), progress, |watch| {
            self.slice.dequant_into_watched(out, &mut buffer, watch)
        })
    }

    /// Copies the slice's data to a writer, at most 64 KiB at a time. Returns the number of bytes
    /// copied.
    ///
    /// # Errors
    /// Same as [`FileTensor::copy_to`].
    pub fn copy_to(&self, writer: &mut (impl Write + ?Sized)) -> Result<u64, FileError> {
        self.copy_to_with(writer, &mut keep_going)
    }

    /// Like [`FileSlice::copy_to`], but reports progress.
    ///
    /// # Errors
    /// Same as [`FileTensor::copy_to`], or [`FileErrorKind::Stopped`].
    pub fn copy_to_with(
        &self,
        writer: &mut (impl Write + ?Sized),
        progress: OnProgress<'_>,
    ) -> Result<u64, FileError> {
        let total = self.byte_len();
        let mut buffer = copying_buffer(total);
        let mut copy = Copy { writer, failed: None };
        let done = self.tensor.watched(total, progress, |watch| {
            let mut done: u64 = 0;
            self.slice.read_pieces(&mut buffer, |piece| {
                copy.write(piece)?;
                done = done.saturating_add(to_u64(piece.len()));
                watch(done)
            })
        });
        copy.finish(done, total, self.tensor)
    }
}

impl fmt::Debug for FileSlice<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSlice")
            .field("tensor", &self.tensor)
            .field("elements", &self.elements())
            .finish_non_exhaustive()
    }
}

fn keep_going(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A copy to a writer. Remembers the writer's error, which is not a read error.
struct Copy<'w, W: ?Sized> {
    writer: &'w mut W,
    failed: Option<io::Error>,
}

impl<W: Write + ?Sized> Copy<'_, W> {
    fn write(&mut self, piece: &[u8]) -> ControlFlow<()> {
        match self.writer.write_all(piece) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Returns the result of the copy. A stop caused by a failed writer becomes the writer's error.
    fn finish(
        self,
        done: Result<(), FileError>,
        total: u64,
        tensor: &FileTensor<'_>,
    ) -> Result<u64, FileError> {
        let Err(error) = done else { return Ok(total) };
        match (self.failed, error.kind()) {
            (Some(error), FileErrorKind::Stopped { done }) => {
                let kind = FileErrorKind::Write { error, written: *done };
                Err(tensor.named(FileError::new(tensor.path, kind)))
            }
            _ => Err(error),
        }
    }
}

/// Allocates a buffer for copying data of this length to a writer.
fn copying_buffer(bytes: u64) -> Vec<u8> {
    vec![0; usize::try_from(bytes).unwrap_or(BUFFER).clamp(8, BUFFER)]
}

/// Allocates a buffer for converting this many elements to `f32`, no larger than they need.
fn widening_buffer(dtype: Dtype, elements: usize) -> Vec<u8> {
    if dtype == Dtype::F32 && cfg!(target_endian = "little") {
        return Vec::new();
    }
    let bytes = elements.saturating_mul(dtype.bitsize()).div_ceil(8);
    // A group of F6 has 3 bytes, and can extend beyond the range at both ends.
    vec![0; bytes.saturating_add(6).clamp(8, BUFFER)]
}
