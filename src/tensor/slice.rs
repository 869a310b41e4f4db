//! Slices of a tensor: ranges with steps, or single indexes, in its first dimensions. A slice
//! yields runs of bytes, computed one at a time.

use core::fmt;
use core::num::NonZeroU64;
use core::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use crate::base::convert::{to_u32, to_u64};
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::header::shape::Shape;
use crate::tensor::extent::check_buffer;
use crate::tensor::view::TensorView;

/// The maximum number of indexers of a slice. A tensor can have more dimensions: those without an
/// indexer are taken whole.
pub const MAX_INDEXERS: usize = 16;

/// The part of one dimension that a slice takes.
///
/// Numbers and ranges of `u64` convert into it: `2.into()`, `(1..3).into()` and `(..).into()` are
/// indexers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorIndexer {
    /// A single index. The slice's shape omits this dimension.
    Select(u64),
    /// Every `step`th index of a range, starting with the first.
    Narrow(Bound<u64>, Bound<u64>, NonZeroU64),
}

impl TensorIndexer {
    /// Returns an indexer for every `step`th index of a range, or `None` if `step` is 0.
    ///
    /// ```
    /// use safetensors_zero::TensorIndexer;
    ///
    /// let every_other = TensorIndexer::stepped(.., 2);
    /// # assert!(every_other.is_some());
    /// ```
    #[must_use]
    pub fn stepped(range: impl RangeBounds<u64>, step: u64) -> Option<TensorIndexer> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        Some(TensorIndexer::Narrow(bounds.0, bounds.1, NonZeroU64::new(step)?))
    }
}

impl From<u64> for TensorIndexer {
    fn from(index: u64) -> Self {
        TensorIndexer::Select(index)
    }
}

macro_rules! from_ranges {
    ($($range:ty),*) => {$(
        impl From<$range> for TensorIndexer {
            fn from(range: $range) -> Self {
                let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
                TensorIndexer::Narrow(bounds.0, bounds.1, NonZeroU64::MIN)
            }
        }
    )*};
}

from_ranges!(
    Range<u64>,
    RangeFrom<u64>,
    RangeFull,
    RangeInclusive<u64>,
    RangeTo<u64>,
    RangeToInclusive<u64>
);

/// The indexes of one dimension that its indexer takes.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// The number of indexes.
    count: u64,
    /// The distance from one index to the next, in elements.
    stride: u64,
}

/// A part of a tensor, described by dtype and shape alone, without the data.
///
/// It consists of one or more runs of the tensor's bytes, or none if it is empty. See
/// [`Slice::runs`].
#[derive(Debug, Clone, Copy)]
pub struct Slice<'a> {
    dtype: Dtype,
    shape: Shape<'a>,
    /// What the indexers take of the first dimensions.
    taken: [Taken; MAX_INDEXERS],
    /// Which of these dimensions the slice's shape keeps: one bit each.
    kept: u16,
    indexers: u8,
    /// The number of outer dimensions to iterate over. The others are within a run. 0 if there is
    /// only one run.
    walked: u8,
    /// The first element.
    first: u64,
    /// The number of elements in a run; 0 if the slice is empty.
    run: u64,
    elements: u64,
}

