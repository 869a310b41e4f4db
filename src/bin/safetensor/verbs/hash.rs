//! The verb `hash`: prints a digest of each tensor, and a content digest that is equal for models
//! with the same tensors, whatever the layout of their files.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use sha2::Digest as _;

use safetensors_zero::{FileTensor, TensorInfo};

use crate::files::failure::{Exit, Failure};
use crate::files::input::Model;
use crate::files::printer::Printer;
use crate::files::values;
use crate::show::json::Name;
use crate::show::progress::Progress;
use crate::show::terminal;

/// Print a digest of each tensor and of the whole content
///
/// Lines have the form of sha256sum's: digest and name, sorted by name. The last line is the
/// content digest, without a name. It depends only on names, dtypes, shapes and data, not on the
/// order of the tensors, padding, metadata or sharding.
///
/// A tensor's digest is the digest of its stored bytes (what `export --format raw` writes). The
/// content digest is the digest of the 21 bytes "safetensor content 1\n", and then for each tensor,
/// sorted by the UTF-8 bytes of the names: name, dtype, shape and digest. The name and the dtype's
/// name are each preceded by their length in bytes, the dimensions by their number. Each number is
/// a little-endian u64, names are UTF-8 without escapes, and a digest is its 32 bytes.
///
/// `--json` prints one object: {"file", "algorithm", "tensors": [{"name", "digest"}], "content"}.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    file: PathBuf,
    /// Hash function
    #[arg(long, value_enum, default_value_t = Algorithm::Sha256)]
    algorithm: Algorithm,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Algorithm {
    Sha256,
    Blake3,
}

enum Hasher {
    Sha256(sha2::Sha256),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    fn new(algorithm: Algorithm) -> Hasher {
        match algorithm {
            Algorithm::Sha256 => Hasher::Sha256(sha2::Sha256::new()),
            Algorithm::Blake3 => Hasher::Blake3(Box::new(blake3::Hasher::new())),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Blake3(hasher) => {
                hasher.update(bytes);
            }
        }
    }

    fn add_number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    fn add_string(&mut self, string: &str) {
        self.add_number(string.len() as u64);
        self.add(string.as_bytes());
    }

    fn finish(self) -> [u8; 32] {
        match self {
            Hasher::Sha256(hasher) => hasher.finalize().into(),
            Hasher::Blake3(hasher) => *hasher.finalize().as_bytes(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let algorithm = arguments.algorithm;
    let model = Model::open(&arguments.file)?;
    let mut tensors = model.chosen(&[])?;
    model.check_complete()?;
    tensors.sort_by_cached_key(|info| info.name.to_cow());
    let bytes = tensors.iter().fold(0_u64, |sum, tensor| sum.saturating_add(tensor.byte_len()));
    let progress = Progress::new(bytes);
    let mut out = Printer::new();
    if arguments.json {
        out.write_all(b"{\"file\":")?;
        serde_json::to_writer(&mut out, &model.path().to_string_lossy())?;
        let name = if algorithm == Algorithm::Sha256 { "sha256" } else { "blake3" };
        write!(out, ",\"algorithm\":\"{name}\",\"tensors\":[")?;
    }
    let mut content = Hasher::new(algorithm);
    content.add(b"safetensor content 1\n");
    for (at, info) in tensors.iter().enumerate() {
        let digest = digest(&model.read(info)?, algorithm, &progress)?;
        add(&mut content, info, &digest);
        let digest = hex(&digest);
        if arguments.json {
            out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut out, &Line { name: Name(info.name), digest })?;
        } else {
            writeln!(out, "{digest}  {}", terminal::name(&info.name))?;
        }
    }
    let content = hex(&content.finish());
    if arguments.json {
        writeln!(out, "\n],\"content\":\"{content}\"}}")?;
    } else {
        writeln!(out, "{content}")?;
    }
    out.flush()?;
    Ok(Exit::Success)
}

#[derive(Serialize)]
struct Line<'m> {
    name: Name<'m>,
    digest: String,
}

/// Returns the digest of a tensor's bytes.
fn digest(
    tensor: &FileTensor<'_>,
    algorithm: Algorithm,
    progress: &Progress,
) -> Result<[u8; 32], Failure> {
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = Vec::new();
    let dtype = tensor.dtype();
    progress.for_each_piece(0..tensor.elements(), &[dtype], |piece| {
        let bytes = values::byte_range(dtype, &piece);
        hasher.add(values::read_into(tensor, bytes, &mut buffer)?);
        Ok(())
    })?;
    Ok(hasher.finish())
}

/// Adds a tensor to the content digest.
fn add(content: &mut Hasher, info: &TensorInfo<'_>, digest: &[u8; 32]) {
    content.add_string(&info.name.to_cow());
    content.add_string(info.dtype.as_str());
    content.add_number(info.shape.rank() as u64);
    info.shape.iter().for_each(|dimension| content.add_number(dimension));
    content.add(digest);
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
