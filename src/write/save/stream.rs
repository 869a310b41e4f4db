//! Writing to a stream, in data order.

use std::io;

use crate::base::error::ErrorKind;
use crate::write::build::OwnedPlan;
use crate::write::error::{WriteError, WriteErrorKind};
use crate::write::save::tensor::{Destination, TensorWriter};

/// A writer of a planned file to a stream, such as a socket, a pipe or a compressor. Tensors must
/// be written in data order.
///
/// Data is passed to the underlying writer without buffering: use a buffered writer for many small
/// writes. To write a file on disk, use [`FileWriter`](crate::FileWriter).
///
/// ```
/// use safetensors_zero::{Dtype, PlanBuilder, SafeTensors, StreamWriter};
///
/// let mut builder = PlanBuilder::new();
/// builder.tensor("weight", Dtype::BF16, [2, 2]);
/// builder.tensor("bias", Dtype::F32, [2]);
/// let mut writer = StreamWriter::new(Vec::new(), builder.plan()?)?;
/// writer.tensor("bias")?.write_f32(&[0.5, -0.5])?; // F32 comes first
/// let mut weight = writer.tensor("weight")?;
/// weight.write_f64(&[1.0, 2.0])?;
/// weight.write_f64(&[3.0, 4.0])?;
/// let file = writer.finish()?;
/// assert_eq!(SafeTensors::deserialize(&file)?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StreamWriter<W> {
    stream: Stream<W>,
    plan: OwnedPlan,
    /// The number of data bytes written, without those of the current tensor.
    done: u64,
    /// The number of bytes written of the current tensor, the one that was requested last.
    written: u64,
}

#[derive(Debug)]
struct Stream<W> {
    writer: W,
    /// Whether a write failed. How much of it was written is unknown, so no write can follow it.
    broken: bool,
}

impl<W> Stream<W> {
    fn check(&self) -> Result<(), WriteErrorKind> {
        if self.broken {
            return Err(WriteErrorKind::Write(io::Error::other("an earlier write has failed")));
        }
        Ok(())
    }
}

impl<W: io::Write> Destination for Stream<W> {
    fn put(&mut self, _: u64, bytes: &[u8]) -> Result<(), WriteErrorKind> {
        self.check()?;
        self.writer.write_all(bytes).map_err(|error| {
            self.broken = true;
            WriteErrorKind::Write(error)
        })
    }
}

impl<W: io::Write> StreamWriter<W> {
    /// Creates the writer and writes the header.
    ///
    /// # Errors
    /// Returns an error if the underlying writer does.
    pub fn new(mut writer: W, plan: OwnedPlan) -> Result<Self, WriteError> {
        writer
            .write_all(&plan.frame())
            .and_then(|()| writer.write_all(plan.header().as_bytes()))
            .map_err(|error| WriteError::new(WriteErrorKind::Write(error)))?;
        Ok(StreamWriter { stream: Stream { writer, broken: false }, plan, done: 0, written: 0 })
    }

    /// Returns the plan. Its table has the tensors in the order in which to write them.
    #[must_use]
    pub fn plan(&self) -> &OwnedPlan {
        &self.plan
    }

    /// Returns a writer of the tensor with this name. All tensors before it must be complete. It
    /// can be requested again to continue where it stopped.
    ///
    /// # Errors
    /// Returns an error if no tensor has this name, if a tensor before it is incomplete, or if data
    /// of a later tensor has been written.
    pub fn tensor(&mut self, name: &str) -> Result<TensorWriter<'_>, WriteError> {
        self.count_current();
        let refused = |kind| WriteError::refused(kind).with_tensor(Some(name));
        let info = self.plan.table().info(name).map_err(|error| refused(error.kind()))?;
        let (begin, end) = info.data_offsets;
        if end < self.done {
            return Err(refused(ErrorKind::OutOfOrder));
        }
        let Some(written) = self.done.checked_sub(begin) else { return Err(self.missing()) };
        self.done = begin;
        self.written = written;
        Ok(TensorWriter::new(&mut self.stream, info, &mut self.written))
    }

    /// Checks that all tensors are complete, flushes the underlying writer, and returns it.
    ///
    /// # Errors
    /// Returns an error if a tensor is incomplete, if flushing fails, or if an earlier write
    /// failed.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.count_current();
        if self.done != self.plan.data_len() {
            return Err(self.missing());
        }
        self.stream.check().map_err(WriteError::new)?;
        let Stream { mut writer, .. } = self.stream;
        writer.flush().map_err(|error| WriteError::new(WriteErrorKind::Write(error)))?;
        Ok(writer)
    }

    /// Adds the bytes of the current tensor to `done`.
    fn count_current(&mut self) {
        self.done = self.done.saturating_add(std::mem::take(&mut self.written));
    }

    /// Returns the error for the first incomplete tensor.
    #[cold]
    fn missing(&self) -> WriteError {
        let table = self.plan.table();
        let Some(info) = table.nth(table.place_of(self.done)) else {
            return WriteError::refused(ErrorKind::OutOfOrder);
        };
        let written = self.done.saturating_sub(info.data_offsets.0);
        let kind = ErrorKind::DataMissing { needed: info.byte_len(), written };
        WriteError::refused(kind).with_tensor(Some(&info.name.to_cow()))
    }
}
