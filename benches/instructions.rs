//! Instructions, counted by valgrind's callgrind: the same number each time, on any machine of one
//! kind with one compiler.
//!
//! `cargo bench --bench instructions` prints the table; `-- --check` also compares it with
//! benches/instructions.tsv and fails if a figure has grown by more than a tenth, or if a hostile
//! header costs more than 20 times as much a byte as an honest one; `-- --write` writes that file.

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

/// A case: its name, what it is counted by, and how it is made when it is run.
struct Case {
    name: String,
    unit: &'static str,
    make: Box<dyn Fn() -> Made>,
}

/// What a case does, and how many units that is.
struct Made {
    count: usize,
    run: Box<dyn FnMut()>,
}

/// What a byte of a hostile header may cost, in bytes of an honest one. The dearest are keys of
/// `__metadata__` of which some are made to collide: all are sorted then, and few bytes tell many keys.
const DEAREST: f64 = 20.0;

/// Bytes of a hostile header.
const HOSTILE: usize = 300_000;

fn header_len(file: &[u8]) -> usize {
    support::header(file).len()
}

fn parse(name: String, file: impl Fn() -> Vec<u8> + 'static) -> Case {
    let make = move || {
        let file = file();
        let count = header_len(&file);
        let mut slots = vec![TensorSlot::EMPTY; count / 6];
        let run = Box::new(move || {
            black_box(SafeTensors::parse(black_box(&file), &mut slots).is_ok());
        });
        Made { count, run }
    };
    Case { name, unit: "header byte", make: Box::new(make) }
}

fn without_slots(name: &str, call: fn(&Header<'_>) -> bool) -> Case {
    let make = move || {
        let file = llama(3_000, Spelling::Compact);
        let count = header_len(&file);
        let run = move || {
            let (header, _) = Header::of_file(black_box(&file), &Limits::DEFAULT).unwrap();
            assert!(call(&header));
        };
        Made { count, run: Box::new(run) }
    };
    Case { name: format!("{name} 3000"), unit: "header byte", make: Box::new(make) }
}

fn look_up() -> Case {
    let make = || {
        // The case does not end before the program does.
        let file: &'static [u8] = llama(3_000, Spelling::Compact).leak();
        let tensors = SafeTensors::deserialize(file).unwrap();
        let names: Vec<String> = tensors.names().map(|name| name.to_string()).collect();
        let count = names.len();
        let run = move || {
            for name in &names {
                black_box(tensors.tensor(black_box(name)).is_ok());
            }
        };
        Made { count, run: Box::new(run) }
    };
    Case { name: "look up among 3000".into(), unit: "name", make: Box::new(make) }
}

fn widen(dtype: Dtype) -> Case {
    let make = move || {
        let count = 1 << 16;
        let bytes: Vec<u8> = (0..count * dtype.bitsize() / 8).map(|i| (i * 151) as u8).collect();
        let mut out = vec![0.0; count];
        let run =
            move || dequant::dequant_into(dtype, black_box(&bytes), black_box(&mut out)).unwrap();
        Made { count, run: Box::new(run) }
    };
    Case { name: format!("widen {dtype}"), unit: "element", make: Box::new(make) }
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
    // F32 is a copy, the C library's, which chooses its instructions by the machine.
    let widened = |dtype: &Dtype| dtype.has_f32() && *dtype != Dtype::F32;
    cases.extend(Dtype::ALL.into_iter().filter(widened).map(widen));
    for kind in hostile::KINDS {
        cases.push(parse(format!("hostile: {}", kind.name), move || kind.file(HOSTILE)));
    }
    cases
}

/// What callgrind counts: it looks for this name.
#[no_mangle]
#[inline(never)]
pub extern "C" fn safetensors_zero_measured(run: &mut Box<dyn FnMut()>) {
    run();
}

/// Instructions of a case for each of its units, counted in a process of its own.
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
        let mut made = (cases().remove(index).make)();
        safetensors_zero_measured(&mut made.run);
        println!("{}", made.count);
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
        if case.name.starts_with("hostile") && each > DEAREST * honest {
            faults.push(format!("{} costs {:.1} times an honest header", case.name, each / honest));
        }
        match committed.iter().find(|(name, _)| *name == case.name) {
            Some((_, before)) if each > before * 1.1 + 0.005 => {
                faults.push(format!("{} has grown from {before:.2} to {each:.2}", case.name));
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
