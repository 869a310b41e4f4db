//! Reads rows of a table as `f32`: a range, or single rows to compare.
//!
//! cargo run --example read_rows -- examples/animals.safetensors embedding.weight 0..3
//! cargo run --example read_rows -- examples/animals.safetensors embedding.weight 0 1 7
//!
//! Prints the values of a range or of a single row. For several row numbers, prints the cosine
//! similarity of each pair. Only the requested rows are converted, however large the table is.

#![allow(clippy::restriction, clippy::pedantic)]

use std::ops::Range;
use std::process::ExitCode;

use safetensors_zero::{SafeTensors, TensorSlot, TensorView};

const USAGE: &str = "usage: read_rows FILE TENSOR (A..B | ROW...)";

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("read_rows: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<(), String> {
    let [path, name, rows @ ..] = arguments.as_slice() else { return Err(USAGE.into()) };
    let file = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let in_file = |error: safetensors_zero::Error| format!("{path}: {}", error.in_file(&file));

    // The slots on the stack are enough for 1,000 tensors. More are an error with the number.
    let mut slots = [TensorSlot::EMPTY; 1000];
    let tensors = SafeTensors::parse(&file, &mut slots).map_err(in_file)?;
    let table = tensors.tensor(name).map_err(|error| {
        let names: Vec<String> = tensors.names().take(10).map(|name| format!("{name:?}")).collect();
        format!("{path}: {name}: {error}; the file has {}", names.join(", "))
    })?;
    println!("{} {} {}", table.name(), table.dtype(), table.shape());

    let of_table = |error| format!("{path}: {name}: {error}");
    if let [range] = rows {
        if let Some((begin, end)) = range.split_once("..") {
            let range = number(begin)?..number(end)?;
            for (row, values) in (range.start..).zip(read(&table, range).map_err(of_table)?) {
                println!("{row}: {values:?}");
            }
            return Ok(());
        }
    }
    if rows.is_empty() {
        return Err(USAGE.into());
    }
    let mut read_rows = Vec::new();
    for row in rows {
        let row = number(row)?;
        let values = read(&table, row..row.saturating_add(1)).map_err(of_table)?;
        read_rows.extend(values.into_iter().map(|values| (row, values)));
    }
    for (i, (a, values)) in read_rows.iter().enumerate() {
        for (b, others) in &read_rows[i + 1..] {
            println!("{a} and {b}: {:.4}", cosine(values, others));
        }
        if read_rows.len() == 1 {
            println!("{a}: {values:?}");
        }
    }
    Ok(())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a row number; {USAGE}"))
}

/// Reads a range of rows, each as a vector.
fn read(
    table: &TensorView<'_>,
    range: Range<u64>,
) -> Result<Vec<Vec<f32>>, safetensors_zero::Error> {
    let row_len = table.row_len()?;
    // Checks the whole range first, so that an invalid one allocates nothing.
    table.slice(&[range.clone().into()])?;
    range
        .map(|row| {
            let mut values = vec![0.0; row_len as usize];
            table.dequant_rows(row..row + 1, &mut values)?;
            Ok(values)
        })
        .collect()
}

/// Returns the cosine of the angle between two vectors: 1 if they point in the same direction.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
