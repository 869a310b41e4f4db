//! Reads a file from a [`Source`] into the caller's buffers: the header, then exactly the bytes or
//! values requested.

mod groups;
mod slice;

use core::ops::{ControlFlow, Range};

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::base::limits::Limits;
use crate::header::frame::{Frame, Header};
use crate::header::shape::Shape;
use crate::json::text::Text;
use crate::read::source::{ReadError, Source};
use crate::table::info::TensorInfo;
use crate::table::slot::TensorSlot;
use crate::table::table::Table;
use crate::tensor::dequant;
use crate::tensor::extent::{check_buffer, Extent};
use crate::tensor::slice::{Slice, TensorIndexer};
use crate::tensor::stats::{Accumulator, Stats};
use groups::Groups;

pub use slice::SliceReader;

/// The number of leading bytes read to recognise a file of another format.
const PREFIX: usize = 64;

/// The most bytes requested in one read, so that progress is reported regularly.
const STEP: usize = 1 << 20;

/// A callback that receives the amount done so far, and can stop the call.
pub(crate) type Watch<'w> = &'w mut dyn FnMut(u64) -> ControlFlow<()>;

/// Fills a buffer from a source. An empty buffer causes no read.
fn fill<S: Source + ?Sized>(
    source: &S,
    offset: u64,
    buffer: &mut [u8],
) -> Result<(), ReadError<S::Error>> {
    if buffer.is_empty() {
        return Ok(());
    }
    let len = to_u64(buffer.len());
    source.read_exact_at(offset, buffer).map_err(|error| ReadError::Read { error, offset, len })
}

impl Frame {
    /// Reads the 8-byte frame of the file in a source. If it is invalid, reads up to 64 bytes to
    /// recognise a file of another format.
    ///
    /// # Errors
    /// Same as [`Frame::parse`], or the source's error.
    pub fn read_from<S: Source + ?Sized>(
        source: &S,
        limits: &Limits,
    ) -> Result<Frame, ReadError<S::Error>> {
        let file_len = source.len().map_err(ReadError::Length)?;
        let mut prefix = [0; PREFIX];
        let available = usize::try_from(file_len).unwrap_or(usize::MAX);
        let mut read = |len: usize| -> Result<Result<Frame, Error>, ReadError<S::Error>> {
            let bytes = prefix.get_mut(..len.min(available)).unwrap_or_default();
            fill(source, 0, bytes)?;
            Ok(Frame::parse(bytes, file_len, limits))
        };
        match read(Frame::LEN)? {
            Ok(frame) => Ok(frame),
            Err(_) => Ok(read(PREFIX)??),
        }
    }
}

impl<'a> Header<'a> {
    /// Reads the header of the file in a source into the start of a buffer.
    ///
    /// # Errors
    /// Same as [`Frame::parse`] and [`Header::new`]; [`BufferLength`](ErrorKind::BufferLength) with
    /// the length needed if the buffer is too small; or the source's error.
    pub fn read_from<S: Source + ?Sized>(
        source: &S,
        buffer: &'a mut [u8],
        limits: &Limits,
    ) -> Result<Header<'a>, ReadError<S::Error>> {
        let frame = Frame::read_from(source, limits)?;
        let (needed, given) = (frame.header_len(), to_u64(buffer.len()));
        let text = usize::try_from(needed).ok().and_then(|len| buffer.get_mut(..len));
        let text = text.ok_or_else(|| Error::new(ErrorKind::BufferLength { needed, given }))?;
        fill(source, frame.header_range().start, text)?;
        Ok(Header::new(text, frame.data_len(), limits)?)
    }
}

/// A file in a [`Source`]. Its table is held in memory; its data is read on request.
///
/// See [`Source`] for an example. `'a` is the lifetime of the header's buffer, `'s` that of the
/// slots.
#[derive(Debug, Clone)]
pub struct Reader<'a, 's, S> {
    source: S,
    table: Table<'a, 's>,
}

