//! Reading from a [`Source`] with the caller's buffers: a header, then the bytes or the values of
//! what is asked for, and no byte besides.

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

/// Bytes of a file's begin that are read to name its format, where it is not this one.
const PREFIX: usize = 64;

/// Bytes that are read in one call at most, so that who watches is told now and then.
const STEP: usize = 1 << 20;

/// What is told how much is done, and may stop it.
pub(crate) type Watch<'w> = &'w mut dyn FnMut(u64) -> ControlFlow<()>;

/// Fills a buffer from a source.
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
    /// Reads the frame of the file in a source: 8 bytes; a few more if it is none, to name what it is.
    ///
    /// # Errors
    /// As [`Frame::parse`], or the source's.
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
    /// Reads the header of the file in a source into the begin of a buffer.
    ///
    /// # Errors
    /// As [`Frame::parse`] and [`Header::new`]; [`BufferLength`](ErrorKind::BufferLength), with the
    /// length needed, if the buffer is too small; or the source's.
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

/// A file in a [`Source`]: its table in memory, its data where they are.
///
/// See [`Source`] for an example. `'a` is the buffer that holds the header, `'s` the slots.
#[derive(Debug, Clone)]
pub struct Reader<'a, 's, S> {
    source: S,
    table: Table<'a, 's>,
}

impl<'a, 's, S: Source> Reader<'a, 's, S> {
    /// Reads and checks the header of the file in a source. Of the data nothing is read.
    ///
    /// # Errors
    /// As [`Header::read_from`] and [`Table::parse`].
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

    /// The table, which tells of the tensors without their data.
    #[must_use]
    pub fn table(&self) -> &Table<'a, 's> {
        &self.table
    }

    /// Where the bytes are.
    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The tensor with this name. See [`Table::info`].
    ///
    /// # Errors
    /// [`TensorNotFound`](ErrorKind::TensorNotFound).
    pub fn tensor(&self, name: &str) -> Result<TensorReader<'a, &S>, Error> {
        Ok(TensorReader::of_table(&self.source, &self.table, self.table.info(name)?))
    }

    /// The tensors in the order of their data.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorReader<'a, &S>> + '_ {
        self.table.iter().map(|info| TensorReader::of_table(&self.source, &self.table, info))
    }
}

/// A tensor whose data are in a [`Source`].
///
/// Nothing is read but what is asked for, to the byte. Where values are widened the data pass through
/// a buffer of the caller's; the larger it is the fewer reads there are, and 8 bytes are enough. F32
/// on a little-endian machine needs none: it is read to where it belongs.
///
/// If a read fails, what the output then holds is unspecified.
#[derive(Debug, Clone, Copy)]
pub struct TensorReader<'a, S> {
    source: S,
    info: TensorInfo<'a>,
    data_start: u64,
    dequant_elements: u64,
}

impl<'a, S: Source> TensorReader<'a, S> {
    /// A tensor that was found in a header without slots, by [`Header::scan`] or [`Header::find`].
    #[must_use]
    pub fn new(source: S, header: &Header<'a>, info: TensorInfo<'a>) -> Self {
        let dequant_elements = header.parts().limits.dequant_elements;
        TensorReader { source, info, data_start: header.data_start(), dequant_elements }
    }

    pub(crate) fn of_table(source: S, table: &Table<'a, '_>, info: TensorInfo<'a>) -> Self {
        let dequant_elements = table.facts().dequant_elements;
        TensorReader { source, info, data_start: table.data_start(), dequant_elements }
    }

