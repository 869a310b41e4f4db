//! The numbers that the program computes: exports, statistics, differences and digests.

use serde_json::{json, Value};
use sha2::{Digest as _, Sha256};

use crate::run::{good, json, run, text};
use crate::support::file::file;
use crate::support::temp::Temp;

const ANIMALS: &str = "examples/animals.safetensors";

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|quad| f32::from_le_bytes(quad.try_into().unwrap())).collect()
}

/// A file of one F32 tensor with these values.
fn singles(name: &str, values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let (len, end) = (values.len(), data.len());
    let header =
        format!(r#"{{"{name}":{{"dtype":"F32","shape":[{len}],"data_offsets":[0,{end}]}}}}"#);
    file(header, &data)
}

#[test]
fn export_selects_ranges_and_rows() {
    let export = |more: &[&str]| {
        let mut arguments = vec!["export", ANIMALS, "embedding.weight", "-o", "-"];
        arguments.extend(more);
        good(&arguments)
    };
    let all = floats(&export(&[]));
    assert_eq!((all.len(), all[26]), (80, 0.89990234));
    assert_eq!(floats(&export(&["--rows", "3..5"])), all[24..40]);
    assert_eq!(floats(&export(&["--rows", "8.."])), all[64..]);
    assert_eq!(floats(&export(&["--range", "7..9"])), all[7..9]);
    assert_eq!(floats(&export(&["--range", "..3"])), all[..3]);
    assert!(export(&["--range", "80..80"]).is_empty());
    let stored = export(&["--format", "raw"]);
    assert_eq!(export(&["--format", "raw", "--range", "7..9"]), stored[14..18]);
    let numpy = export(&["--format", "npy", "--rows", "3..5"]);
    assert_eq!((&numpy[..8], numpy.len()), (&b"\x93NUMPY\x01\0"[..], 128 + 32));
    assert_eq!(numpy[128..], stored[48..80]);
    let header = String::from_utf8(numpy[10..128].to_vec()).unwrap();
    assert_eq!(header.trim_end(), "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 8), }");
    for range in ["80..81", "3..2", "18446744073709551615..", "0..18446744073709551615"] {
        let run = run(&["export", ANIMALS, "embedding.weight", "-o", "-", "--range", range]);
        assert_eq!((run.code, run.stdout.len()), (Some(1), 0));
        assert!(run.error().contains("are out of range; it has 80 elements"), "{}", run.stderr);
    }
}

#[test]
fn npy_exports_have_the_closest_numpy_type() {
    let all = "tests/corpus/dtype-all.safetensors";
    let listed = json(&["tensors", "--json", all]);
    for tensor in listed["tensors"].as_array().unwrap() {
        let name = tensor["name"].as_str().unwrap();
        let numpy = good(&["export", all, name, "--format", "npy", "-o", "-"]);
        let header = String::from_utf8_lossy(&numpy[10..]).to_string();
        let descr = header.split('\'').nth(3).unwrap();
        let expected = match tensor["dtype"].as_str().unwrap() {
            "BOOL" => "|b1",
            "U8" => "|u1",
            "I8" => "|i1",
            "U16" => "<u2",
            "I16" => "<i2",
            "F16" => "<f2",
            "U32" => "<u4",
            "I32" => "<i4",
            "U64" => "<u8",
            "I64" => "<i8",
            "F64" => "<f8",
            "C64" => "<c8",
            _ => "<f4",
        };
        assert_eq!(descr, expected);
        let size: usize = descr[2..].parse().unwrap();
        let elements = tensor["elements"].as_u64().unwrap() as usize;
        assert_eq!(numpy.len() % 64, elements * size % 64, "{name}");
    }
}

#[test]
fn c64_has_no_f32_values() {
    let temp = Temp::new();
    let header = r#"{"c":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}"#;
    let path = temp.write("c.safetensors", file(header, &[0; 8]));
    let path = path.to_str().unwrap();
    let out = temp.join("out");
    let run = run(&["export", path, "c", "-o", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.error().contains("C64 has no value as f32"), "{}", run.stderr);
    assert!(!out.exists());
    assert_eq!(good(&["export", path, "c", "-o", "-", "--format", "raw"]).len(), 8);
    let stats = json(&["stats", "--json", path]);
    assert_eq!(stats["tensors"][0]["count"], 1);
    assert_eq!(stats["tensors"][0]["mean"], Value::Null);
}

#[test]
fn raw_ranges_have_to_fill_whole_bytes() {
    let temp = Temp::new();
    let header = r#"{"f":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}"#;
    let path = temp.write("f.safetensors", file(header, &[0x21, 0x43]));
    let path = path.to_str().unwrap();
    let raw = ["export", path, "f", "-o", "-", "--format", "raw", "--range"];
    assert_eq!(good(&[&raw[..], &["2..4"]].concat()), [0x43]);
    let run = run(&[&raw[..], &["1..3"]].concat());
    assert_eq!(run.code, Some(1));
    assert!(run.error().contains("begin or end inside a byte"));
    let values = good(&["export", path, "f", "-o", "-", "--range", "1..3"]);
    assert_eq!(floats(&values), [1.0, 1.5]);
}

#[test]
fn stats_of_nan_infinities_and_zeros() {
    let temp = Temp::new();
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, 1.0, 3.0];
    let path = temp.write("odd.safetensors", singles("odd", &values));
    let found = json(&["stats", "--json", "--bins", "3", path.to_str().unwrap()]);
    let odd = &found["tensors"][0];
    let expected = json!({
        "name": "odd", "dtype": "F32", "shape": [7], "count": 7, "finite": 4, "nan": 1,
        "positive_infinity": 1, "negative_infinity": 1, "zeros": 2, "min": -0.0, "max": 3.0,
        "mean": 1.0, "std_dev": 1.5_f64.sqrt(),
        "histogram": {"low": -0.0, "high": 3.0, "counts": [2, 1, 1]},
    });
    assert_eq!(*odd, expected);
    let path = temp.write("none.safetensors", singles("none", &[f32::NAN]));
    let found = json(&["stats", "--json", path.to_str().unwrap()]);
    assert_eq!(found["tensors"][0]["min"], Value::Null);
    assert_eq!(found["tensors"][0]["histogram"], Value::Null);
    let path = path.to_str().unwrap();
    assert!(text(&["stats", path, "none"]).contains("min       -\n"));
    let png = temp.join("none.png");
    let run = run(&["stats", path, "none", "--png", png.to_str().unwrap()]);
    assert_eq!((run.code, png.exists()), (Some(1), false));
}

#[test]
fn long_tensors_are_processed_in_pieces() {
    let temp = Temp::new();
    let values: Vec<f32> = (0..100_001).map(|i| i as f32).collect();
    let path = temp.write("long.safetensors", singles("t", &values));
    let path = path.to_str().unwrap();
    assert_eq!(floats(&good(&["export", path, "t", "-o", "-"])), values);
    let part = good(&["export", path, "t", "-o", "-", "--range", "32767..65537"]);
    assert_eq!(floats(&part), values[32_767..65_537]);
    let found = json(&["stats", "--json", "--bins", "10", path]);
    let tensor = &found["tensors"][0];
    assert_eq!((&tensor["count"], &tensor["mean"]), (&json!(100_001), &json!(50_000.0)));
    let counts = tensor["histogram"]["counts"].as_array().unwrap();
    assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), 100_001);
    assert!(counts.iter().all(|count| (10_000..=10_001).contains(&count.as_u64().unwrap())));
}

