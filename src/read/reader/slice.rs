//! A slice of a tensor whose data is in a source.

use core::ops::{ControlFlow, Range};

use super::groups::Groups;
use super::{keep_going, unwatched, TensorReader, Watch};
use crate::base::convert::to_u64;
use crate::read::source::{ReadError, Source};
use crate::tensor::extent::check_buffer;
use crate::tensor::slice::Slice;

/// A slice of a tensor whose data is in a [`Source`].
///
/// Each contiguous run of the slice is read on its own, in the way of [`TensorReader`]. A slice of
/// many short runs, such as a column of a matrix, takes as many short reads.
#[derive(Debug, Clone, Copy)]
pub struct SliceReader<'a, S> {
    slice: Slice<'a>,
    tensor: TensorReader<'a, S>,
}

impl<'a, S: Source> SliceReader<'a, S> {
    pub(super) fn new(slice: Slice<'a>, tensor: TensorReader<'a, S>) -> Self {
        SliceReader { slice, tensor }
    }

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

    /// Reads the slice's data, unconverted and in row-major order.
    ///
    /// # Errors
    /// [`BufferLength`](crate::ErrorKind::BufferLength) if the buffer's length is not
    /// [`byte_len`](Self::byte_len), or the source's error.
    pub fn read_into(&self, out: &mut [u8]) -> Result<(), ReadError<S::Error>> {
        unwatched(self.read_bytes_watched(out, &mut keep_going))
    }

    /// Reads the slice's elements in row-major order and converts them to `f32`.
    ///
    /// # Errors
    /// Same as [`SliceView::dequant_into`](crate::SliceView::dequant_into), with `out` unchanged;
    /// [`BufferLength`](crate::ErrorKind::BufferLength) also if `buffer` is shorter than 8 bytes;
    /// or the source's error.
    pub fn dequant_into(
        &self,
        out: &mut [f32],
        buffer: &mut [u8],
    ) -> Result<(), ReadError<S::Error>> {
        unwatched(self.dequant_into_watched(out, buffer, &mut keep_going))
    }

    pub(crate) fn read_bytes_watched(
        &self,
        out: &mut [u8],
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, ReadError<S::Error>> {
        check_buffer(self.byte_len(), to_u64(out.len()))?;
        let (mut rest, mut done) = (out, 0_u64);
        for Range { start, end } in self.slice.runs() {
            let len = end.saturating_sub(start);
            let Some((out, after)) = split(rest, len) else { break };
            let read = self
                .tensor
                .read_bytes_watched(start, out, &mut |in_run| watch(done.saturating_add(in_run)))?;
            if read.is_break() {
                return Ok(read);
            }
            done = done.saturating_add(len);
            rest = after;
        }
        Ok(ControlFlow::Continue(()))
    }

    pub(crate) fn dequant_into_watched(
        &self,
        out: &mut [f32],
        buffer: &mut [u8],
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, ReadError<S::Error>> {
        check_buffer(self.elements(), to_u64(out.len()))?;
        self.tensor.extent().check_dequant(self.elements())?;
        let dtype = self.tensor.dtype();
        let (mut rest, mut done) = (out, 0_u64);
        for Range { start, end } in self.slice.runs() {
            // Runs start and end on boundaries of both bytes and elements.
            let first = dtype.elements_in(start);
            let count = dtype.elements_in(end).saturating_sub(first);
            let Some((out, after)) = split(rest, count) else { break };
            let read = self
                .tensor
                .widen(first, out, buffer, &mut |in_run| watch(done.saturating_add(in_run)))?;
            if read.is_break() {
                return Ok(read);
            }
            done = done.saturating_add(count);
            rest = after;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads successive pieces of the slice's data into `buffer` and calls `each` with them, until
    /// it returns [`ControlFlow::Break`]. A piece never extends over two runs.
    ///
    /// # Errors
    /// [`BufferLength`](crate::ErrorKind::BufferLength) if `buffer` is shorter than 8 bytes, or the
    /// source's error.
    pub fn read_pieces<B>(
        &self,
        buffer: &mut [u8],
        mut each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, ReadError<S::Error>> {
        let capacity = Groups::of(self.tensor.dtype()).capacity(buffer)?;
        for Range { mut start, end } in self.slice.runs() {
            while start < end {
                let left = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
                let piece = buffer.get_mut(..left.min(capacity)).unwrap_or_default();
                self.tensor.read_into_at(start, piece)?;
                start = start.saturating_add(to_u64(piece.len()));
                if let ControlFlow::Break(value) = each(piece) {
                    return Ok(ControlFlow::Break(value));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Splits a buffer after `len` items. Returns `None` if it has fewer.
fn split<T>(buffer: &mut [T], len: u64) -> Option<(&mut [T], &mut [T])> {
    buffer.split_at_mut_checked(usize::try_from(len).ok()?)
}