impl<'a, 's, S: Source> Reader<'a, 's, S> {
    /// Reads and checks the header of the file in a source. Reads no tensor data.
    ///
    /// # Errors
    /// Same as [`Header::read_from`] and [`Table::parse`].
    pub fn open(
        source: S,
        header: &'a mut [u8],
        slots: &'s mut [TensorSlot],
        limits: &Limits,
    ) -> Result<Self, ReadError<S::Error>> {
        let header = Header::read_from(&source, header, limits)?;
        let table = Table::parse(&header, slots)?;
        Ok(Reader { source, table })
    }

    /// Returns the table, which describes the tensors without their data.
    #[must_use]
    pub fn table(&self) -> &Table<'a, 's> {
        &self.table
    }

    /// Returns the source.
    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the tensor with this name. See [`Table::info`].
    ///
    /// # Errors
    /// [`TensorNotFound`](ErrorKind::TensorNotFound) if no tensor has this name.
    pub fn tensor(&self, name: &str) -> Result<TensorReader<'a, &S>, Error> {
        Ok(TensorReader::of_table(&self.source, &self.table, self.table.info(name)?))
    }

    /// Returns the tensors in the order of their data.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorReader<'a, &S>> + '_ {
        self.table.iter().map(|info| TensorReader::of_table(&self.source, &self.table, info))
    }
}

/// A tensor whose data is in a [`Source`].
///
/// Methods read exactly the bytes requested. Methods that convert values pass the data through the
/// caller's buffer. 8 bytes are enough; a larger buffer takes fewer reads. F32 on a little-endian
/// machine needs no buffer, because it is read directly into the output.
///
/// If a read fails, the contents of the output are unspecified.
#[derive(Debug, Clone, Copy)]
pub struct TensorReader<'a, S> {
    source: S,
    info: TensorInfo<'a>,
    data_start: u64,
    dequant_elements: u64,
}

impl<'a, S: Source> TensorReader<'a, S> {
    /// Creates a reader for a tensor found without slots, by [`Header::scan`] or [`Header::find`].
    #[must_use]
    pub fn new(source: S, header: &Header<'a>, info: TensorInfo<'a>) -> Self {
        let dequant_elements = header.parts().limits.dequant_elements;
        TensorReader { source, info, data_start: header.data_start(), dequant_elements }
    }

    pub(crate) fn of_table(source: S, table: &Table<'a, '_>, info: TensorInfo<'a>) -> Self {
        let dequant_elements = table.facts().dequant_elements;
        TensorReader { source, info, data_start: table.data_start(), dequant_elements }
    }

