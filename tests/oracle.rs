//! Promise: real models read bit for bit the same as with Python's `safetensors` and NumPy, and
//! Python's `safetensors` can read what this crate writes.
//!
//! Fetch the models with `python3 tests/oracle/fetch.py`, then run
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
#[cfg(feature = "std")]
use {
    safetensors_zero::{
        serialize_to_file_with, serialize_to_folder, Dtype, Edited, MetadataEdit, PlanOptions,
        Shards,
    },
    support::{model::Spec, rng::Rng, temp::Temp},
};

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
    /// The digest of the stored bytes.
    sha256: String,
    /// The digest of the elements as little-endian `f32`, with every NaN made the same. `None` for
    /// C64.
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
fn real_models_read_the_same_as_in_python() {
    let oracle = std::fs::read(folder().join("oracle.json")).expect("run tests/oracle/fetch.py");
    let oracle: BTreeMap<String, Described> = serde_json::from_slice(&oracle).unwrap();
    assert_eq!(oracle.len(), 6);
    let mut compared = 0;
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
            let unify_nan = |value: f32| if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
            let bytes: Vec<u8> =
                out.iter().flat_map(|value| unify_nan(*value).to_le_bytes()).collect();
            assert_eq!(sha256(&bytes), *f32_sha256, "{name} {tensor} {}", view.dtype());
            compared += 1;
        }
    }
    assert!(compared > 130, "{compared}");
}

#[test]
#[ignore = "needs the models that tests/oracle/fetch.py fetches"]
fn files_written_by_mlx_are_accepted() {
    let file = std::fs::read(folder().join("mlx.safetensors")).expect("run tests/oracle/fetch.py");
    let header_len = u64::from_le_bytes(*file.first_chunk().unwrap());
    let header = std::str::from_utf8(&file[8..8 + header_len as usize]).unwrap();
    assert!(header.contains("\"__metadata__\":null"), "{header}");
    let content = paths::read(&file, &Limits::DEFAULT).unwrap();
    let position = |name: &str| header.find(&format!("\"{name}\"")).unwrap();
    let in_order =
        content.tensors.windows(2).all(|pair| position(&pair[0].name) < position(&pair[1].name));
    assert!(!in_order, "MLX's header order differs from the data order");
}

/// What Python has to find in a file.
#[cfg(feature = "std")]
fn expected(specs: &[&Spec], metadata: Option<&BTreeMap<String, String>>) -> serde_json::Value {
    let tensors: BTreeMap<&str, serde_json::Value> = specs
        .iter()
        .map(|spec| {
            let (dtype, shape) = (spec.dtype.as_str(), &spec.shape);
            let sha256 = sha256(&spec.data);
            (&*spec.name, serde_json::json!({"dtype": dtype, "shape": shape, "sha256": sha256}))
        })
        .collect();
    serde_json::json!({"metadata": metadata, "tensors": tensors})
}

#[cfg(feature = "std")]
#[test]
#[ignore = "needs the packages that tests/oracle/fetch.py installs"]
fn python_reads_what_this_crate_writes() {
    let temp = Temp::new();
    let mut rng = Rng(2);
    let mut files = BTreeMap::new();

    // Every dtype, with unusual names and metadata.
    let specs: Vec<Spec> = Dtype::ALL
        .into_iter()
        .zip(["", "a\"\\", "\u{0}\u{1b}", "é😀", "x/../y"].into_iter().cycle())
        .map(|(dtype, prefix)| Spec {
            name: format!("{prefix}{dtype}"),
            dtype,
            shape: vec![3, 8],
            data: rng.bytes(3 * dtype.bitsize()),
        })
        .collect();
    let views = || specs.iter().map(|spec| (&*spec.name, spec));
    let metadata: BTreeMap<String, String> =
        [("format", "pt"), ("", "\n\t\"\\"), ("é\u{1}", "😀\u{7f}\u{2028}")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    let all: Vec<&Spec> = specs.iter().collect();
    for align in [8, 4096] {
        let mut options = PlanOptions::default();
        options.align = align;
        let name = format!("all-{align}.safetensors");
        serialize_to_file_with(views(), Some(metadata.clone()), temp.join(&name), &options)
            .unwrap();
        files.insert(name, expected(&all, Some(&metadata)));
    }

    // Metadata edited in place and by rewriting the file.
    let mut changed = metadata.clone();
    for (align, value) in [(4096, "in place"), (8, "by a new file")] {
        let name = format!("edited-{align}.safetensors");
        std::fs::copy(temp.join(format!("all-{align}.safetensors")), temp.join(&name)).unwrap();
        changed.insert("changed".to_owned(), value.repeat(20));
        let edited = MetadataEdit::new().set("changed", value.repeat(20)).apply(temp.join(&name));
        let expected_way = if align == 8 { Edited::Rewritten } else { Edited::InPlace };
        assert_eq!(edited.unwrap(), expected_way);
        files.insert(name, expected(&all, Some(&changed)));
    }

    // Shards.
    serialize_to_folder(views(), None, temp.path(), 1000).unwrap();
    let shards = Shards::open(temp.path()).unwrap();
    for shard in 0..shards.shards() {
        let name = shards.path(shard).file_name().unwrap().to_str().unwrap().to_owned();
        let table = shards.table(shard).unwrap();
        let within: Vec<&Spec> =
            specs.iter().filter(|spec| table.info(&spec.name).is_ok()).collect();
        files.insert(name, expected(&within, None));
    }
    assert!(files.len() > 6, "the model needs several shards");

    let count = files.len();
    let expected = serde_json::json!({"files": files, "sharded": specs.len()});
    std::fs::write(temp.join("expected.json"), expected.to_string()).unwrap();
    let output = std::process::Command::new(folder().join("venv/bin/python"))
        .arg(folder().parent().unwrap().join("read_back.py"))
        .arg(temp.path())
        .output()
        .expect("run tests/oracle/fetch.py");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), count.to_string());
}