#[test]
fn diff_lists_all_differences() {
    let temp = Temp::new();
    let a = r#"{"same":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"gone":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"value":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},"shape":{"dtype":"U8","shape":[2],"data_offsets":[10,12]},"dtype":{"dtype":"U8","shape":[2],"data_offsets":[12,14]},"zero":{"dtype":"I8","shape":[1],"data_offsets":[14,15]}}"#;
    let b = r#"{"__metadata__":{"k":"v"},"value":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"same":{"dtype":"U8","shape":[1],"data_offsets":[8,9]},"shape":{"dtype":"U8","shape":[1,2],"data_offsets":[9,11]},"dtype":{"dtype":"I16","shape":[2],"data_offsets":[11,15]},"zero":{"dtype":"I8","shape":[1],"data_offsets":[15,16]},"new":{"dtype":"U8","shape":[0],"data_offsets":[16,16]}}"#;
    let two = |x: f32, y: f32| [x.to_le_bytes(), y.to_le_bytes()].concat();
    let data_a = [&[5, 6], &*two(1.0, 2.0), &[1, 2], &[7, 8], &[0]].concat();
    let data_b = [&*two(1.0, 2.5), &[5], &[1, 2], &[7, 0, 9, 0], &[0]].concat();
    let a = temp.write("a.safetensors", file(a, &data_a));
    let b = temp.write("b.safetensors", file(b, &data_b));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let found = run(&["diff", "--json", a, b]);
    assert_eq!((found.code, &*found.stderr), (Some(1), ""));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let expected = json!({
        "a": a, "b": b, "same": false, "equal": 2,
        "added": [{"name": "new", "dtype": "U8", "shape": [0]}],
        "removed": [{"name": "gone", "dtype": "U8", "shape": [1]}],
        "changed": [
            {"name": "dtype", "dtype": ["U8", "I16"], "shape": [[2], [2]], "elements": 2,
             "differing": 1, "max_abs": 1.0, "max_rel": 1.0 - 8.0 / 9.0},
            {"name": "shape", "dtype": ["U8", "U8"], "shape": [[2], [1, 2]], "elements": 2,
             "differing": null, "max_abs": null, "max_rel": null},
            {"name": "value", "dtype": ["F32", "F32"], "shape": [[2], [2]], "elements": 2,
             "differing": 1, "max_abs": 0.5, "max_rel": 0.19999999999999996},
        ],
    });
    let mut found = found;
    let relative = found["changed"][0]["max_rel"].as_f64().unwrap();
    assert!((relative - 1.0 / 9.0).abs() < 1e-15);
    found["changed"][0]["max_rel"] = json!(1.0 - 8.0 / 9.0);
    assert_eq!(found, expected);
    let printed = String::from_utf8(run(&["diff", a, b]).stdout).unwrap();
    assert_eq!(
        printed,
        "~ dtype  U8 -> I16, 1 of 2 values differ, by at most 1, relative 0.1111\n\
         - gone  U8 [1]\n\
         + new  U8 [0]\n\
         ~ shape  [2] -> [1, 2]\n\
         ~ value  1 of 2 values differ, by at most 0.5000, relative 0.2000\n\
         2 equal tensors, 1 added, 1 removed, 3 changed\n"
    );
    let run = run(&["diff", a, "missing.safetensors"]);
    assert_eq!(run.code, Some(2));
}

