//! Instruction counts from valgrind's callgrind. They are reproducible for a given architecture and
//! compiler.
//!
//! `cargo bench --bench instructions` prints the table. `-- --check` also compares it with
//! benches/instructions.tsv. It fails if a figure grew by more than 10 %, or if a hostile header
//! costs more than 20 times the instructions per byte of an honest one. `-- --write` writes
//! benches/instructions.tsv.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub, unsafe_code)]

#[allow(dead_code)]
#[path = "../tests/support/file.rs"]
mod file;
#[allow(dead_code)]
#[path = "../tests/support/hostile.rs"]
mod hostile;
#[allow(dead_code)]
mod support;

use std::hint::black_box;
use std::process::{Command, ExitCode};

use safetensors_zero::{dequant, Dtype, Header, Limits, SafeTensors, TensorSlot};
use support::{llama, Spelling};

/// A case: its name, the unit it is counted in, and its setup.
struct Case {
    name: String,
    unit: &'static str,
    set_up: Box<dyn Fn() -> Work>,
}

/// A case that is ready to run, and its number of units.
struct Work {
    count: usize,
    run: Box<dyn FnMut()>,
}

/// The maximum cost per byte of a hostile header, relative to an honest one. The most expensive
/// headers have many short metadata keys with enough collisions that all keys are sorted.
const MAX_COST_RATIO: f64 = 20.0;

/// The approximate length of a hostile header in bytes.
const HOSTILE_LEN: usize = 300_000;

fn header_len(file: &[u8]) -> usize {
    support::header(file).len()
}

fn parse(name: String, file: impl Fn() -> Vec<u8> + 'static) -> Case {
    let set_up = move || {
        let file = file();
        let count = header_len(&file);
        let mut slots = vec![TensorSlot::EMPTY; count / 6];
        let run = Box::new(move || {
            black_box(SafeTensors::parse(black_box(&file), &mut slots).is_ok());
        });
        Work { count, run }
    };
    Case { name, unit: "header byte", set_up: Box::new(set_up) }
}

fn without_slots(name: &str, call: fn(&Header<'_>) -> bool) -> Case {
    let set_up = move || {
        let file = llama(3_000, Spelling::Compact);
        let count = header_len(&file);
        let run = move || {
            let (header, _) = Header::of_file(black_box(&file), &Limits::DEFAULT).unwrap();
            assert!(call(&header));
        };
        Work { count, run: Box::new(run) }
    };
    Case { name: format!("{name} 3000"), unit: "header byte", set_up: Box::new(set_up) }
}

fn look_up() -> Case {
    let set_up = || {
        // Leaked because the process runs only one case.
        let file: &'static [u8] = llama(3_000, Spelling::Compact).leak();
        let tensors = SafeTensors::deserialize(file).unwrap();
        let names: Vec<String> = tensors.names().map(|name| name.to_string()).collect();
        let count = names.len();
        let run = move || {
            for name in &names {
                black_box(tensors.tensor(black_box(name)).is_ok());
            }
        };
        Work { count, run: Box::new(run) }
    };
    Case { name: "look up among 3000".into(), unit: "name", set_up: Box::new(set_up) }
}

fn widen(dtype: Dtype) -> Case {
    let set_up = move || {
        let count = 1 << 16;
        let bytes: Vec<u8> = (0..count * dtype.bitsize() / 8).map(|i| (i * 151) as u8).collect();
        let mut out = vec![0.0; count];
        let run =
            move || dequant::dequant_into(dtype, black_box(&bytes), black_box(&mut out)).unwrap();
        Work { count, run: Box::new(run) }
    };
    Case { name: format!("widen {dtype}"), unit: "element", set_up: Box::new(set_up) }
}

fn cases() -> Vec<Case> {
    use Spelling as S;
    let spellings =
        [S::Compact, S::Shuffled, S::Spaced, S::Pretty, S::Sorted, S::Escaped, S::AllEscaped];
    let mut cases: Vec<Case> = spellings
        .into_iter()
        .map(|spelling| parse(format!("parse 3000 {spelling:?}"), move || llama(3_000, spelling)))
        .collect();
    cases.push(without_slots("count", |header| header.count().is_ok()));
    cases.push(without_slots("scan", |header| header.scan().finish().is_ok()));
    cases.push(without_slots("find", |header| {
        header.find("model.layers.7.mlp.up_proj.weight").is_ok()
    }));
    cases.push(look_up());
    // F32 is left out: it is a copy by the C library, which picks its code by the processor.
    let widened = |dtype: &Dtype| dtype.has_f32() && *dtype != Dtype::F32;
    cases.extend(Dtype::ALL.into_iter().filter(widened).map(widen));
    for kind in hostile::KINDS {
        cases.push(parse(format!("hostile: {}", kind.name), move || kind.file(HOSTILE_LEN)));
    }
    cases
}

/// Runs the work that callgrind counts. Callgrind finds the function by its name.
#[no_mangle]
#[inline(never)]
pub extern "C" fn safetensors_zero_measured(run: &mut Box<dyn FnMut()>) {
    run();
}

/// Counts a case's instructions per unit, in a separate process.
fn instructions(index: usize) -> f64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--toggle-collect=safetensors_zero_measured", "--cache-sim=no"])
        .arg(std::env::current_exe().unwrap())
        .args(["--case", &index.to_string()])
        .output()
        .expect("valgrind is installed");
    let count = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    let collected = collected.unwrap_or_else(|| panic!("{text}")).1.trim();
    collected.parse::<f64>().unwrap() / count
}

fn committed() -> Vec<(String, f64)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.tsv");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let (name, figure) = line.split_once('\t')?;
        Some((name.to_owned(), figure.split_whitespace().next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--case") {
        let index: usize = arguments[at + 1].parse().unwrap();
        let mut work = (cases().remove(index).set_up)();
        safetensors_zero_measured(&mut work.run);
        println!("{}", work.count);
        return ExitCode::SUCCESS;
    }
    let asked = |name: &str| arguments.iter().any(|argument| argument == name);
    let committed = committed();
    let (mut table, mut faults) = (String::new(), Vec::new());
    let mut honest = f64::MAX;
    for (index, case) in cases().into_iter().enumerate() {
        let each = instructions(index);
        let line = format!("{}\t{each:.2} instructions per {}\n", case.name, case.unit);
        print!("{line}");
        table += &line;
        if index == 0 {
            honest = each;
        }
        if case.name.starts_with("hostile") && each > MAX_COST_RATIO * honest {
            faults.push(format!("{} costs {:.1} times an honest header", case.name, each / honest));
        }
        match committed.iter().find(|(name, _)| *name == case.name) {
            Some((_, before)) if each > before * 1.1 + 0.005 => {
                faults.push(format!("{} grew from {before:.2} to {each:.2}", case.name));
            }
            Some(_) => {}
            None => faults.push(format!("{} is not in benches/instructions.tsv", case.name)),
        }
    }
    if asked("--write") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.tsv");
        std::fs::write(path, table).unwrap();
    }
    for fault in &faults {
        println!("{fault}");
    }
    if asked("--check") && !faults.is_empty() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
