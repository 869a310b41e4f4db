//! The verb `verify`: checks files by the rules of the format, and indexes against their shards.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use safetensors_zero::{FileError, FileErrorKind, Finding, FindingKind, Shards, ShardsOptions};

use crate::files::failure::{self, Exit, Failure};
use crate::files::printer::Printer;
use crate::show::errors;
use crate::show::numbers;
use crate::show::terminal::{self, Style, Terminal};

/// Check files by every rule of the format, and name the broken rule
///
/// Only headers are read, so large files take no longer. For a sharded model, every shard is
/// checked, and the index is checked against the shards.
///
/// Prints a line for each valid file on stdout, and for each invalid file on stderr. All files are
/// checked in any case. The exit code is the highest of all files.
///
/// `--json` prints one object per FILE and line: {"file", "ok", "error": null or {"kind", "byte",
/// "tensor", "message"}}. "kind" is a short name for the broken rule, "byte" the position in the
/// file, "tensor" the tensor's name; "byte" and "tensor" can be null. For a sharded model,
/// "findings": [{"file", "refused", "kind", "byte", "tensor", "message"}] lists all findings, and
/// "error" is the first that makes the model invalid ("refused": true).
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Safetensors files, shard indexes, or folders that hold either
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// Apply the strict rules: the format's specification to the letter
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Failure> {
    let options = if arguments.strict { ShardsOptions::STRICT } else { ShardsOptions::DEFAULT };
    let mut out = Printer::for_verdict();
    let mut worst = Exit::Success;
    for path in &arguments.file {
        let verdict = Verdict::of(path, &options);
        if arguments.json {
            serde_json::to_writer(&mut out, &verdict.json(path))?;
            out.write_all(b"\n")?;
        } else {
            verdict.print(&mut out, terminal, path)?;
        }
        worst = worst.max(verdict.exit());
    }
    out.flush()?;
    Ok(worst)
}

/// The result for a FILE.
enum Verdict {
    /// It cannot be opened or is invalid.
    Refused(FileError),
    /// It was opened. `shards` is the number of shards, or `None` for a single file.
    Opened { tensors: u64, shards: Option<usize>, findings: Vec<Finding> },
}

impl Verdict {
    fn of(path: &Path, options: &ShardsOptions) -> Verdict {
        match Shards::open_with(path, options) {
            Err(error) => Verdict::Refused(error),
            Ok(shards) => Verdict::Opened {
                tensors: shards.len() as u64,
                shards: shards.index().map(|index| index.shards().len()),
                findings: shards.verify(),
            },
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Verdict::Refused(error) => failure::exit_of(error),
            Verdict::Opened { findings, .. } => {
                findings.iter().map(exit_of).max().unwrap_or(Exit::Success)
            }
        }
    }

    fn print(&self, out: &mut Printer, terminal: &Terminal, path: &Path) -> io::Result<()> {
        match self {
            Verdict::Refused(error) => {
                out.flush()?;
                errors::print_error(
                    &error.path().display().to_string(),
                    &error.sentence().to_string(),
                );
                Ok(())
            }
            Verdict::Opened { tensors, shards, findings } => {
                print_findings(out, findings)?;
                if self.exit() > Exit::Success {
                    return Ok(());
                }
                let path = path.display().to_string();
                let valid = terminal.paint(Style::Good, "valid");
                let tensors = numbers::counted(*tensors, "tensor");
                let of = shards.map_or(String::new(), |shards| {
                    format!(" in {}", numbers::counted(shards as u64, "shard"))
                });
                writeln!(out, "{}: {valid}, {tensors}{of}", terminal::visible(&path))
            }
        }
    }

    fn json<'v>(&'v self, path: &'v Path) -> VerdictJson<'v> {
        let (error, findings) = match self {
            Verdict::Refused(error) => (Some(ErrorJson::of(error)), None),
            Verdict::Opened { findings, shards, .. } => {
                let first = findings.iter().find(|finding| finding.refused);
                let all = shards.map(|_| findings.iter().map(FindingJson::of).collect());
                (first.map(ErrorJson::in_file), all)
            }
        };
        VerdictJson { file: path.to_string_lossy(), ok: error.is_none(), error, findings }
    }
}

/// Prints findings that make a model invalid as errors, the others as notes.
fn print_findings(out: &mut Printer, findings: &[Finding]) -> io::Result<()> {
    for finding in findings {
        let path = finding.path.display().to_string();
        let sentence = finding.sentence().to_string();
        if finding.refused {
            out.flush()?;
            errors::print_error(&path, &sentence);
        } else {
            writeln!(out, "note: {}", terminal::visible(&format!("{path}: {sentence}")))?;
        }
    }
    Ok(())
}

/// Returns the exit code for a finding. A missing shard makes the model invalid. If a shard cannot
/// be read, the model can still be valid.
fn exit_of(finding: &Finding) -> Exit {
    if !finding.refused {
        return Exit::Success;
    }
    match &finding.kind {
        FindingKind::Shard(error) => match error.kind() {
            FileErrorKind::Open(error) if error.kind() == io::ErrorKind::NotFound => Exit::Invalid,
            FileErrorKind::NotAFile(_) => Exit::Invalid,
            _ => failure::exit_of(error),
        },
        _ => Exit::Invalid,
    }
}

#[derive(Serialize)]
struct VerdictJson<'v> {
    file: Cow<'v, str>,
    ok: bool,
    error: Option<ErrorJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<FindingJson<'v>>>,
}

#[derive(Serialize)]
struct ErrorJson {
    kind: &'static str,
    byte: Option<u64>,
    tensor: Option<String>,
    message: String,
}

impl ErrorJson {
    fn of(error: &FileError) -> ErrorJson {
        let invalid = error.invalid();
        ErrorJson {
            kind: error.kind().name(),
            byte: invalid.and_then(|invalid| invalid.byte()),
            tensor: error.tensor().map(str::to_owned),
            message: error.sentence().to_string(),
        }
    }

    /// The message begins with the shard's path, since FILE is the whole model.
    fn in_file(finding: &Finding) -> ErrorJson {
        let error = ErrorJson::of_finding(finding);
        ErrorJson { message: format!("{}: {}", finding.path.display(), error.message), ..error }
    }

    fn of_finding(finding: &Finding) -> ErrorJson {
        match &finding.kind {
            FindingKind::Shard(error) => ErrorJson::of(error),
            kind => ErrorJson {
                kind: kind.name(),
                byte: None,
                tensor: finding.tensor.clone(),
                message: finding.sentence().to_string(),
            },
        }
    }
}

#[derive(Serialize)]
struct FindingJson<'v> {
    file: Cow<'v, str>,
    refused: bool,
    #[serde(flatten)]
    error: ErrorJson,
}

impl FindingJson<'_> {
    fn of(finding: &Finding) -> FindingJson<'_> {
        FindingJson {
            file: finding.path.to_string_lossy(),
            refused: finding.refused,
            error: ErrorJson::of_finding(finding),
        }
    }
}
