//! Saving 1 GiB, compared with the crate `safetensors` 0.8.0.
//!
//! `cargo bench --bench saving` prints a table for a folder on disk and one for a folder in memory,
//! where syncing costs nothing. The cases take turns, each run in a separate process. The time is
//! that of saving 64 tensors of 16 MiB over a file of the same name. The memory is the process's
//! peak minus its memory before saving, which includes the tensors.
//!
//! The reference doesn't sync its file and overwrites the old one in place. A second row of the
//! reference adds the sync.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use safetensors::tensor::TensorView as Theirs;
use safetensors_zero::{Dtype, FileWriter, PlanBuilder, Shape, View};
use support::process::{peak, table, Row};

const TENSORS: usize = 64;
const LEN: usize = 16 << 20;

struct Ours<'a>(&'a [u8]);

impl View for Ours<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::U8
    }

    fn shape(&self) -> Shape<'_> {
        Shape::new(&[LEN])
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.0)
    }
}

type Tensors<'a> = Vec<(String, &'a [u8])>;

fn theirs(tensors: &Tensors<'_>, path: &Path) {
    let views = tensors
        .iter()
        .map(|(name, data)| (name, Theirs::new(safetensors::Dtype::U8, vec![LEN], data).unwrap()));
    safetensors::serialize_to_file(views, None, path).unwrap();
}

type Work = fn(&Tensors<'_>, &Path);

const WORKS: &[(&str, Work)] = &[
    ("serialize_to_file", |tensors, path| {
        let views = tensors.iter().map(|(name, data)| (name, Ours(data)));
        safetensors_zero::serialize_to_file(views, None, path).unwrap();
    }),
    ("FileWriter, in chunks of 1 MiB", |tensors, path| {
        let mut builder = PlanBuilder::new();
        for (name, _) in tensors {
            builder.tensor(name, Dtype::U8, [LEN as u64]);
        }
        let mut writer = FileWriter::create(path, builder.plan().unwrap()).unwrap();
        for (name, data) in tensors {
            let mut tensor = writer.tensor(name).unwrap();
            data.chunks(1 << 20).for_each(|chunk| tensor.write_all(chunk).unwrap());
        }
        writer.commit().unwrap();
    }),
    ("safetensors 0.8.0, then fsync", |tensors, path| {
        theirs(tensors, path);
        std::fs::File::open(path).unwrap().sync_all().unwrap();
    }),
    ("safetensors 0.8.0", theirs),
];

fn child(name: &str, path: &Path) {
    let work = WORKS.iter().find(|(work, _)| *work == name).unwrap().1;
    let data: Vec<u8> = (0..TENSORS * LEN).map(|i| (i >> 4) as u8).collect();
    let tensors: Tensors<'_> =
        data.chunks(LEN).zip(0..).map(|(data, i)| (format!("tensor.{i:02}"), data)).collect();
    let before = peak();
    let start = Instant::now();
    work(&tensors, path);
    println!("{} {}", start.elapsed().as_nanos(), peak() - before);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name, path] = arguments.as_slice() {
        if flag == "--child" {
            return child(name, path.as_ref());
        }
    }
    let disk = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let folders = [("on disk", disk), ("in memory", PathBuf::from("/dev/shm"))];
    for (title, folder) in folders.iter().filter(|(_, folder)| folder.is_dir()) {
        let path = folder.join("safetensors-zero-bench.safetensors");
        let rows = WORKS.iter().map(|(work, _)| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--child", work]).arg(&path);
            Row { name: (*work).to_owned(), command }
        });
        table(&format!("save 1 GiB {title}"), 5, rows.collect());
        let _ = std::fs::remove_file(&path);
    }
}
