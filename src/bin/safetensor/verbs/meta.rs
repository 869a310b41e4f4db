//! The verb `meta`: shows or changes a file's metadata.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use safetensors_zero::{Edited, File, Limits, MetadataEdit, Shards};

use crate::files::failure::{Exit, Failure};
use crate::files::interrupt;
use crate::files::printer::Printer;
use crate::show::json::{Name, Pairs};
use crate::show::progress::Progress;
use crate::show::terminal::{self, Style, Terminal};

/// Show or change a file's metadata
///
/// With a KEY, prints its value; otherwise prints a line for each key and value, separated by a tab
/// unless on a terminal. Invisible and control characters are escaped; `--json` prints the exact
/// strings.
///
/// `--set` and `--remove` change the file in place if the new metadata fits in the header, padding
/// included. Then no data is read or moved, whatever the size. Otherwise a new file with the same
/// data replaces the old one, as a whole or not at all. For a sharded model, name one of its files.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file
    file: PathBuf,
    /// Print only the value of this key
    #[arg(conflicts_with_all = ["set", "remove"])]
    key: Option<String>,
    /// Set a key's value, which is everything after the first `=`
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Remove a key, which must exist
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["set", "remove"])]
    json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected `=` between key and value")?;
    Ok((key.to_owned(), value.to_owned()))
}

pub(crate) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Failure> {
    let path = single_file(&arguments.file)?;
    let file = File::open(&path)?;
    if !arguments.set.is_empty() || !arguments.remove.is_empty() {
        return change(arguments, &file);
    }
    let mut out = Printer::new();
    match &arguments.key {
        Some(key) => print_value(&mut out, arguments, &file, key)?,
        None => print_all(&mut out, arguments, terminal, &file)?,
    }
    out.flush()?;
    Ok(Exit::Success)
}

/// Returns the path of the only file of a model, which can be named by its folder.
fn single_file(path: &Path) -> Result<PathBuf, Failure> {
    let shards = Shards::open(path)?;
    if shards.index().is_some() {
        let sentence = "each file of a sharded model has its own metadata; name one of the files";
        return Err(Failure::usage(path, sentence));
    }
    Ok(shards.path(0).to_owned())
}

fn print_value(
    out: &mut Printer,
    arguments: &Arguments,
    file: &File,
    key: &str,
) -> Result<(), Failure> {
    let value = file.metadata().and_then(|metadata| metadata.get(key));
    let Some(value) = value else { return Err(absent(file, key)) };
    if arguments.json {
        serde_json::to_writer(&mut *out, &Name(value))?;
        out.write_all(b"\n")?;
    } else {
        writeln!(out, "{}", terminal::name(&value))?;
    }
    Ok(())
}

fn print_all(
    out: &mut Printer,
    arguments: &Arguments,
    terminal: &Terminal,
    file: &File,
) -> Result<(), Failure> {
    if arguments.json {
        serde_json::to_writer(&mut *out, &file.metadata().map(Pairs))?;
        out.write_all(b"\n")?;
        return Ok(());
    }
    let between = if io::stdout().is_terminal() { "  " } else { "\t" };
    for (key, value) in file.metadata().into_iter().flatten() {
        let key = terminal::name(&key);
        writeln!(out, "{}{between}{}", terminal.paint(Style::Name, &key), terminal::name(&value))?;
    }
    Ok(())
}

fn absent(file: &File, key: &str) -> Failure {
    Failure::invalid(file.path(), format!("the metadata has no key {key:?}"))
}

fn change(arguments: &Arguments, file: &File) -> Result<Exit, Failure> {
    let mut edit = MetadataEdit::new();
    for key in &arguments.remove {
        if file.metadata().and_then(|metadata| metadata.get(key)).is_none() {
            return Err(absent(file, key));
        }
        edit.remove(key);
    }
    for (key, value) in &arguments.set {
        edit.set(key, value);
    }
    interrupt::watch();
    let progress = Progress::new(file.table().data_len());
    let edited = edit.apply_with(file.path(), &Limits::DEFAULT, &mut progress.for_call());
    let edited = edited.map_err(|error| Failure::from_write(file.path(), error))?;
    drop(progress);
    let mut out = Printer::new();
    let result = match edited {
        Edited::Unchanged => "already up to date",
        Edited::InPlace => "changed in place",
        _ => "replaced by a new file with the same data, since the header did not fit",
    };
    writeln!(out, "{}: {result}", terminal::visible(&file.path().display().to_string()))?;
    out.flush()?;
    Ok(Exit::Success)
}
