//! Atomic saves: one file tensor by tensor, a whole file, or a sharded model.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::string::String;
use std::vec;
use std::vec::Vec;

use crate::base::error::ErrorKind;
use crate::write::build::{for_each_view, with_plan, OwnedPlan, PlanBuilder, View};
use crate::write::error::{WriteError, WriteErrorKind};
use crate::write::plan::PlanOptions;
use crate::write::save::atomic::{write_all_at, AtomicFile, Finished};
use crate::write::save::tensor::{Destination, TensorWriter};
use crate::write::shards::ShardPlans;

/// A writer of a planned file on disk. Tensors can be written in any order and in chunks of any
/// size.
///
/// The bytes go to a temporary file in the target's folder, named `.safetensors-….partial`.
/// [`FileWriter::commit`] checks that nothing is missing, syncs the temporary file, and renames it
/// over the target. Until then the old file is untouched. Readers that have the old file open or
/// mapped keep it. Dropping a writer without a commit removes the temporary file; a process that is
/// killed leaves it behind.
///
/// If the target is a symbolic link, the file that it leads to is replaced, and the link stays. The
/// new file gets the old one's permission bits, and its owner and group as far as the system
/// permits.
///
/// Memory use is the plan and 8 bytes per tensor.
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
    /// The number of bytes written of each tensor, in data order.
    written: Vec<u64>,
    /// The same for every tensor without data: always 0.
    written_of_empty: u64,
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
    /// Returns an error if the path exists but is not a regular file, or if the temporary file
    /// cannot be created or written.
    pub fn create(path: impl AsRef<Path>, plan: OwnedPlan) -> Result<FileWriter, WriteError> {
        let path = path.as_ref();
        let file = AtomicFile::create(path)?;
        write_all_at(file.as_std(), 0, &plan.frame())
            .and_then(|()| write_all_at(file.as_std(), 8, plan.header().as_bytes()))
            .map_err(|error| WriteError::new(WriteErrorKind::Write(error)).with_path(path))?;
        let output = Output { file, data_start: plan.data_start() };
        let written = vec![0; plan.table().len()];
        Ok(FileWriter { output, plan, written, written_of_empty: 0 })
    }

    /// Returns the plan. Its table is in data order: writing tensors in this order is sequential.
    #[must_use]
    pub fn plan(&self) -> &OwnedPlan {
        &self.plan
    }

    /// Returns a writer of the tensor with this name. It continues where an earlier one stopped.
    ///
    /// Takes `&mut self` because it counts each tensor's bytes without a lock: one tensor is
    /// written at a time.
    ///
    /// # Errors
    /// Returns an error if no tensor has this name.
    pub fn tensor(&mut self, name: &str) -> Result<TensorWriter<'_>, WriteError> {
        let found = self.plan.table().info(name);
        let info = match found {
            Ok(info) => info,
            Err(error) => {
                let error = WriteError::refused(error.kind()).with_tensor(Some(name));
                return Err(error.with_path(self.output.file.path()));
            }
        };
        // Finds the first tensor that ends after this offset. A tensor without data ends at it, so
        // it would find another one.
        let position = self.plan.table().place_of(info.data_offsets.0);
        let counter = if info.byte_len() == 0 { None } else { self.written.get_mut(position) };
        let written = counter.unwrap_or(&mut self.written_of_empty);
        Ok(TensorWriter::new(&mut self.output, info, written))
    }

    /// Checks that every tensor is complete, syncs the temporary file, renames it over the target,
    /// and syncs the folder.
    ///
    /// # Errors
    /// Returns an error if a tensor is incomplete or if one of these steps fails. The old file is
    /// untouched, unless the last step failed: the new file is then in place, but a power failure
    /// can still undo the rename.
    pub fn commit(self) -> Result<(), WriteError> {
        self.finish()?.publish()
    }

    fn finish(self) -> Result<Finished, WriteError> {
        let table = self.plan.table();
        for (info, written) in table.iter().zip(&self.written) {
            let (needed, written) = (info.byte_len(), *written);
            if written != needed {
                let error = WriteError::refused(ErrorKind::DataMissing { needed, written });
                let error = error.with_tensor(Some(&info.name.to_cow()));
                return Err(error.with_path(self.output.file.path()));
            }
        }
        self.output.file.finish()
    }
}

/// Serializes tensors to a file on disk, with [`PlanOptions::default`].
///
/// The bytes are those of [`serialize`], and the file is replaced atomically as by [`FileWriter`].
/// Allocates about 100 bytes per tensor, and whatever [`View::data`] allocates for one tensor at a
/// time.
///
/// [`serialize`]: crate::serialize()
///
/// # Errors
/// Returns an error if the format does not allow the file, if a view's data does not have the
/// length that its dtype and shape need, or if the file cannot be written. An old file at the path
/// is then untouched, except as described in [`FileWriter::commit`].
pub fn serialize_to_file<S: AsRef<str>, V: View>(
    tensors: impl IntoIterator<Item = (S, V)>,
    metadata: Option<BTreeMap<String, String>>,
    path: impl AsRef<Path>,
) -> Result<(), WriteError> {
    serialize_to_file_with(tensors, metadata, path, &PlanOptions::DEFAULT)
}

/// Like [`serialize_to_file`], with the given options.
///
/// # Errors
/// Same as [`serialize_to_file`].
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
        // Writing to a string never fails.
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
    file.map_err(|error| error.with_path(path))?.commit()
}

/// Serializes tensors to a folder as a sharded model: files of at most `file_bytes` each, named
/// `model-00001-of-00003.safetensors` and so on, and their index `model.safetensors.index.json`. A
/// tensor too large for this limit gets a file of its own.
///
/// Tensors are divided in the order in which they are passed. All shards are written and synced
/// before the first one is renamed, and the index is written last. Each file is replaced
/// atomically, but the model as a whole is not: save to a new folder if the old model is in use.
/// Files of an earlier model with other names are kept. To use other names, or to write the shards
/// as their data arrives, see [`PlanBuilder::shards`].
///
/// # Errors
/// Same as [`serialize_to_file`]. If renaming or syncing fails, some of the files can already have
/// been replaced.
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
    let model = builder.shards("model", file_bytes).map_err(|error| error.with_path(folder))?;
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
        writer.tensor(&name)?.write_bytes(&view.data()).map_err(|error| error.with_path(path))?;
    }
    writer.finish()
}

impl ShardPlans {
    /// Writes the index to a folder, atomically replacing an existing one. Call this after the
    /// shards are written.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. The old index is then untouched, except as
    /// described in [`AtomicFile::commit`].
    pub fn write_index(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        let path = folder.as_ref().join(self.index_name());
        let file = AtomicFile::create(&path)?;
        write_all_at(file.as_std(), 0, self.index().as_bytes())
            .map_err(|error| WriteError::new(WriteErrorKind::Write(error)).with_path(&path))?;
        file.commit()
    }
}
