//! Promise: writing a file of any size takes only the memory of its plan and one piece of data.

#![cfg(feature = "std")]
#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::fs;
use std::io::{self, Seek, SeekFrom, Write};

use safetensors_zero::{Dtype, File, PlanBuilder, StreamWriter};
use support::allocator::{within, Counting};
use support::temp::Temp;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PIECE: usize = 1 << 20;
static ZEROS: [u8; PIECE] = [0; PIECE];

/// A file that skips pieces of zeros, so that it stays sparse.
struct Sparse(fs::File);

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if *bytes == ZEROS[..bytes.len().min(PIECE)] {
            self.0.seek(SeekFrom::Current(bytes.len() as i64))?;
            return Ok(bytes.len());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn six_gib_are_written_in_256_kib_of_memory() {
    const TENSORS: u64 = 6;
    let temp = Temp::new();
    let path = temp.join("model.safetensors");
    let mut builder = PlanBuilder::new();
    for i in 0..TENSORS {
        builder.tensor(format!("t{i}"), Dtype::F32, [1 << 10, 1 << 18]);
    }
    builder.tensor("u", Dtype::U8, [4]);
    let mut piece = vec![0; PIECE];
    let output = Sparse(fs::File::create(&path).unwrap());

    within(256 << 10, || {
        let plan = builder.plan().unwrap();
        assert!(plan.file_len() > 6 << 30);
        let mut writer = StreamWriter::new(output, plan).unwrap();
        for i in 0..TENSORS {
            let name = format!("t{i}");
            for at in 0..1 << 10 {
                // The first piece of each tensor begins with a nonzero value.
                piece[..4]
                    .copy_from_slice(&if at == 0 { i as f32 + 1.0 } else { 0.0 }.to_le_bytes());
                writer.tensor(&name).unwrap().write_bytes(&piece).unwrap();
            }
        }
        writer.tensor("u").unwrap().write_bytes(b"last").unwrap();
        writer.finish().unwrap().0.sync_all().unwrap();
    });

    let file = File::open(&path).unwrap();
    assert_eq!(file.len() as u64, TENSORS + 1);
    for i in 0..TENSORS {
        let mut first = [0.0; 2];
        file.tensor(&format!("t{i}")).unwrap().dequant_range(0, &mut first).unwrap();
        assert_eq!(first, [i as f32 + 1.0, 0.0]);
    }
    let mut last = [0; 4];
    file.tensor("u").unwrap().read_into(&mut last).unwrap();
    assert_eq!(&last, b"last");
}
