//! A tensor of a file, and a part of one: read when asked for, with progress where that takes long.

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

/// Bytes that pass through memory at a time, where they are not read to where they belong.
const BUFFER: usize = 64 << 10;

/// How far a call has come: bytes where it gives bytes, elements where it gives elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is done.
    pub done: u64,
    /// What there is to do.
    pub total: u64,
}

/// What is told how far a call has come, at least every MiB, and stops it by
/// [`ControlFlow::Break`]. The call then is an error that tells how much was done:
/// [`FileErrorKind::Stopped`].
type OnProgress<'p> = &'p mut dyn FnMut(Progress) -> ControlFlow<()>;

type Descriptor = Arc<fs::File>;

/// A tensor of a [`File`](crate::File) or of [`Shards`](crate::Shards).
///
/// It keeps its file open, so do not collect those of many shards: ask for each when its turn comes.
///
/// Nothing is read but what is asked for, to the byte, and nothing is kept. If a read fails or is
/// stopped, what the output holds beyond what was done is unspecified.
///
/// Methods whose name ends in `_with` take a function that is told the [`Progress`], at least every
/// MiB, and stops the call by [`ControlFlow::Break`]:
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

    /// What the header says of the tensor.
    #[must_use]
    pub fn info(&self) -> TensorInfo<'f> {
        self.reader.info()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> Text<'f> {
        self.reader.name()
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.reader.dtype()
    }

    /// The dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape<'f> {
        self.reader.shape()
    }

    /// How many elements there are. Takes constant time.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.reader.elements()
    }

    /// Bytes of the data.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.reader.byte_len()
    }

    /// The file that the tensor is in.
    #[must_use]
    pub fn path(&self) -> &'f Path {
        self.path
    }

    /// Where the data are in the file.
    #[must_use]
    pub fn file_range(&self) -> Range<u64> {
        self.reader.file_range()
    }

    /// Elements of one row: of what one index of the first dimension selects.
    ///
    /// # Errors
    /// [`NoRows`](crate::ErrorKind::NoRows) for a scalar.
    pub fn row_len(&self) -> Result<u64, FileError> {
        self.reader.row_len().map_err(|error| self.error(error.into()))
    }

    /// Reads all data as they stand in the file.
    ///
    /// # Errors
    /// [`BufferLength`](crate::ErrorKind::BufferLength) if the buffer has not exactly as many bytes;
    /// or the file cannot be read.
    pub fn read_bytes(&self, out: &mut [u8]) -> Result<(), FileError> {
        self.read_bytes_with(out, &mut go_on)
    }

    /// As [`FileTensor::read_bytes`], with progress.
    ///
    /// # Errors
    /// As [`FileTensor::read_bytes`], or stopped.
    pub fn read_bytes_with(
        &self,
        out: &mut [u8],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        self.check_buffer(self.byte_len(), out.len())?;
        self.read_bytes_at_with(0, out, progress)
    }

    /// Reads as many bytes of the data as `out` has places, from the byte `first` of them on.
    ///
    /// # Errors
    /// [`RangeOutOfBounds`](crate::ErrorKind::RangeOutOfBounds) if the tensor does not have these
    /// bytes; or the file cannot be read.
    pub fn read_bytes_at(&self, first: u64, out: &mut [u8]) -> Result<(), FileError> {
        self.read_bytes_at_with(first, out, &mut go_on)
    }

    /// As [`FileTensor::read_bytes_at`], with progress.
    ///
    /// # Errors
    /// As [`FileTensor::read_bytes_at`], or stopped.
    pub fn read_bytes_at_with(
        &self,
        first: u64,
        out: &mut [u8],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        self.watched(to_u64(out.len()), progress, |watch| {
            self.reader.read_bytes_watched(first, out, watch)
        })
    }

    /// Reads all elements as `f32`. See [`dequant`](crate::tensor::dequant) for what each dtype becomes.
    ///
    /// # Errors
    /// As [`TensorView::dequant_into`](crate::TensorView::dequant_into), and then `out` is as it was;
    /// or the file cannot be read.
    pub fn dequant_into(&self, out: &mut [f32]) -> Result<(), FileError> {
        self.dequant_into_with(out, &mut go_on)
    }

    /// As [`FileTensor::dequant_into`], with progress.
    ///
    /// # Errors
    /// As [`FileTensor::dequant_into`], or stopped.
    pub fn dequant_into_with(
        &self,
        out: &mut [f32],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        self.check_buffer(self.elements(), out.len())?;
        self.dequant_range_with(0, out, progress)
    }

    /// Reads as many elements as `out` has places, from the element `first` on, as `f32`.
    ///
    /// # Errors
    /// As [`TensorView::dequant_range`](crate::TensorView::dequant_range), and then `out` is as it
    /// was; or the file cannot be read.
    pub fn dequant_range(&self, first: u64, out: &mut [f32]) -> Result<(), FileError> {
        self.dequant_range_with(first, out, &mut go_on)
    }

    /// As [`FileTensor::dequant_range`], with progress.
    ///
    /// # Errors
    /// As [`FileTensor::dequant_range`], or stopped.
    pub fn dequant_range_with(
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

    /// Reads the rows of a range, over the first dimension, as `f32`.
    ///
    /// # Errors
    /// As [`TensorView::dequant_rows`](crate::TensorView::dequant_rows), and then `out` is as it was;
    /// or the file cannot be read.
    pub fn dequant_rows(&self, rows: Range<u64>, out: &mut [f32]) -> Result<(), FileError> {
        self.dequant_rows_with(rows, out, &mut go_on)
    }

    /// As [`FileTensor::dequant_rows`], with progress.
    ///
    /// # Errors
    /// As [`FileTensor::dequant_rows`], or stopped.
    pub fn dequant_rows_with(
        &self,
        rows: Range<u64>,
        out: &mut [f32],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        let first = self.reader.first_of_rows(rows, out);
        let first = first.map_err(|error| self.error(error.into()))?;
        self.dequant_range_with(first, out, progress)
    }

    /// Copies the data as they stand in the file to a writer, 64 KiB at a time, and tells how many
    /// bytes that were.
    ///
    /// # Errors
    /// The file cannot be read, or the writer fails:
    /// [`FileErrorKind::Write`], which tells what was written.
    pub fn copy_to(&self, writer: &mut (impl Write + ?Sized)) -> Result<u64, FileError> {
        self.copy_to_with(writer, &mut go_on)
    }

    /// As [`FileTensor::copy_to`], with progress.
    ///
    /// # Errors
    /// As [`FileTensor::copy_to`], or stopped.
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

    /// Reads the data piece by piece, each of at most 64 KiB and of whole elements, and gives each
    /// to `each`, until that breaks.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_pieces<B>(
        &self,
        each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, FileError> {
        let mut buffer = copying_buffer(self.byte_len());
        self.reader.read_pieces(&mut buffer, each).map_err(|error| self.error(error))
    }

    /// Summarises the tensor's values, as [`TensorView::stats`](crate::TensorView::stats) does. Mean and
    /// standard deviation may differ from that in their last digits, since sums are made of other pieces.
    ///
    /// # Errors
    /// [`NoF32`](crate::ErrorKind::NoF32) for C64; or the file cannot be read.
    pub fn stats(&self) -> Result<Stats, FileError> {
        self.stats_with(&mut go_on)
    }

    /// As [`FileTensor::stats`], with progress in bytes.
    ///
    /// # Errors
    /// As [`FileTensor::stats`], or stopped.
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

    /// The part of the tensor that these indexers take of its first dimensions. See
    /// [`Slice::new`](crate::Slice::new).
    ///
    /// # Errors
    /// As [`Slice::new`](crate::Slice::new).
    pub fn slice(&self, indexers: &[TensorIndexer]) -> Result<FileSlice<'_, 'f>, FileError> {
        let slice = self.reader.slice(indexers).map_err(|error| self.error(error.into()))?;
        Ok(FileSlice { tensor: self, slice })
    }

    /// Gives the data to `each`, piece by piece, and tells how far that is.
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

    /// Runs something that tells how much of `total` is done.
    fn watched(
        &self,
        total: u64,
        progress: OnProgress<'_>,
        run: impl FnOnce(Watch<'_>) -> Result<ControlFlow<()>, ReadError<io::Error>>,
    ) -> Result<(), FileError> {
        let mut told = 0;
        let mut watch = |done: u64| {
            told = done;
            progress(Progress { done, total })
        };
        match run(&mut watch) {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(())) => {
                Err(self.named(FileError::new(self.path, FileErrorKind::Stopped { done: told })))
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

/// A part of a [`FileTensor`].
///
/// It is read run by run: a slice of many short runs, such as a column of a table, is as many short
/// reads.
#[derive(Clone)]
pub struct FileSlice<'t, 'f> {
    tensor: &'t FileTensor<'f>,
    slice: SliceReader<'f, &'t Descriptor>,
}

impl FileSlice<'_, '_> {
    /// The slice's own shape. See [`Slice::shape`](crate::Slice::shape).
    pub fn shape(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.slice.shape()
    }

    /// How many elements the slice has.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.slice.elements()
    }

    /// How many bytes the slice has.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.slice.byte_len()
    }

    /// Reads the slice's data.
    ///
    /// # Errors
    /// [`BufferLength`](crate::ErrorKind::BufferLength) if the buffer has not exactly
    /// [`byte_len`](Self::byte_len) bytes; or the file cannot be read.
    pub fn read_bytes(&self, out: &mut [u8]) -> Result<(), FileError> {
        self.read_bytes_with(out, &mut go_on)
    }

    /// As [`FileSlice::read_bytes`], with progress.
    ///
    /// # Errors
    /// As [`FileSlice::read_bytes`], or stopped.
    pub fn read_bytes_with(
        &self,
        out: &mut [u8],
        progress: OnProgress<'_>,
    ) -> Result<(), FileError> {
        self.tensor
            .watched(to_u64(out.len()), progress, |watch| self.slice.read_bytes_watched(out, watch))
    }

    /// Reads the slice's elements as `f32`, in row-major order.
    ///
    /// # Errors
    /// As [`SliceView::dequant_into`](crate::SliceView::dequant_into), and then `out` is as it was; or
    /// the file cannot be read.
    pub fn dequant_into(&self, out: &mut [f32]) -> Result<(), FileError> {
        self.dequant_into_with(out, &mut go_on)
    }

    /// As [`FileSlice::dequant_into`], with progress.
    ///
    /// # Errors
    /// As [`FileSlice::dequant_into`], or stopped.
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

    /// Copies the slice's data to a writer, at most 64 KiB at a time, and tells how many bytes that
    /// were.
    ///
    /// # Errors
    /// As [`FileTensor::copy_to`].
    pub fn copy_to(&self, writer: &mut (impl Write + ?Sized)) -> Result<u64, FileError> {
        self.copy_to_with(writer, &mut go_on)
    }

    /// As [`FileSlice::copy_to`], with progress.
    ///
    /// # Errors
    /// As [`FileTensor::copy_to`], or stopped.
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

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A copy to a writer, which may fail where reading does not.
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

    /// The result: a stop that nobody but the writer asked for is the writer's error.
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

/// A buffer for data to pass through on their way to a writer.
fn copying_buffer(bytes: u64) -> Vec<u8> {
    vec![0; usize::try_from(bytes).unwrap_or(BUFFER).clamp(8, BUFFER)]
}

/// A buffer for elements to pass through on their way to `f32`, no larger than these need.
fn widening_buffer(dtype: Dtype, elements: usize) -> Vec<u8> {
    if dtype == Dtype::F32 && cfg!(target_endian = "little") {
        return Vec::new();
    }
    let bytes = elements.saturating_mul(dtype.bitsize()).div_ceil(8);
    // What the first and the last group hold besides.
    vec![0; bytes.saturating_add(6).clamp(8, BUFFER)]
}