    /// Returns the tensor's description in the header.
    #[must_use]
    pub fn info(&self) -> TensorInfo<'a> {
        self.info
    }

    /// Returns the tensor's name.
    #[must_use]
    pub fn name(&self) -> Text<'a> {
        self.info.name
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.info.dtype
    }

    /// Returns the tensor's dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape<'a> {
        self.info.shape
    }

    /// Returns the number of elements. Takes constant time.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.info.elements()
    }

    /// Returns the length of the data in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.info.byte_len()
    }

    /// Returns the data's byte range in the source.
    #[must_use]
    pub fn file_range(&self) -> Range<u64> {
        let (begin, end) = self.info.data_offsets;
        self.data_start.saturating_add(begin)..self.data_start.saturating_add(end)
    }

    /// Returns the number of elements in a row: those with the same first index. It is 0 for a
    /// tensor with no rows.
    ///
    /// # Errors
    /// [`NoRows`](ErrorKind::NoRows) for a scalar.
    pub fn row_len(&self) -> Result<u64, Error> {
        self.extent().row_len()
    }

    fn extent(&self) -> Extent<'a> {
        let TensorInfo { dtype, shape, .. } = self.info;
        let (elements, dequant_elements) = (self.elements(), self.dequant_elements);
        Extent { dtype, shape, elements, dequant_elements }
    }

    /// Reads all of the data, unconverted.
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if the buffer's length is not
    /// [`byte_len`](Self::byte_len), or the source's error.
    pub fn read_into(&self, out: &mut [u8]) -> Result<(), ReadError<S::Error>> {
        check_buffer(self.byte_len(), to_u64(out.len()))?;
        self.read_into_at(0, out)
    }

    /// Fills `out` with the data from byte `first` on, unconverted.
    ///
    /// # Errors
    /// [`RangeOutOfBounds`](ErrorKind::RangeOutOfBounds) if the range ends beyond the data, or the
    /// source's error.
    pub fn read_into_at(&self, first: u64, out: &mut [u8]) -> Result<(), ReadError<S::Error>> {
        unwatched(self.read_bytes_watched(first, out, &mut keep_going))
    }

    /// Reads all elements and converts them to `f32`. See [`dequant`] for the conversion of each
    /// dtype.
    ///
    /// # Errors
    /// Same as [`TensorView::dequant_into`](crate::TensorView::dequant_into), with `out` unchanged;
    /// [`BufferLength`](ErrorKind::BufferLength) also if `buffer` is shorter than 8 bytes; or the
    /// source's error.
    pub fn dequant_into(
        &self,
        out: &mut [f32],
        buffer: &mut [u8],
    ) -> Result<(), ReadError<S::Error>> {
        check_buffer(self.elements(), to_u64(out.len()))?;
        self.dequant_range(0, out, buffer)
    }

    /// Fills `out` with the elements from `first` on, converted to `f32`.
    ///
    /// # Errors
    /// Same as [`TensorView::dequant_range`](crate::TensorView::dequant_range), with `out`
    /// unchanged; [`BufferLength`](ErrorKind::BufferLength) if `buffer` is shorter than 8 bytes; or
    /// the source's error.
    pub fn dequant_range(
        &self,
        first: u64,
        out: &mut [f32],
        buffer: &mut [u8],
    ) -> Result<(), ReadError<S::Error>> {
        unwatched(self.dequant_range_watched(first, out, buffer, &mut keep_going))
    }

    /// Reads a range of rows, along the first dimension, and converts it to `f32`.
    ///
    /// # Errors
    /// Same as [`TensorView::dequant_rows`](crate::TensorView::dequant_rows), with `out` unchanged;
    /// [`BufferLength`](ErrorKind::BufferLength) also if `buffer` is shorter than 8 bytes; or the
    /// source's error.
    pub fn dequant_rows(
        &self,
        rows: Range<u64>,
        out: &mut [f32],
        buffer: &mut [u8],
    ) -> Result<(), ReadError<S::Error>> {
        self.dequant_range(self.first_of_rows(rows, out)?, out, buffer)
    }

    /// Returns the first element of a range of rows, which must fill `out` exactly.
    pub(crate) fn first_of_rows(&self, rows: Range<u64>, out: &[f32]) -> Result<u64, Error> {
        let (first, count) = self.extent().of_rows(rows)?;
        check_buffer(count, to_u64(out.len()))?;
        Ok(first)
    }

    /// Reads successive pieces of the data into `buffer` and calls `each` with them, until it
    /// returns [`ControlFlow::Break`]. Every piece holds as many whole elements as fit in it,
    /// except that the last can be shorter.
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if `buffer` is shorter than 8 bytes, or the
    /// source's error.
    pub fn read_pieces<B>(
        &self,
        buffer: &mut [u8],
        mut each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, ReadError<S::Error>> {
        let capacity = Groups::of(self.dtype()).capacity(buffer)?;
        let Range { start: mut offset, end } = self.file_range();
        while offset < end {
            let left = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
            let piece = buffer.get_mut(..left.min(capacity)).unwrap_or_default();
            fill(&self.source, offset, piece)?;
            offset = offset.saturating_add(to_u64(piece.len()));
            if let ControlFlow::Break(value) = each(piece) {
                return Ok(ControlFlow::Break(value));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Summarises the tensor's values like [`TensorView::stats`](crate::TensorView::stats). The
    /// mean and the standard deviation can differ in the last digits, because the values are summed
    /// in different pieces.
    ///
    /// # Errors
    /// [`NoF32`](ErrorKind::NoF32) for C64; [`BufferLength`](ErrorKind::BufferLength) if `buffer`
    /// is shorter than 8 bytes; or the source's error.
    pub fn stats(&self, buffer: &mut [u8]) -> Result<Stats, ReadError<S::Error>> {
        let mut accumulator = Accumulator::new(self.dtype())?;
        let _: ControlFlow<()> = self.read_pieces(buffer, |piece| {
            accumulator.push(piece);
            ControlFlow::Continue(())
        })?;
        Ok(accumulator.finish())
    }

    /// Returns a slice of the tensor. The indexers apply to its first dimensions; see
    /// [`Slice::new`].
    ///
    /// # Errors
    /// Same as [`Slice::new`].
    pub fn slice(&self, indexers: &[TensorIndexer]) -> Result<SliceReader<'a, &S>, Error> {
        let slice = Slice::new(self.dtype(), self.shape(), indexers)?;
        let TensorReader { source, info, data_start, dequant_elements } = self;
        let (info, data_start, dequant_elements) = (*info, *data_start, *dequant_elements);
        let tensor = TensorReader { source, info, data_start, dequant_elements };
        Ok(SliceReader::new(slice, tensor))
    }

    /// Like [`read_into_at`](Self::read_into_at), but reports the bytes read so far to `watch`.
    pub(crate) fn read_bytes_watched(
        &self,
        first: u64,
        out: &mut [u8],
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, ReadError<S::Error>> {
        let (begin, len) = (first, self.byte_len());
        let end = first.saturating_add(to_u64(out.len()));
        if end > len {
            return Err(Error::new(ErrorKind::RangeOutOfBounds { begin, end, len }).into());
        }
        let start = self.file_range().start.saturating_add(first);
        let mut done: u64 = 0;
        for piece in out.chunks_mut(STEP) {
            fill(&self.source, start.saturating_add(done), piece)?;
            done = done.saturating_add(to_u64(piece.len()));
            if watch(done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Like [`dequant_range`](Self::dequant_range), but reports the elements read to `watch`.
    pub(crate) fn dequant_range_watched(
        &self,
        first: u64,
        out: &mut [f32],
        buffer: &mut [u8],
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, ReadError<S::Error>> {
        let extent = self.extent();
        extent.check_dequant(to_u64(out.len()))?;
        extent.end_of(first, to_u64(out.len()))?;
        self.widen(first, out, buffer, watch)
    }

    /// Reads and converts elements. The caller has checked that the tensor has them.
    fn widen(
        &self,
        first: u64,
        out: &mut [f32],
        buffer: &mut [u8],
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, ReadError<S::Error>> {
        if self.dtype() == Dtype::F32 && cfg!(target_endian = "little") {
            let out: &mut [u8] = bytemuck::cast_slice_mut(out);
            return self.read_bytes_watched(first << 2, out, &mut |bytes| watch(bytes >> 2));
        }
        let groups = Groups::of(self.dtype());
        let capacity = groups.elements(groups.capacity(buffer)?);
        let start = self.file_range().start;
        let (mut rest, mut done) = (out, 0_u64);
        while !rest.is_empty() {
            let element = first.saturating_add(done);
            // The elements of the first group that precede the range.
            let lead = element & groups.mask;
            let fits = usize::try_from(capacity.saturating_sub(lead)).unwrap_or(usize::MAX);
            let Some((out, after)) = rest.split_at_mut_checked(fits.min(rest.len())) else { break };
            let count = to_u64(out.len());
            let bytes = groups.bytes(element, count);
            let whole = buffer.get_mut(..bytes.whole).unwrap_or_default();
            // The parts of the groups before and after the range are not read.
            whole.fill(0);
            let needed = whole.get_mut(bytes.needed).unwrap_or_default();
            fill(&self.source, start.saturating_add(bytes.offset), needed)?;
            dequant::dequant_range(self.dtype(), whole, lead, out)?;
            done = done.saturating_add(count);
            rest = after;
            if watch(done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn keep_going(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Drops the control flow of a call that was watched by [`keep_going`], which never breaks.
fn unwatched<E>(result: Result<ControlFlow<()>, ReadError<E>>) -> Result<(), ReadError<E>> {
    result.map(|_| ())
}
