//! The verb `hash`: digests of tensors, and one of the whole content that says whether two models hold
//! the same tensors however their files are laid out.
//!
//! A tensor's digest is that of its bytes as they are stored. The digest of the content is that of:
//! the 21 bytes `safetensor content 1\n`; then for each tensor, in the order of their names' UTF-8
//! bytes: the length of the name in bytes, the name, the length of the dtype's spelling, the spelling,
//! the number of dimensions, each dimension, and the tensor's digest. Every number is a little-endian
//! u64, strings are UTF-8 as decoded, and a digest is its 32 bytes.

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

/// Print a digest of each tensor, and one of the whole content
///
/// Lines are as those of sha256sum: the digest and the name, in the order of names; the last line is
/// the content's, without a name. It depends on names, dtypes, shapes and data alone: not on the order
/// of tensors, padding, metadata, or how the model is cut into shards.
///
/// A tensor's digest is that of its bytes as stored (what `export --format raw` writes). The content's
/// is that of the 21 bytes "safetensor content 1\n", then for each tensor, in the order of their names'
/// UTF-8 bytes: name, dtype, shape and digest. Before the name and before the dtype's spelling stands
/// its length in bytes, before the dimensions their number; each number is a little-endian u64, a
/// digest its 32 bytes.
///
/// `--json` prints one object: {"file", "algorithm", "tensors": [{"name", "digest"}], "content"}.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    file: PathBuf,
    /// By which function
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
    Ok(Exit::Well)
}

#[derive(Serialize)]
struct Line<'m> {
    name: Name<'m>,
    digest: String,
}

/// The digest of a tensor's bytes.
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
        hasher.add(values::read_bytes(tensor, bytes, &mut buffer)?);
        Ok(())
    })?;
    Ok(hasher.finish())
}

/// Adds a tensor to the content.
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