    /// What the header says of the tensor.
    #[must_use]
    pub fn info(&self) -> TensorInfo<'a> {
        self.info
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> Text<'a> {
        self.info.name
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.info.dtype
    }

    /// The dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape<'a> {
        self.info.shape
    }

    /// How many elements there are. Takes constant time.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.info.elements()
    }

    /// Bytes of the data.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.info.byte_len()
    }

    /// Where the data are in the source.
    #[must_use]
    pub fn file_range(&self) -> Range<u64> {
        let (begin, end) = self.info.data_offsets;
        self.data_start.saturating_add(begin)..self.data_start.saturating_add(end)
    }

    /// Elements of one row: of what one index of the first dimension selects.
    ///
    /// # Errors
    /// [`NoRows`](ErrorKind::NoRows) for a scalar. A tensor with no rows at all has rows of size 0.
    pub fn row_len(&self) -> Result<u64, Error> {
        self.extent().row_len()
    }

    fn extent(&self) -> Extent<'a> {
        let TensorInfo { dtype, shape, .. } = self.info;
        let (elements, dequant_elements) = (self.elements(), self.dequant_elements);
        Extent { dtype, shape, elements, dequant_elements }
    }

    /// Reads all data as they stand in the source.
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if the buffer has not exactly as many bytes; or the
    /// source's.
    pub fn read_bytes(&self, out: &mut [u8]) -> Result<(), ReadError<S::Error>> {
        check_buffer(self.byte_len(), to_u64(out.len()))?;
        self.read_bytes_at(0, out)
    }

    /// Reads as many bytes of the data as `out` has places, from the byte `first` of them on.
    ///
    /// # Errors
    /// [`RangeOutOfBounds`](ErrorKind::RangeOutOfBounds) if the tensor does not have these bytes; or
    /// the source's.
    pub fn read_bytes_at(&self, first: u64, out: &mut [u8]) -> Result<(), ReadError<S::Error>> {
        unwatched(self.read_bytes_watched(first, out, &mut go_on))
    }

    /// Reads all elements as `f32`. See [`dequant`] for what each dtype becomes.
    ///
    /// # Errors
    /// As [`TensorView::dequant_into`](crate::TensorView::dequant_into), and then `out` is as it was;
    /// [`BufferLength`](ErrorKind::BufferLength) also if `buffer` has fewer than 8 bytes; or the
    /// source's.
    pub fn dequant_into(
        &self,
        out: &mut [f32],
        buffer: &mut [u8],
    ) -> Result<(), ReadError<S::Error>> {
        check_buffer(self.elements(), to_u64(out.len()))?;
        self.dequant_range(0, out, buffer)
    }

    /// Reads as many elements as `out` has places, from the element `first` on, as `f32`.
    ///
    /// # Errors
    /// As [`TensorView::dequant_range`](crate::TensorView::dequant_range), and then `out` is as it
    /// was; [`BufferLength`](ErrorKind::BufferLength) if `buffer` has fewer than 8 bytes; or the
    /// source's.
    pub fn dequant_range(
        &self,
        first: u64,
        out: &mut [f32],
        buffer: &mut [u8],
    ) -> Result<(), ReadError<S::Error>> {
        unwatched(self.dequant_range_watched(first, out, buffer, &mut go_on))
    }

    /// Reads the rows of a range, over the first dimension, as `f32`.
    ///
    /// # Errors
    /// As [`TensorView::dequant_rows`](crate::TensorView::dequant_rows), and then `out` is as it was;
    /// [`BufferLength`](ErrorKind::BufferLength) also if `buffer` has fewer than 8 bytes; or the
    /// source's.
    pub fn dequant_rows(
        &self,
        rows: Range<u64>,
        out: &mut [f32],
        buffer: &mut [u8],
    ) -> Result<(), ReadError<S::Error>> {
        self.dequant_range(self.first_of_rows(rows, out)?, out, buffer)
    }

    /// The first element of rows that fill `out`.
    pub(crate) fn first_of_rows(&self, rows: Range<u64>, out: &[f32]) -> Result<u64, Error> {
        let (first, count) = self.extent().of_rows(rows)?;
        check_buffer(count, to_u64(out.len()))?;
        Ok(first)
    }

    /// Reads the data piece by piece into the buffer, and gives each piece to `each`, until that
    /// breaks. Every piece but the last fills as much of the buffer as it can with whole elements.
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if `buffer` has fewer than 8 bytes; or the source's.
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

    /// Summarises the tensor's values, as [`TensorView::stats`](crate::TensorView::stats) does. Mean and
    /// standard deviation may differ from that in their last digits, since sums are made of other pieces.
    ///
    /// # Errors
    /// [`NoF32`](ErrorKind::NoF32) for C64;
    /// [`BufferLength`](ErrorKind::BufferLength) if `buffer` has fewer than 8 bytes; or the source's.
    pub fn stats(&self, buffer: &mut [u8]) -> Result<Stats, ReadError<S::Error>> {
        let mut accumulator = Accumulator::new(self.dtype())?;
        let _: ControlFlow<()> = self.read_pieces(buffer, |piece| {
            accumulator.push(piece);
            ControlFlow::Continue(())
        })?;
        Ok(accumulator.finish())
    }

    /// The part of the tensor that these indexers take of its first dimensions. See [`Slice::new`].
    ///
    /// # Errors
    /// As [`Slice::new`].
    pub fn slice(&self, indexers: &[TensorIndexer]) -> Result<SliceReader<'a, &S>, Error> {
        let slice = Slice::new(self.dtype(), self.shape(), indexers)?;
        let TensorReader { source, info, data_start, dequant_elements } = self;
        let (info, data_start, dequant_elements) = (*info, *data_start, *dequant_elements);
        let tensor = TensorReader { source, info, data_start, dequant_elements };
        Ok(SliceReader::new(slice, tensor))
    }

    /// As [`read_bytes_at`](Self::read_bytes_at); tells `watch` how many bytes are read.
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

    /// As [`dequant_range`](Self::dequant_range); tells `watch` how many elements are read.
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

    /// Reads elements that the tensor has.
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
            // Elements of the first group that come before the range.
            let lead = element & groups.last_of_group;
            let room = usize::try_from(capacity.saturating_sub(lead)).unwrap_or(usize::MAX);
            let Some((out, after)) = rest.split_at_mut_checked(room.min(rest.len())) else { break };
            let count = to_u64(out.len());
            let bytes = groups.bytes(element, count);
            let held = buffer.get_mut(..bytes.whole).unwrap_or_default();
            // What the groups have before and after the range is not read.
            held.fill(0);
            let asked = held.get_mut(bytes.asked).unwrap_or_default();
            fill(&self.source, start.saturating_add(bytes.offset), asked)?;
            dequant::dequant_range(self.dtype(), held, lead, out)?;
            done = done.saturating_add(count);
            rest = after;
            if watch(done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The result of what was watched by one who lets it go on.
fn unwatched<E>(result: Result<ControlFlow<()>, ReadError<E>>) -> Result<(), ReadError<E>> {
    result.map(|_| ())
}
