//! Runs the program as a user does.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The result of running the program.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// The program with these arguments, in the crate's folder, independent of the caller's terminal.
pub fn command(arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_safetensor"));
    command
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR")
        .env_remove("COLUMNS")
        .stdin(Stdio::null());
    command
}

pub fn run(arguments: &[impl AsRef<OsStr>]) -> Run {
    let output = command(arguments).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    Run { code: output.status.code(), stdout: output.stdout, stderr }
}

/// Runs the program, which has to succeed, and returns its stdout.
pub fn good(arguments: &[impl AsRef<OsStr>]) -> Vec<u8> {
    let run = run(arguments);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{run:?}");
    run.stdout
}

pub fn text(arguments: &[impl AsRef<OsStr>]) -> String {
    String::from_utf8(good(arguments)).unwrap()
}

pub fn json(arguments: &[impl AsRef<OsStr>]) -> Value {
    let printed = good(arguments);
    serde_json::from_slice(&printed).unwrap_or_else(|e| panic!("{e}: {printed:?}"))
}

impl Run {
    /// The error, which has to be the only line on stderr.
    pub fn error(&self) -> &str {
        let line = self.stderr.strip_suffix('\n').expect("stderr ends with a newline");
        assert!(!line.contains('\n') && line.starts_with("safetensor: "), "{line}");
        line
    }
}
