//! Promise: of real models this crate tells, to the bit, what Python's `safetensors` and NumPy do.
//!
//! The models are fetched by `python3 tests/oracle/fetch.py`, then
//! `cargo test --test oracle -- --ignored`.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors_zero::{Limits, SafeTensors, TensorSlot};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use support::paths;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    metadata: Option<BTreeMap<String, String>>,
    tensors: BTreeMap<String, Tensor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
    /// Of the bytes.
    sha256: String,
    /// Of the elements as little-endian `f32`, with one NaN for all; none for C64.
    f32_sha256: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/files")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
#[ignore = "needs the models that tests/oracle/fetch.py fetches"]
fn real_models_are_read_as_python_reads_them() {
    let oracle = std::fs::read(folder().join("oracle.json")).expect("run tests/oracle/fetch.py");
    let oracle: BTreeMap<String, Described> = serde_json::from_slice(&oracle).unwrap();
    assert_eq!(oracle.len(), 6);
    let mut widened = 0;
    for (name, described) in &oracle {
        let file = std::fs::read(folder().join(name)).unwrap();
        paths::read(&file, &Limits::DEFAULT).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut slots = vec![TensorSlot::EMPTY; 200];
        let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
        assert_eq!(tensors.len(), described.tensors.len(), "{name}");
        let metadata = tensors.metadata().map(|metadata| {
            metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
        });
        assert_eq!(metadata, described.metadata, "{name}");

        for (tensor, expected) in &described.tensors {
            let info =
                tensors.table().info(tensor).unwrap_or_else(|e| panic!("{name} {tensor}: {e}"));
            assert_eq!(info.dtype.as_str(), expected.dtype, "{name} {tensor}");
            assert!(info.shape.iter().eq(expected.shape.iter().copied()), "{name} {tensor}");
            assert_eq!(info.data_offsets, expected.data_offsets, "{name} {tensor}");
            let view = tensors.tensor(tensor).unwrap();
            assert_eq!(sha256(view.data()), expected.sha256, "{name} {tensor}");

            let Some(f32_sha256) = &expected.f32_sha256 else {
                assert!(!view.dtype().has_f32(), "{name} {tensor}");
                continue;
            };
            let mut out = vec![0.0; view.elements() as usize];
            view.dequant_into(&mut out).unwrap();
            let one_nan = |value: f32| if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
            let bytes: Vec<u8> =
                out.iter().flat_map(|value| one_nan(*value).to_le_bytes()).collect();
            assert_eq!(sha256(&bytes), *f32_sha256, "{name} {tensor} {}", view.dtype());
            widened += 1;
        }
    }
    assert!(widened > 130, "{widened}");
}

#[test]
#[ignore = "needs the models that tests/oracle/fetch.py fetches"]
fn what_mlx_writes_is_odd_but_valid() {
    let file = std::fs::read(folder().join("mlx.safetensors")).expect("run tests/oracle/fetch.py");
    let header_len = u64::from_le_bytes(*file.first_chunk().unwrap());
    let header = std::str::from_utf8(&file[8..8 + header_len as usize]).unwrap();
    assert!(header.contains("\"__metadata__\":null"), "{header}");
    let content = paths::read(&file, &Limits::DEFAULT).unwrap();
    let place = |name: &str| header.find(&format!("\"{name}\"")).unwrap();
    let in_order =
        content.tensors.windows(2).all(|pair| place(&pair[0].name) < place(&pair[1].name));
    assert!(!in_order, "MLX lists tensors in another order than their data");
}