impl<'a> Slice<'a> {
    /// Creates a slice by applying indexers to a tensor's first dimensions. Dimensions without an
    /// indexer are taken whole.
    ///
    /// Ranges work as for Rust slices: the end can be the dimension's size, and an empty range
    /// gives an empty slice. Takes time linear in the rank.
    ///
    /// # Errors
    /// [`TooManyIndexers`](ErrorKind::TooManyIndexers),
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange),
    /// [`IndexReversed`](ErrorKind::IndexReversed);
    /// [`PartialByteSlice`](ErrorKind::PartialByteSlice) if a run of elements smaller than a byte
    /// begins or ends inside a byte; [`ShapeOverflow`](ErrorKind::ShapeOverflow) if the number of
    /// elements overflows.
    pub fn new(
        dtype: Dtype,
        shape: Shape<'a>,
        indexers: &[TensorIndexer],
    ) -> Result<Slice<'a>, Error> {
        let mut slice = Slice {
            dtype,
            shape,
            taken: [Taken::default(); MAX_INDEXERS],
            kept: 0,
            indexers: 0,
            walked: 0,
            first: 0,
            run: 0,
            elements: 0,
        };
        if indexers.len() > MAX_INDEXERS {
            return Err(too_many(indexers, MAX_INDEXERS));
        }
        // The number of elements that one index of the previous dimension holds.
        let mut held = shape.elements().ok_or_else(|| Error::new(ErrorKind::ShapeOverflow))?;
        let mut elements: u64 = 1;
        let mut sizes = shape.iter();
        for ((dimension, indexer), place) in (0..MAX_INDEXERS).zip(indexers).zip(&mut slice.taken) {
            let size = sizes.next().ok_or_else(|| too_many(indexers, shape.rank()))?;
            // A tensor without elements never uses its strides.
            held = held.checked_div(size).unwrap_or(0);
            let (start, taken) = take(indexer, dimension, size, held)?;
            // No product or sum overflows: all are at most the tensor's number of elements.
            slice.first = slice.first.saturating_add(start.saturating_mul(held));
            elements = elements.saturating_mul(taken.count);
            let is_kept = matches!(indexer, TensorIndexer::Narrow(..));
            slice.kept |= u16::from(is_kept) << (slice.indexers & 15);
            slice.indexers = slice.indexers.saturating_add(1);
            *place = taken;
        }
        slice.elements = elements.saturating_mul(held);
        if slice.elements > 0 {
            slice.find_runs(held);
            slice.check_bytes()?;
        }
        Ok(slice)
    }

    /// Makes runs as long as possible. Starts with the `inner` elements, which are contiguous, and
    /// adds dimensions from the innermost on while they are taken without gaps.
    fn find_runs(&mut self, inner: u64) {
        self.run = inner;
        self.walked = self.indexers;
        for taken in self.taken.iter().take(usize::from(self.indexers)).rev() {
            if taken.count != 1 && taken.stride != self.run {
                break;
            }
            self.run = self.run.saturating_mul(taken.count);
            self.walked = self.walked.saturating_sub(1);
        }
    }

    /// Checks that every run begins and ends on a byte boundary.
    fn check_bytes(&self) -> Result<(), Error> {
        let whole = |elements| self.dtype.byte_len(elements).is_ok();
        let mut walked = self.walked().iter().filter(|taken| taken.count > 1);
        if whole(self.first) && whole(self.run) && walked.all(|taken| whole(taken.stride)) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::PartialByteSlice { dtype: self.dtype }))
    }

    /// Returns what is taken of the dimensions to iterate over.
    fn walked(&self) -> &[Taken] {
        self.taken.get(..usize::from(self.walked)).unwrap_or_default()
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the slice's shape: the number of indexes taken by each range, then the dimensions
    /// without an indexer. Dimensions with a single index are omitted.
    pub fn shape(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        let indexers = usize::from(self.indexers);
        let taken = (0..indexers).zip(&self.taken);
        let kept = taken.filter(|(i, _)| self.kept >> (i & 15) & 1 == 1);
        kept.map(|(_, taken)| taken.count).chain(self.shape.iter().skip(indexers))
    }

    /// Returns the number of elements in the slice.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Returns the length of the slice in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.dtype.byte_len(self.elements).unwrap_or(0)
    }

    /// Returns an iterator over the byte ranges that make up the slice, relative to the start of
    /// the tensor's data. Ranges are in ascending order, which is the order of the slice's
    /// elements. Adjacent ranges are merged, so there is a gap between any two.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs {
            taken: self.walked(),
            at: [0; MAX_INDEXERS],
            next: (self.elements > 0).then_some(self.first),
            run: self.run,
            dtype: self.dtype,
        }
    }
}

#[cold]
fn too_many(indexers: &[TensorIndexer], limit: usize) -> Error {
    let (given, limit) = (to_u64(indexers.len()), to_u64(limit));
    Error::new(ErrorKind::TooManyIndexers { given, limit })
}

/// Applies an indexer to a dimension with `held` elements per index. Returns the first index taken,
/// and the number and stride of all indexes taken.
fn take(
    indexer: &TensorIndexer,
    dimension: usize,
    size: u64,
    held: u64,
) -> Result<(u64, Taken), Error> {
    let dimension = to_u32(dimension);
    let out_of_range = |index| Error::new(ErrorKind::IndexOutOfRange { dimension, index, size });
    let (start, stop, step) = match *indexer {
        TensorIndexer::Select(index) if index < size => {
            return Ok((index, Taken { count: 1, stride: held }));
        }
        TensorIndexer::Select(index) => return Err(out_of_range(index)),
        TensorIndexer::Narrow(start, stop, step) => {
            let after = |index: u64| index.checked_add(1).ok_or_else(|| out_of_range(index));
            let start = match start {
                Bound::Unbounded => 0,
                Bound::Included(start) => start,
                Bound::Excluded(before) => after(before)?,
            };
            let stop = match stop {
                Bound::Unbounded => size,
                Bound::Included(last) => after(last)?,
                Bound::Excluded(stop) => stop,
            };
            (start, stop, step)
        }
    };
    if stop > size {
        return Err(out_of_range(stop));
    }
    let Some(len) = stop.checked_sub(start) else {
        return Err(Error::new(ErrorKind::IndexReversed { dimension, start, stop }));
    };
    let count = len
        .checked_sub(1)
        .map_or(0, |last| last.checked_div(step.get()).unwrap_or(0).saturating_add(1));
    // The stride of a single index is never used. `held` lets the dimension join a run.
    let stride = if count > 1 { held.saturating_mul(step.get()) } else { held };
    Ok((start, Taken { count, stride }))
}

/// An iterator over the byte ranges of a [`Slice`], relative to the start of the tensor's data.
#[derive(Debug, Clone)]
pub struct Runs<'s> {
    /// What is taken of the dimensions to iterate over.
    taken: &'s [Taken],
    /// The current index in each of them, counted among those taken.
    at: [u64; MAX_INDEXERS],
    /// The first element of the next run.
    next: Option<u64>,
    run: u64,
    dtype: Dtype,
}

