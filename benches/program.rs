//! The program compared with Python's `safe_open`, as whole processes on a file of 100,000 tensors.
//!
//! `cargo bench --bench program --features cli` prints a table. The processes take turns and are
//! timed from start to exit, with their output discarded. Python opens the file and lists its keys.
//! It needs the package `safetensors`, either in the folder that `tests/oracle/fetch.py` fills or
//! for the `python3` on the path.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::process::python;
use support::tables::{median, show};
use support::{llama, Spelling};

const TURNS: usize = 15;
const TENSORS: usize = 100_000;

const PYTHON: &str = "
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], framework='numpy') as f:
    print(len(list(f.keys())))
";

/// Measures the time that a process takes from start to exit.
fn time(program: &Path, arguments: &[&str], file: &Path) -> Duration {
    let mut command = Command::new(program);
    command.args(arguments).arg(file).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().unwrap();
    let elapsed = start.elapsed();
    assert!(status.success(), "{program:?} {arguments:?}");
    elapsed
}

fn main() {
    let path = std::env::current_exe().unwrap().with_extension("safetensors");
    std::fs::write(&path, llama(TENSORS, Spelling::Compact)).unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_safetensor"));
    let rows: [(&str, PathBuf, &[&str]); 6] = [
        ("Python's safe_open and keys", python(), &["-c", PYTHON]),
        ("info", program.clone(), &["info"]),
        ("tensors", program.clone(), &["tensors"]),
        ("tensors --json", program.clone(), &["tensors", "--json"]),
        ("tensors --sort name", program.clone(), &["tensors", "--sort", "name"]),
        ("verify", program, &["verify"]),
    ];
    let mut times = vec![Vec::new(); rows.len()];
    for _ in 0..TURNS {
        for ((_, program, arguments), times) in rows.iter().zip(&mut times) {
            times.push(time(program, arguments, &path));
        }
    }
    println!("\n{TENSORS} tensors\n| process | time | times faster than Python |\n|---|---|---|");
    let medians: Vec<Duration> = times.into_iter().map(median).collect();
    for ((name, ..), time) in rows.iter().zip(&medians) {
        let ratio = medians[0].as_secs_f64() / time.as_secs_f64();
        println!("| {name} | {} | {ratio:.1} |", show(*time));
    }
    let _ = std::fs::remove_file(&path);
}
