//! Writing to a file on disk, which appears whole or not at all.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::prelude::v1::*;

use crate::base::error::ErrorKind;
use crate::write::build::{for_each_view, with_plan, OwnedPlan, PlanBuilder, View};
use crate::write::error::{WriteError, WriteErrorKind};
use crate::write::plan::PlanOptions;
use crate::write::save::atomic::{write_all_at, AtomicFile, Finished};
use crate::write::save::tensor::{Destination, TensorWriter};
use crate::write::shards::ShardPlans;

/// Writes a planned file to disk, tensor by tensor, in any order and in pieces of any size.
///
/// Until [`FileWriter::commit`] has checked that nothing is missing, the bytes are in a temporary
/// file beside the target, `.safetensors-….partial`, and whatever had the target's name before is
/// whole. Then the new file takes its place in one step, after it has been brought to the disk. A
/// writer that is dropped before leaves nothing behind; a process that is killed leaves the
/// temporary file. Readers that have the old file open, or mapped, keep it.
///
/// A symbolic link at the target is replaced itself, not what it leads to. The new file has the
/// permissions of a new file.
///
/// Memory is the plan's, and 8 bytes a tensor.
///
/// ```
/// use safetensors_zero::{Dtype, File, FileWriter, PlanBuilder};
///
/// # let folder = std::env::temp_dir().join(format!("safetensors-zero-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("model.safetensors");
/// let mut builder = PlanBuilder::new();
/// builder.tensor("weight", Dtype::F16, [2, 2]).tensor("bias", Dtype::F32, [2]);
/// let mut writer = FileWriter::create(&path, builder.plan()?)?;
/// writer.tensor("weight")?.write_f32(&[1.0, 2.0, 3.0, 4.0])?;
/// writer.tensor("bias")?.write_bytes(&[0; 8])?;
/// writer.commit()?;
/// assert_eq!(File::open(&path)?.len(), 2);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileWriter {
    output: Output,
    plan: OwnedPlan,
    /// Bytes of each tensor that are written, in the order of the data.
    written: Vec<u64>,
    /// The same of a tensor without bytes: always 0.
    nothing: u64,
}

#[derive(Debug)]
struct Output {
    file: AtomicFile,
    data_start: u64,
}

impl Destination for Output {
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), WriteErrorKind> {
        let offset = self.data_start.saturating_add(offset);
        write_all_at(self.file.as_std(), offset, bytes).map_err(WriteErrorKind::Write)
    }
}

impl FileWriter {
    /// Creates the temporary file and writes the header.
    ///
    /// # Errors
    /// At the path is something else than a regular file; no file can be created or written there.
    pub fn create(path: impl AsRef<Path>, plan: OwnedPlan) -> Result<FileWriter, WriteError> {
        let path = path.as_ref();
        let file = AtomicFile::create(path)?;
        write_all_at(file.as_std(), 0, &plan.frame())
            .and_then(|()| write_all_at(file.as_std(), 8, plan.header().as_bytes()))
            .map_err(|error| WriteError::new(WriteErrorKind::Write(error)).at(path))?;
        let output = Output { file, data_start: plan.data_start() };
        let written = vec![0; plan.table().len()];
        Ok(FileWriter { output, plan, written, nothing: 0 })
    }

    /// The plan, whose table tells the order in which writing is sequential.
    #[must_use]
    pub fn plan(&self) -> &OwnedPlan {
        &self.plan
    }

    /// The tensor with this name, to begin with it or to go on.
    ///
    /// # Errors
    /// No tensor has the name.
    pub fn tensor(&mut self, name: &str) -> Result<TensorWriter<'_>, WriteError> {
        let found = self.plan.table().info(name);
        let info = match found {
            Ok(info) => info,
            Err(error) => {
                let error = WriteError::refused(error.kind()).of(Some(name));
                return Err(error.at(self.output.file.path()));
            }
        };
        // The first that ends after this one begins: itself, or, of one without bytes, another.
        let place = self.plan.table().place_of(info.data_offsets.0);
        let counted = if info.byte_len() == 0 { None } else { self.written.get_mut(place) };
        let written = counted.unwrap_or(&mut self.nothing);
        Ok(TensorWriter::new(&mut self.output, info, written))
    }

    /// Checks that every tensor is complete, brings the file to the disk, and puts it in its place.
    ///
    /// # Errors
    /// A tensor lacks bytes; the system could not do it. The old file is then as it was, unless the
    /// last step failed, which brings the folder to the disk: the new file is then in its place, but
    /// might not be after a power failure.
    pub fn commit(self) -> Result<(), WriteError> {
        self.finish()?.publish()
    }

    fn finish(self) -> Result<Finished, WriteError> {
        let table = self.plan.table();
        for (info, written) in table.iter().zip(&self.written) {
            let (needed, written) = (info.byte_len(), *written);
            if written != needed {
                let error = WriteError::refused(ErrorKind::DataMissing { needed, written });
                let named = error.of(Some(&info.name.to_cow()));
                return Err(named.at(self.output.file.path()));
            }
        }
        self.output.file.finish()
    }
}