impl Runs<'_> {
    /// Moves `next` from the run at `first` to the following run.
    fn advance(&mut self, first: u64) {
        self.next = None;
        let mut element = first;
        for (at, taken) in self.at.iter_mut().zip(self.taken).rev() {
            let following = at.saturating_add(1);
            if following < taken.count {
                *at = following;
                self.next = Some(element.saturating_add(taken.stride));
                return;
            }
            // Resets this dimension. The next iteration advances the next outer one.
            element = element.saturating_sub(at.saturating_mul(taken.stride));
            *at = 0;
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let first = self.next?;
        self.advance(first);
        let mut end = first.saturating_add(self.run);
        while self.next == Some(end) {
            self.advance(end);
            end = end.saturating_add(self.run);
        }
        // `check_bytes` has checked that every run begins and ends on a byte boundary.
        let byte = |element| self.dtype.byte_len(element).unwrap_or(u64::MAX);
        Some(byte(first)..byte(end))
    }
}

impl core::iter::FusedIterator for Runs<'_> {}

/// A slice of a tensor with its data in memory.
///
/// ```
/// # use safetensors_zero::{Dtype, TensorView};
/// let view = TensorView::new(Dtype::U8, &[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// let column = view.slice(&[(..).into(), 1.into()])?;
/// assert!(column.shape().eq([2]));
/// let mut bytes = [0; 2];
/// column.copy_to(&mut bytes)?;
/// assert_eq!(bytes, [2, 5]);
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct SliceView<'a> {
    slice: Slice<'a>,
    view: TensorView<'a>,
}

impl<'a> TensorView<'a> {
    /// Creates a slice by applying indexers to the tensor's first dimensions. See [`Slice::new`].
    ///
    /// # Errors
    /// Same as [`Slice::new`].
    pub fn slice(&self, indexers: &[TensorIndexer]) -> Result<SliceView<'a>, Error> {
        let slice = Slice::new(self.dtype(), self.shape(), indexers)?;
        Ok(SliceView { slice, view: *self })
    }
}

impl<'a> SliceView<'a> {
    /// Returns the slice's shape. See [`Slice::shape`].
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

    /// Returns an iterator over the pieces of data that make up the slice, in the order of its
    /// elements. Pieces are computed lazily. Adjacent pieces are merged.
    #[must_use]
    pub fn iter(&self) -> SliceIter<'_, 'a> {
        SliceIter { runs: self.slice.runs(), data: self.view.data() }
    }

    /// Copies the slice's data to `out`.
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if the length of `out` is not
    /// [`byte_len`](Self::byte_len). `out` is then unchanged.
    pub fn copy_to(&self, out: &mut [u8]) -> Result<(), Error> {
        check_buffer(self.byte_len(), to_u64(out.len()))?;
        let mut rest = out;
        for piece in self {
            let Some((place, after)) = rest.split_at_mut_checked(piece.len()) else { break };
            place.copy_from_slice(piece);
            rest = after;
        }
        Ok(())
    }

    /// Writes the slice's elements to `out` as `f32`, in row-major order.
    ///
    /// # Errors
    /// [`BufferLength`](ErrorKind::BufferLength) if the length of `out` is not the number of
    /// elements; [`NoF32`](ErrorKind::NoF32) for C64;
    /// [`TooManyElements`](ErrorKind::TooManyElements) above the limit that the file was parsed
    /// with. `out` is then unchanged.
    pub fn dequant_into(&self, out: &mut [f32]) -> Result<(), Error> {
        check_buffer(self.elements(), to_u64(out.len()))?;
        self.view.extent().check_dequant(self.elements())?;
        let dtype = self.view.dtype();
        let mut rest = out;
        for piece in self {
            let elements = usize::try_from(dtype.elements_in(to_u64(piece.len())));
            let split = elements.ok().and_then(|elements| rest.split_at_mut_checked(elements));
            let Some((place, after)) = split else { break };
            crate::tensor::dequant::dequant_into(dtype, piece, place)?;
            rest = after;
        }
        Ok(())
    }
}

impl fmt::Debug for SliceView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SliceView")
            .field("name", &self.view.name())
            .field("dtype", &self.view.dtype())
            .field("elements", &self.elements())
            .finish_non_exhaustive()
    }
}

impl<'s, 'a> IntoIterator for &'s SliceView<'a> {
    type Item = &'a [u8];
    type IntoIter = SliceIter<'s, 'a>;

    fn into_iter(self) -> SliceIter<'s, 'a> {
        self.iter()
    }
}

/// An iterator over the pieces of data of a [`SliceView`].
#[derive(Debug, Clone)]
pub struct SliceIter<'s, 'a> {
    runs: Runs<'s>,
    data: &'a [u8],
}

impl<'a> Iterator for SliceIter<'_, 'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let run = self.runs.next()?;
        let begin = usize::try_from(run.start).ok()?;
        let end = usize::try_from(run.end).ok()?;
        self.data.get(begin..end)
    }
}
