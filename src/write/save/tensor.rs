//! One tensor being written, from bytes or from numbers of a host's own types.

use core::fmt;
use std::io;
use std::prelude::v1::*;

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::table::info::TensorInfo;
use crate::tensor::encode;
use crate::write::error::{WriteError, WriteErrorKind};

/// Bytes that are converted at a time, at most.
const PIECE: usize = 64 << 10;

/// Where the data of a tensor go.
pub(super) trait Destination {
    /// Takes bytes that stand at this offset in the data region.
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), WriteErrorKind>;
}

/// A tensor whose data are being written: its next bytes, or its next elements, in as many calls as
/// you like.
///
/// Nothing has to be done at its end: whether all was written is checked when the file is finished,
/// and a call that would write more than the tensor has is an error that writes nothing.
pub struct TensorWriter<'w> {
    destination: &'w mut dyn Destination,
    info: TensorInfo<'w>,
    /// Bytes of the tensor that are written.
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

    /// What was planned of it.
    #[must_use]
    pub fn info(&self) -> TensorInfo<'w> {
        self.info
    }

    /// Bytes that are still to be written.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.info.byte_len().saturating_sub(*self.written)
    }

    /// Writes the next bytes, little-endian elements of the tensor's dtype. A call may end inside an
    /// element.
    ///
    /// # Errors
    /// The tensor has fewer bytes left; the file does not take them.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.check_room(to_u64(bytes.len()))?;
        self.put(bytes)
    }

    /// Writes the next elements of a tensor of F64, F32, F16 or BF16. See [`encode::from_f64`].
    ///
    /// # Errors
    /// The dtype takes no floats; the tensor has fewer elements left; the file does not take them.
    pub fn write_f64(&mut self, values: &[f64]) -> Result<(), WriteError> {
        self.write_values(values, encode::from_f64)
    }

    /// Writes the next elements of a tensor of F64, F32, F16 or BF16. See [`encode::from_f32`].
    ///
    /// # Errors
    /// The dtype takes no floats; the tensor has fewer elements left; the file does not take them.
    pub fn write_f32(&mut self, values: &[f32]) -> Result<(), WriteError> {
        self.write_values(values, encode::from_f32)
    }

    /// Writes the next elements of a tensor of integers. See [`encode::from_i64`].
    ///
    /// # Errors
    /// The dtype is none of integers, or cannot hold one of them; the tensor has fewer elements
    /// left; the file does not take them. Elements before one that does not fit may have been
    /// written: [`TensorWriter::remaining`] tells.
    pub fn write_i64(&mut self, values: &[i64]) -> Result<(), WriteError> {
        self.write_values(values, encode::from_i64)
    }

    fn write_values<T>(
        &mut self,
        values: &[T],
        encode: impl Fn(Dtype, &[T], &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), WriteError> {
        let dtype = self.info.dtype;
        self.check_room(dtype.byte_len(to_u64(values.len())).unwrap_or(u64::MAX))?;
        let size = dtype.bitsize().div_ceil(8);
        let most = PIECE.checked_div(size).unwrap_or(1);
        let mut buffer = vec![0; values.len().min(most).saturating_mul(size)];
        let mut before: u64 = 0;
        for piece in values.chunks(most) {
            let bytes = buffer.get_mut(..piece.len().saturating_mul(size)).unwrap_or_default();
            encode(dtype, piece, bytes)
                .map_err(|error| self.refused(later(error.kind(), before)))?;
            self.put(bytes)?;
            before = before.saturating_add(to_u64(piece.len()));
        }
        Ok(())
    }

    fn check_room(&self, more: u64) -> Result<(), WriteError> {
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
            Err(kind) => return Err(self.named(WriteError::new(kind))),
        }
        Ok(())
    }

    #[cold]
    fn refused(&self, kind: ErrorKind) -> WriteError {
        self.named(WriteError::refused(kind))
    }

    fn named(&self, error: WriteError) -> WriteError {
        error.of(Some(&self.info.name.to_cow()))
    }
}

/// The same kind, where values before were converted already.
fn later(kind: ErrorKind, before: u64) -> ErrorKind {
    match kind {
        ErrorKind::ValueOutOfRange { index, value, dtype } => {
            ErrorKind::ValueOutOfRange { index: index.saturating_add(before), value, dtype }
        }
        kind => kind,
    }
}

/// As [`TensorWriter::write_bytes`], for what writes to an [`io::Write`].
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
