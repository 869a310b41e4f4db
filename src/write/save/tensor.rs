//! Writing one tensor, from bytes or from numbers of the host's types.

use core::fmt;
use std::io;
use std::vec;

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::table::info::TensorInfo;
use crate::tensor::encode;
use crate::write::error::{WriteError, WriteErrorKind};

/// The most bytes that are converted at a time.
const CHUNK: usize = 64 << 10;

/// A destination for tensor data.
pub(super) trait Destination {
    /// Writes bytes at an offset in the data region.
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), WriteErrorKind>;
}

/// A writer of one tensor's data. Each call writes the next bytes or elements.
///
/// There is nothing to do at the end: whether the tensor is complete is checked when the file is
/// finished. A call that would write beyond the tensor's end is an error and writes nothing.
pub struct TensorWriter<'w> {
    destination: &'w mut dyn Destination,
    info: TensorInfo<'w>,
    /// The number of bytes written of the tensor.
    written: &'w mut u64,
}

impl<'w> TensorWriter<'w> {
    pub(super) fn new(
        destination: &'w mut dyn Destination,
        info: TensorInfo<'w>,
        written: &'w mut u64,
    ) -> Self {
        TensorWriter { destination, info, written }
    }

    /// Returns the tensor's entry in the plan.
    #[must_use]
    pub fn info(&self) -> TensorInfo<'w> {
        self.info
    }

    /// Returns the number of bytes left to write.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.info.byte_len().saturating_sub(*self.written)
    }

    /// Writes the next bytes: little-endian elements of the tensor's dtype. A call can end inside
    /// an element.
    ///
    /// # Errors
    /// Returns an error if the tensor has fewer bytes left, or if writing fails.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.check_remaining(to_u64(bytes.len()))?;
        self.put(bytes)
    }

    /// Writes the next elements of an F64, F32, F16 or BF16 tensor. See [`encode::from_f64`].
    ///
    /// # Errors
    /// Returns an error if the tensor has another dtype or fewer elements left, or if writing
    /// fails.
    pub fn write_f64(&mut self, values: &[f64]) -> Result<(), WriteError> {
        self.write_values(values, encode::from_f64)
    }

    /// Writes the next elements of an F64, F32, F16 or BF16 tensor. See [`encode::from_f32`].
    ///
    /// # Errors
    /// Returns an error if the tensor has another dtype or fewer elements left, or if writing
    /// fails.
    pub fn write_f32(&mut self, values: &[f32]) -> Result<(), WriteError> {
        self.write_values(values, encode::from_f32)
    }

    /// Writes the next elements of an integer tensor. See [`encode::from_i64`].
    ///
    /// # Errors
    /// Returns an error if the dtype is not an integer type or cannot hold a value, if the tensor
    /// has fewer elements left, or if writing fails. Elements before a value that does not fit can
    /// have been written; see [`TensorWriter::remaining`].
    pub fn write_i64(&mut self, values: &[i64]) -> Result<(), WriteError> {
        self.write_values(values, encode::from_i64)
    }

    fn write_values<T>(
        &mut self,
        values: &[T],
        encode: impl Fn(Dtype, &[T], &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), WriteError> {
        let dtype = self.info.dtype;
        self.check_remaining(dtype.byte_len(to_u64(values.len())).unwrap_or(u64::MAX))?;
        let size = dtype.bitsize().div_ceil(8);
        let chunk_len = CHUNK.checked_div(size).unwrap_or(1);
        let mut buffer = vec![0; values.len().min(chunk_len).saturating_mul(size)];
        let mut before: u64 = 0;
        for chunk in values.chunks(chunk_len) {
            let bytes = buffer.get_mut(..chunk.len().saturating_mul(size)).unwrap_or_default();
            encode(dtype, chunk, bytes)
                .map_err(|error| self.refused(shift_index(error.kind(), before)))?;
            self.put(bytes)?;
            before = before.saturating_add(to_u64(chunk.len()));
        }
        Ok(())
    }

    fn check_remaining(&self, more: u64) -> Result<(), WriteError> {
        if more <= self.remaining() {
            return Ok(());
        }
        let written = self.written.saturating_add(more);
        Err(self.refused(ErrorKind::DataExcess { needed: self.info.byte_len(), written }))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let offset = self.info.data_offsets.0.saturating_add(*self.written);
        match self.destination.put(offset, bytes) {
            Ok(()) => *self.written = self.written.saturating_add(to_u64(bytes.len())),
            Err(kind) => return Err(self.with_name(WriteError::new(kind))),
        }
        Ok(())
    }

    #[cold]
    fn refused(&self, kind: ErrorKind) -> WriteError {
        self.with_name(WriteError::refused(kind))
    }

    fn with_name(&self, error: WriteError) -> WriteError {
        error.with_tensor(Some(&self.info.name.to_cow()))
    }
}

/// Adds the number of values converted before this chunk to the index in an error.
fn shift_index(kind: ErrorKind, before: u64) -> ErrorKind {
    match kind {
        ErrorKind::ValueOutOfRange { index, value, dtype } => {
            ErrorKind::ValueOutOfRange { index: index.saturating_add(before), value, dtype }
        }
        kind => kind,
    }
}

/// Writes bytes as [`TensorWriter::write_bytes`] does: all of them or an error.
impl io::Write for TensorWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.write_bytes(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for TensorWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorWriter")
            .field("info", &self.info)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}
