//! Writing to a stream, tensor after tensor.

use std::io;
use std::prelude::v1::*;

use crate::base::error::ErrorKind;
use crate::write::build::OwnedPlan;
use crate::write::error::{WriteError, WriteErrorKind};
use crate::write::save::tensor::{Destination, TensorWriter};

/// Writes a planned file to a stream, in the order of its data: to a socket, a pipe, a compressor.
///
/// Nothing of the data is kept: bytes go to the writer as they come, so give it one that buffers if
/// they come in small pieces. A file on disk is better written by [`FileWriter`](crate::FileWriter).
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
    /// Bytes of the data that are written.
    done: u64,
    /// Of these, bytes of the tensor that was asked for last.
    written: u64,
}

#[derive(Debug)]
struct Stream<W> {
    writer: W,
    /// Whether a write has failed: nobody knows how much of it was taken, so nothing can follow.
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
    /// Writes the header.
    ///
    /// # Errors
    /// The writer's own.
    pub fn new(mut writer: W, plan: OwnedPlan) -> Result<Self, WriteError> {
        writer
            .write_all(&plan.frame())
            .and_then(|()| writer.write_all(plan.header().as_bytes()))
            .map_err(|error| WriteError::new(WriteErrorKind::Write(error)))?;
        Ok(StreamWriter { stream: Stream { writer, broken: false }, plan, done: 0, written: 0 })
    }

    /// The plan, whose table tells the order.
    #[must_use]
    pub fn plan(&self) -> &OwnedPlan {
        &self.plan
    }

    /// The tensor with this name, whose turn it is: those before it are complete. It may be asked
    /// for again, to go on with it.
    ///
    /// # Errors
    /// No tensor has the name; a tensor before it lacks bytes; its turn has passed.
    pub fn tensor(&mut self, name: &str) -> Result<TensorWriter<'_>, WriteError> {
        self.settle();
        let refused = |kind| WriteError::refused(kind).of(Some(name));
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

    /// Flushes the writer and returns it, once all tensors are complete.
    ///
    /// # Errors
    /// A tensor lacks bytes; the writer's own, also where it failed before.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.settle();
        if self.done != self.plan.data_len() {
            return Err(self.missing());
        }
        self.stream.check().map_err(WriteError::new)?;
        let Stream { mut writer, .. } = self.stream;
        writer.flush().map_err(|error| WriteError::new(WriteErrorKind::Write(error)))?;
        Ok(writer)
    }

    /// Counts what was written of the last tensor among what is done.
    fn settle(&mut self) {
        self.done = self.done.saturating_add(std::mem::take(&mut self.written));
    }

    /// The error that the tensor whose turn it is lacks bytes.
    #[cold]
    fn missing(&self) -> WriteError {
        let table = self.plan.table();
        let Some(info) = table.nth(table.place_of(self.done)) else {
            return WriteError::refused(ErrorKind::OutOfOrder);
        };
        let written = self.done.saturating_sub(info.data_offsets.0);
        let kind = ErrorKind::DataMissing { needed: info.byte_len(), written };
        WriteError::refused(kind).of(Some(&info.name.to_cow()))
    }
}
