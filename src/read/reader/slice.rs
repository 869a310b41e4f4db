//! A part of a tensor whose data are in a source.

use core::ops::{ControlFlow, Range};

use super::groups::Groups;
use super::{go_on, unwatched, TensorReader, Watch};
use crate::base::convert::to_u64;
use crate::read::source::{ReadError, Source};
use crate::tensor::extent::check_buffer;
use crate::tensor::slice::Slice;

/// A part of a tensor whose data are in a [`Source`].
///
/// It is read run by run, each run as [`TensorReader`] reads: a slice of many short runs, such as a
/// column of a table, is as many short reads.
#[derive(Debug, Clone, Copy)]
pub struct SliceReader<'a, S> {
    slice: Slice<'a>,
    tensor: TensorReader<'a, S>,
}

impl<'a, S: Source> SliceReader<'a, S> {
    pub(super) fn new(slice: Slice<'a>, tensor: TensorReader<'a, S>) -> Self {
        SliceReader { slice, tensor }
    }

    /// The slice's own shape. See [`Slice::shape`].
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
    /// [`byte_len`](Self::byte_len) bytes; or the source's.
    pub fn read_bytes(&self, out: &mut [u8]) -> Result<(), ReadError<S::Error>> {
        unwatched(self.read_bytes_watched(out, &mut go_on))
    }

    /// Reads the slice's elements as `f32`, in row-major order.
    ///
    /// # Errors
    /// As [`SliceView::dequant_into`](crate::SliceView::dequant_into), and then `out` is as it was;
    /// [`BufferLength`](crate::ErrorKind::BufferLength) also if `buffer` has fewer than 8 bytes; or the
    /// source's.
    pub fn dequant_into(
        &self,
        out: &mut [f32],
        buffer: &mut [u8],
    ) -> Result<(), ReadError<S::Error>> {
        unwatched(self.dequant_into_watched(out, buffer, &mut go_on))
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
                .read_bytes_watched(start, out, &mut |of_run| watch(done.saturating_add(of_run)))?;
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
            // Runs begin and end between bytes and between elements.
            let first = dtype.elements_in(start);
            let count = dtype.elements_in(end).saturating_sub(first);
            let Some((out, after)) = split(rest, count) else { break };
            let read = self
                .tensor
                .widen(first, out, buffer, &mut |of_run| watch(done.saturating_add(of_run)))?;
            if read.is_break() {
                return Ok(read);
            }
            done = done.saturating_add(count);
            rest = after;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads the slice's data piece by piece into the buffer, and gives each piece to `each`, until
    /// that breaks.
    ///
    /// # Errors
    /// [`BufferLength`](crate::ErrorKind::BufferLength) if `buffer` has fewer than 8 bytes; or the source's.
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
                self.tensor.read_bytes_at(start, piece)?;
                start = start.saturating_add(to_u64(piece.len()));
                if let ControlFlow::Break(value) = each(piece) {
                    return Ok(ControlFlow::Break(value));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The first places of a buffer, and the others, if there are as many.
fn split<T>(buffer: &mut [T], len: u64) -> Option<(&mut [T], &mut [T])> {
    buffer.split_at_mut_checked(usize::try_from(len).ok()?)
}
