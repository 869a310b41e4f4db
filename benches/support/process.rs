//! Tables of work done in separate processes, so that peak memory can be measured.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::tables::{median, show};

/// A row of a table. The command prints the nanoseconds and the KiB that its work took.
pub struct Row {
    pub name: String,
    pub command: Command,
}

/// Returns the process's peak memory so far, in KiB. It is 0 where /proc is missing.
pub fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Runs a command and parses the time and memory that it prints. Returns `None` if it fails.
fn measure(command: &mut Command) -> Option<(Duration, u64)> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (nanos, kib) = text.trim().split_once(' ')?;
    Some((Duration::from_nanos(nanos.parse().ok()?), kib.parse().ok()?))
}

/// Runs the rows in turns and prints each with its ratio to the first. Rows that fail are skipped.
pub fn table(title: &str, turns: usize, mut rows: Vec<Row>) {
    println!("\n{title}\n| case | time | ratio to first | peak memory |\n|---|---|---|---|");
    let mut measured = vec![Vec::new(); rows.len()];
    for _ in 0..turns {
        for (row, measured) in rows.iter_mut().zip(&mut measured) {
            measured.extend(measure(&mut row.command));
        }
    }
    let time = |turns: &Vec<(Duration, u64)>| median(turns.iter().map(|turn| turn.0).collect());
    let first = time(&measured[0]);
    for (row, turns) in rows.iter().zip(&measured).filter(|(_, turns)| !turns.is_empty()) {
        let time = time(turns);
        let ratio = time.as_secs_f64() / first.as_secs_f64();
        let peak = median(turns.iter().map(|turn| turn.1).collect());
        let (name, time) = (&row.name, show(time));
        println!("| {name} | {time} | {ratio:.2} | {:.1} MiB |", peak as f64 / 1024.0);
    }
}

/// Returns the Python that `tests/oracle/fetch.py` set up with the package `safetensors`, or
/// `python3` on the path.
pub fn python() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fetched = root.join("tests/oracle/files/venv/bin/python3");
    if fetched.exists() {
        fetched
    } else {
        "python3".into()
    }
}