/// Writes a file of these tensors to disk, with [`PlanOptions::default`]: [`serialize`] and
/// [`FileWriter`] in one.
///
/// Memory is about 100 bytes a tensor besides the caller's, and what [`View::data`] makes of one
/// tensor at a time.
///
/// [`serialize`]: crate::serialize()
///
/// # Errors
/// What the format does not allow; a view whose data have another length than its dtype and shape
/// need; a file that cannot be written. What was at the path is then as it was.
pub fn serialize_to_file<S: AsRef<str>, V: View>(
    tensors: impl IntoIterator<Item = (S, V)>,
    metadata: Option<BTreeMap<String, String>>,
    path: impl AsRef<Path>,
) -> Result<(), WriteError> {
    serialize_to_file_with(tensors, metadata, path, &PlanOptions::DEFAULT)
}

/// As [`serialize_to_file`], with options of the caller's choice.
///
/// # Errors
/// As [`serialize_to_file`].
pub fn serialize_to_file_with<S: AsRef<str>, V: View>(
    tensors: impl IntoIterator<Item = (S, V)>,
    metadata: Option<BTreeMap<String, String>>,
    path: impl AsRef<Path>,
    options: &PlanOptions,
) -> Result<(), WriteError> {
    let path = path.as_ref();
    let views: Vec<(S, V)> = tensors.into_iter().collect();
    let file = with_plan(&views, metadata.as_ref(), options, |plan| {
        let file = AtomicFile::create(path)?;
        let mut text = String::new();
        // A string takes everything.
        let _ = plan.write_header(&mut text);
        let mut writer = io::BufWriter::with_capacity(64 << 10, file.as_std());
        let failed = |error| WriteError::new(WriteErrorKind::Write(error));
        writer.write_all(&plan.frame()).map_err(failed)?;
        writer.write_all(text.as_bytes()).map_err(failed)?;
        for_each_view(plan, &views, |data| writer.write_all(data).map_err(failed))?;
        writer.flush().map_err(failed)?;
        drop(writer);
        Ok(file)
    });
    file.map_err(|error| error.at(path))?.commit()
}

/// Writes a model of these tensors to a folder, as files of at most `file_bytes` each and their
/// index: `model-00001-of-00003.safetensors` and so on, and `model.safetensors.index.json`. A tensor
/// that does not fit such a file has one to itself.
///
/// Tensors are divided in the order in which they come. Everything is on the disk before the first
/// file takes its place, and the index comes last. Each file is whole or not there; all of them
/// together are not replaced in one step, so save into a new folder if the old model is in use.
/// Files of an earlier model with other names stay. For other names, or to write the shards as their
/// data come, see [`PlanBuilder::shards`].
///
/// # Errors
/// As [`serialize_to_file`].
pub fn serialize_to_folder<S: AsRef<str>, V: View>(
    tensors: impl IntoIterator<Item = (S, V)>,
    metadata: Option<BTreeMap<String, String>>,
    folder: impl AsRef<Path>,
    file_bytes: u64,
) -> Result<(), WriteError> {
    let folder = folder.as_ref();
    let views: Vec<(S, V)> = tensors.into_iter().collect();
    let mut builder = PlanBuilder::new();
    for (name, view) in &views {
        builder.tensor(name.as_ref(), view.dtype(), view.shape());
    }
    builder.all_metadata(metadata);
    let model = builder.shards("model", file_bytes).map_err(|error| error.at(folder))?;
    let views: BTreeMap<&str, &V> =
        views.iter().map(|(name, view)| (name.as_ref(), view)).collect();
    let mut finished = Vec::new();
    for shard in model.shards() {
        finished.push(write_shard(&folder.join(shard.name()), shard.plan(), &views)?);
    }
    finished.into_iter().try_for_each(Finished::publish)?;
    model.write_index(folder)
}

fn write_shard<V: View>(
    path: &Path,
    plan: &OwnedPlan,
    views: &BTreeMap<&str, &V>,
) -> Result<Finished, WriteError> {
    let mut writer = FileWriter::create(path, plan.clone())?;
    for info in &plan.table() {
        let name = info.name.to_cow();
        let Some(view) = views.get(&*name) else { continue };
        writer.tensor(&name)?.write_bytes(&view.data()).map_err(|error| error.at(path))?;
    }
    writer.finish()
}

impl ShardPlans {
    /// Writes the index to a folder, in place of one that is there, once the shards are there.
    ///
    /// # Errors
    /// The file cannot be written. What was there before is then as it was.
    pub fn write_index(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        let path = folder.as_ref().join(self.index_name());
        let file = AtomicFile::create(&path)?;
        write_all_at(file.as_std(), 0, self.index().as_bytes())
            .map_err(|error| WriteError::new(WriteErrorKind::Write(error)).at(&path))?;
        file.commit()
    }
}
