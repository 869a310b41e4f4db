//! The verb `repack`: rewrites a model with another order, alignment or number of files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use safetensors_zero::{
    FileErrorKind, FileTensor, FileWriter, Order, OwnedPlan, PlanBuilder, PlanOptions, TensorInfo,
};

use crate::files::failure::{Exit, Failure};
use crate::files::input::Model;
use crate::files::interrupt;
use crate::files::printer::Printer;
use crate::show::errors;
use crate::show::numbers;
use crate::show::progress::Progress;
use crate::show::terminal;

/// Rewrite a model with another order, alignment or number of files
///
/// Tensors and metadata are kept; other header fields are dropped. The shards of a model become one
/// file, unless `--max-file-size` is given. OUT is replaced as a whole or not at all. It can be IN
/// itself, if that is a single file.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write, or with `--max-file-size` the folder to write to
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Pad the header so that the data begins at a multiple of this power of two
    #[arg(long, default_value_t = 8, value_name = "BYTES", value_parser = power_of_two)]
    align: u64,
    /// Order of the tensors
    #[arg(long, value_enum, default_value_t = By::Dtype)]
    order: By,
    /// Write shards of at most this size, and an index; a larger tensor gets a file of its own; K, M and G are powers of 1000, KiB, MiB and
    /// GiB are powers of 1024
    #[arg(long, value_name = "SIZE", value_parser = numbers::size)]
    max_file_size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Largest dtypes first, then by name, like the reference implementation
    Dtype,
    /// By name
    Name,
    /// By position in IN
    Data,
}

fn power_of_two(text: &str) -> Result<u64, String> {
    let align = numbers::size(text)?;
    if !align.is_power_of_two() {
        return Err(format!("{text} is not a power of two"));
    }
    Ok(align)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let model = Model::open(&arguments.input)?;
    model.check_complete()?;
    let mut tensors = model.chosen(&[])?;
    if arguments.order == By::Name {
        tensors.sort_by_cached_key(|info| info.name.to_cow().into_owned());
    }
    let mut options = PlanOptions::default();
    options.align = arguments.align;
    options.order = if arguments.order == By::Dtype { Order::ByDtype } else { Order::Given };
    let mut builder = PlanBuilder::with_options(options);
    for info in &tensors {
        builder.tensor(info.name.to_cow(), info.dtype, info.shape);
    }
    for (key, value) in metadata(&model)? {
        builder.metadata(key, value);
    }
    interrupt::watch();
    let bytes = tensors.iter().map(TensorInfo::byte_len).fold(0, u64::saturating_add);
    let copy = Copy { model: &model, progress: Progress::new(bytes) };
    let output = &arguments.output;
    let refused = |error| Failure::from_write(output, error);
    let (files, bytes) = match arguments.max_file_size {
        None => {
            let plan = builder.plan().map_err(refused)?;
            let len = plan.file_len();
            // A single file can be replaced by its own repack; a part of a model cannot.
            if model.is_indexed() {
                model.check_not_own(output)?;
            }
            copy.file(output, plan)?;
            (1, len)
        }
        Some(most) => {
            let plans = builder.shards("model", most).map_err(refused)?;
            prepare(output, &model)?;
            for shard in plans.shards().iter().filter(|shard| shard.plan().file_len() > most) {
                note_oversized(&output.join(shard.name()), shard.plan());
            }
            for shard in plans.shards() {
                copy.file(&output.join(shard.name()), shard.plan().clone())?;
            }
            plans.write_index(output).map_err(refused)?;
            let sizes = plans.shards().iter().map(|shard| shard.plan().file_len());
            (plans.shards().len() as u64, sizes.fold(0, u64::saturating_add))
        }
    };
    drop(copy);
    let mut out = Printer::new();
    let path = output.display().to_string();
    let (files, tensors) =
        (numbers::counted(files, "file"), numbers::counted(tensors.len() as u64, "tensor"));
    writeln!(out, "{}: {tensors} in {files}, {}", terminal::visible(&path), numbers::bytes(bytes))?;
    out.flush()?;
    Ok(Exit::Success)
}

/// Merges the metadata of all files of a model. Different values for the same key are an error.
fn metadata(model: &Model) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = BTreeMap::new();
    for (path, table) in model.files() {
        for (key, value) in table.metadata().into_iter().flatten() {
            let (key, value) = (key.to_string(), value.to_string());
            if all.get(&key).is_some_and(|other| *other != value) {
                let sentence =
                    format!("the value of {key:?} differs from the one in an earlier shard");
                return Err(Failure::invalid(path, sentence));
            }
            all.insert(key, value);
        }
    }
    Ok(all)
}

/// Says on stderr that a shard is larger than the user's limit, because of its only tensor.
fn note_oversized(path: &Path, plan: &OwnedPlan) {
    let Some(info) = plan.table().nth(0) else { return };
    let sentence = format!(
        "tensor \"{}\" needs a file larger than --max-file-size: {}",
        terminal::name(&info.name),
        numbers::bytes(plan.file_len())
    );
    errors::print_error(&path.display().to_string(), &sentence);
}

/// Creates the folder if it does not exist, and refuses the folder that the model is read from.
fn prepare(folder: &Path, model: &Model) -> Result<(), Failure> {
    let failed = |error| Failure::usage(folder, format!("the folder cannot be created: {error}"));
    if !folder.is_dir() {
        fs::create_dir(folder).map_err(failed)?;
    }
    let canonical = fs::canonicalize(folder).map_err(failed)?;
    let is_inside =
        |path: &Path| fs::canonicalize(path).is_ok_and(|path| path.parent() == Some(&*canonical));
    if model.files().any(|(path, _)| is_inside(path)) {
        let sentence = "this folder contains the input model; choose another one";
        return Err(Failure::usage(folder, sentence));
    }
    Ok(())
}

/// Copies the data of a model's tensors.
struct Copy<'m> {
    model: &'m Model,
    progress: Progress,
}

impl Copy<'_> {
    fn file(&self, path: &Path, plan: OwnedPlan) -> Result<(), Failure> {
        let refused = |error| Failure::from_write(path, error);
        let names: Vec<String> = plan.table().names().map(|name| name.to_string()).collect();
        let mut writer = FileWriter::create(path, plan).map_err(refused)?;
        for name in &names {
            self.tensor(&self.model.tensor(name)?, &mut writer, path)?;
        }
        writer.commit().map_err(refused)
    }

    fn tensor(
        &self,
        from: &FileTensor<'_>,
        writer: &mut FileWriter,
        path: &Path,
    ) -> Result<(), Failure> {
        let name = from.name().to_cow();
        let mut to = writer.tensor(&name).map_err(|error| Failure::from_write(path, error))?;
        let copied = from.copy_to_with(&mut to, &mut self.progress.for_call());
        copied.map(drop).map_err(|error| match error.kind() {
            FileErrorKind::Write { error, .. } => Failure::usage(path, error),
            _ => error.into(),
        })
    }
}