/// The content digest, computed from its definition.
fn content(tensors: &[(&str, &str, &[u64], &[u8])]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"safetensor content 1\n");
    for (name, dtype, shape, data) in tensors {
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update((dtype.len() as u64).to_le_bytes());
        hasher.update(dtype);
        hasher.update((shape.len() as u64).to_le_bytes());
        shape.iter().for_each(|dimension| hasher.update(dimension.to_le_bytes()));
        hasher.update(Sha256::digest(data));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn digests_depend_only_on_the_content() {
    let temp = Temp::new();
    let one = r#"{"a":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]},"b":{"dtype":"F16","shape":[],"data_offsets":[2,4]}}"#;
    let other = r#"{"__metadata__":{"k":"v"},"b":{"shape":[],"dtype":"F16","data_offsets":[0,2]},"\u0061":{"dtype":"U8","shape":[2,1],"data_offsets":[2,4]}}      "#;
    let one = temp.write("one.safetensors", file(one, &[1, 2, 3, 4]));
    let other = temp.write("other.safetensors", file(other, &[3, 4, 1, 2]));
    let index = r#"{"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}}"#;
    let index = temp.write("m.safetensors.index.json", index);
    let a = r#"{"a":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]}}"#;
    let b = r#"{"b":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}"#;
    temp.write("s1.safetensors", file(a, &[1, 2]));
    temp.write("s2.safetensors", file(b, &[3, 4]));
    let expected = content(&[("a", "U8", &[2, 1], &[1, 2]), ("b", "F16", &[], &[3, 4])]);
    let lines = [
        ("a", "a12871fee210fb8619291eaea194581cbd2531e4b23759d225f6806923f63222"),
        ("b", &sha256(&[3, 4])),
    ];
    let printed: String =
        lines.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    for path in [&one, &other, &index] {
        assert_eq!(text(&["hash", path.to_str().unwrap()]), format!("{printed}{expected}\n"));
    }
    let blake = json(&["hash", "--json", "--algorithm", "blake3", one.to_str().unwrap()]);
    assert_eq!(blake["algorithm"], "blake3");
    assert_eq!(blake["tensors"][0]["digest"], blake3::hash(&[1, 2]).to_hex().as_str());
    // The shape is part of the content.
    let flat = one_with("[2]");
    let flat = temp.write("flat.safetensors", flat);
    assert!(!text(&["hash", flat.to_str().unwrap()]).ends_with(&format!("{expected}\n")));
}

fn one_with(shape: &str) -> Vec<u8> {
    let header = format!(
        r#"{{"a":{{"dtype":"U8","shape":{shape},"data_offsets":[0,2]}},"b":{{"dtype":"F16","shape":[],"data_offsets":[2,4]}}}}"#
    );
    file(header, &[1, 2, 3, 4])
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
#[ignore = "needs the models that tests/oracle/fetch.py fetches"]
fn digests_of_real_models_match_python() {
    let folder = "tests/oracle/files";
    let oracle = std::fs::read(format!("{folder}/oracle.json")).expect("run tests/oracle/fetch.py");
    let oracle: Value = serde_json::from_slice(&oracle).unwrap();
    let mut count = 0;
    for (file, described) in oracle.as_object().unwrap() {
        let path = format!("{folder}/{file}");
        good(&["verify", &path]);
        for tensor in json(&["hash", "--json", &path])["tensors"].as_array().unwrap() {
            let expected = &described["tensors"][tensor["name"].as_str().unwrap()];
            assert_eq!(tensor["digest"], expected["sha256"], "{file}");
            count += 1;
        }
        let tensors = json(&["tensors", "--json", &path]);
        for tensor in tensors["tensors"].as_array().unwrap() {
            let expected = &described["tensors"][tensor["name"].as_str().unwrap()];
            for field in ["dtype", "shape", "data_offsets"] {
                assert_eq!(tensor[field], expected[field], "{file}");
            }
        }
        assert_eq!(tensors["metadata"], described["metadata"], "{file}");
    }
    assert!(count > 100, "{count}");
}
