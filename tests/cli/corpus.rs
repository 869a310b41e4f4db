//! Every corpus file through every verb that reads files.

use std::collections::BTreeMap;

use serde_json::{json, Value};

use crate::run::{good, json, run, text};
use crate::support::corpus::{self, Case, Reason};
use crate::support::temp::Temp;

fn path(case: &Case) -> String {
    format!("tests/corpus/{}", case.file.as_ref().unwrap())
}

fn accepted() -> Vec<Case> {
    corpus::files().into_iter().filter(|case| case.default == "accept").collect()
}

fn code_of(verdict: &str) -> Option<i32> {
    Some(if verdict == "accept" { 0 } else { 1 })
}

#[test]
fn verify_gives_each_file_its_verdict_and_error() {
    let cases = corpus::files();
    for strict in [false, true] {
        let mut arguments = vec!["verify".to_owned(), "--json".to_owned()];
        arguments.extend(strict.then(|| "--strict".to_owned()));
        arguments.extend(cases.iter().map(path));
        let run = run(&arguments);
        assert_eq!((run.code, &*run.stderr), (Some(1), ""));
        let printed = String::from_utf8(run.stdout).unwrap();
        let lines: Vec<Value> =
            printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), cases.len());
        for (case, line) in cases.iter().zip(&lines) {
            let verdict = if strict { &case.strict } else { &case.default };
            assert_eq!(line["file"], path(case));
            assert_eq!(line["ok"], json!(verdict == "accept"), "{}", case.id);
            let reason: Option<Reason> =
                case.errors.as_ref().and_then(|errors| errors[usize::from(strict)].clone());
            let error = &line["error"];
            assert_eq!(error.is_null(), reason.is_none(), "{}", case.id);
            let Some((kind, byte)) = reason else { continue };
            assert_eq!(
                (&error["kind"], &error["byte"]),
                (&json!(kind), &json!(byte)),
                "{}",
                case.id
            );
            assert!(error["message"].as_str().unwrap().len() > 10);
            assert!(error["tensor"].is_null() || error["tensor"].is_string());
            assert_eq!(line.as_object().unwrap().len(), 3);
        }
    }
}

#[test]
fn verify_has_an_exit_code_and_one_error_line() {
    for case in corpus::files() {
        let run = run(&["verify", &path(&case)]);
        assert_eq!(run.code, code_of(&case.default), "{}", case.id);
        if case.default == "accept" {
            assert_eq!(run.stderr, "", "{}", case.id);
            assert!(run.stdout.starts_with(path(&case).as_bytes()));
        } else {
            let begin = format!("safetensor: {}: ", path(&case));
            assert!(run.error().starts_with(&begin), "{}", run.stderr);
            assert!(run.error()[begin.len()..].chars().all(|c| !c.is_control()));
            assert!(run.stdout.is_empty());
        }
    }
}

#[test]
fn errors_name_the_tensor_at_fault() {
    let name = |file: &str| {
        let run = run(&["verify", "--json", &format!("tests/corpus/{file}.safetensors")]);
        serde_json::from_slice::<Value>(&run.stdout).unwrap()["error"]["tensor"].clone()
    };
    assert_eq!(name("dup-tensor-identical"), json!("t"));
    assert_eq!(name("enc-newline-name-in-error"), json!("a\nb"));
    assert_eq!(name("len-empty-file"), Value::Null);
}

#[test]
fn tensors_json_matches_the_manifest() {
    let mut count = 0;
    for case in accepted() {
        let view = case.view.as_ref().unwrap();
        let printed = json(&["tensors", "--json", &path(&case)]);
        let bytes = case.bytes();
        assert_eq!(printed["file"], path(&case));
        assert_eq!(printed["data_start"], view.data_start, "{}", case.id);
        assert_eq!(printed["header_len"], view.data_start - 8, "{}", case.id);
        assert_eq!(printed["data_len"], bytes.len() as u64 - view.data_start, "{}", case.id);
        assert_eq!(printed["metadata"], json!(view.metadata), "{}", case.id);
        let tensors = printed["tensors"].as_array().unwrap();
        assert_eq!(tensors.len(), view.count, "{}", case.id);
        let begins: Vec<u64> =
            tensors.iter().map(|tensor| tensor["data_offsets"][0].as_u64().unwrap()).collect();
        assert!(begins.is_sorted(), "{}", case.id);
        let by_name: BTreeMap<&str, &Value> =
            tensors.iter().map(|tensor| (tensor["name"].as_str().unwrap(), tensor)).collect();
        assert_eq!(by_name.len(), view.count);
        for (name, (dtype, shape, data_offsets, _)) in view.tensors.iter().flatten() {
            let zero = shape.contains(&0);
            let elements = if zero { 0 } else { shape.iter().product::<u64>() };
            let expected = json!({
                "name": name, "dtype": dtype, "shape": shape, "data_offsets": data_offsets,
                "elements": elements,
            });
            assert_eq!(*by_name[&**name], expected, "{}", case.id);
        }
        count += 1;
    }
    assert_eq!(count, 74);
}

#[test]
fn other_verbs_work_on_every_accepted_file() {
    for case in accepted() {
        let view = case.view.as_ref().unwrap();
        let path = path(&case);
        let info = json(&["info", "--json", &path]);
        assert_eq!(info["tensors"], view.count, "{}", case.id);
        assert_eq!(info["metadata"], json!(view.metadata), "{}", case.id);
        let hash = json(&["hash", "--json", &path]);
        assert_eq!(hash["tensors"].as_array().unwrap().len(), view.count);
        let stats = json(&["stats", "--json", &path]);
        assert_eq!(stats["tensors"].as_array().unwrap().len(), view.count, "{}", case.id);
        let same = json(&["diff", "--json", &path, &path]);
        assert_eq!((&same["same"], &same["equal"]), (&json!(true), &json!(view.count)));
        for verb in ["info", "tensors", "stats", "hash"] {
            let printed = text(&[verb, &path]);
            let is_safe = |c: char| matches!(c, '\n' | '\t') || !c.is_control();
            assert!(printed.chars().all(is_safe), "{} {verb}: {printed:?}", case.id);
            let hidden = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'];
            assert!(!printed.contains(hidden), "{} {verb}", case.id);
        }
        assert_eq!(text(&["tensors", &path]).lines().count(), view.count, "{}", case.id);
    }
}

#[test]
fn every_verb_rejects_invalid_files() {
    for case in corpus::files().iter().filter(|case| case.default == "reject").step_by(7) {
        let path = path(case);
        for verb in ["info", "tensors", "stats", "hash"] {
            let run = run(&[verb, &path]);
            assert_eq!((run.code, run.stdout.len()), (Some(1), 0), "{} {verb}", case.id);
            assert!(run.error().starts_with(&format!("safetensor: {path}: ")));
        }
    }
}

#[test]
fn export_writes_stored_bytes() {
    let mut count = 0;
    for case in accepted() {
        let tensors = case.view.as_ref().unwrap().tensors.iter().flatten();
        // A NUL cannot be passed as an argument.
        for (name, (_, _, _, data)) in tensors.filter(|(name, _)| !name.contains('\0')) {
            let path = path(&case);
            let bytes = good(&["export", "--format", "raw", "-o", "-", "--", &path, name]);
            let found: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, *data, "{}", case.id);
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn export_writes_values() {
    let temp = Temp::new();
    let mut count = 0;
    for case in corpus::files() {
        for (name, values) in case.values.iter().flatten() {
            let out = temp.join("out.f32");
            let out = out.to_str().unwrap();
            let path = path(&case);
            good(&["export", &path, name, "-o", out]);
            let bytes = std::fs::read(out).unwrap();
            assert_eq!(bytes.len(), values.len() * 4);
            for (quad, expected) in bytes.chunks_exact(4).zip(values) {
                let value = f32::from_le_bytes(quad.try_into().unwrap());
                let right = match expected.as_str() {
                    "nan" => value.is_nan() && value.is_sign_positive(),
                    "-nan" => value.is_nan() && value.is_sign_negative(),
                    bits => {
                        let bits = u32::from_str_radix(bits, 16).unwrap();
                        let quiet = value.is_nan() && value.to_bits() == bits | 0x0040_0000;
                        value.to_bits() == bits || quiet
                    }
                };
                assert!(right, "{} {name}: {value}, expected {expected}", case.id);
            }
            count += 1;
        }
    }
    assert_eq!(count, 18);
}

#[test]
fn sharded_models_get_their_verdicts() {
    let cases = corpus::cases();
    let cases: Vec<&Case> = cases.iter().filter(|case| case.kind == "index").collect();
    assert_eq!(cases.len(), 26);
    for case in cases {
        let index = path(case);
        let folder = index.rsplit_once('/').unwrap().0;
        for (verdict, strict) in [(&case.default, false), (&case.strict, true)] {
            for file in [&index, folder] {
                let mut arguments = vec!["verify", "--json", file];
                arguments.extend(strict.then_some("--strict"));
                let run = run(&arguments);
                assert_eq!(run.code, code_of(verdict), "{} {strict}: {run:?}", case.id);
                let line: Value = serde_json::from_slice(&run.stdout).unwrap();
                assert_eq!(line["ok"], json!(verdict == "accept"), "{}", case.id);
                assert_eq!(line["error"].is_null(), verdict == "accept");
                arguments.remove(1);
                let run = crate::run::run(&arguments);
                assert_eq!(run.code, code_of(verdict));
                assert_eq!(run.stderr.is_empty(), verdict == "accept", "{run:?}");
            }
        }
        if case.default == "accept" {
            let tensors = json(&["tensors", "--json", &index]);
            assert!(tensors["shards"].is_array() && tensors.get("metadata").is_none());
            for tensor in tensors["tensors"].as_array().unwrap() {
                let shard = &tensor["shard"];
                assert!(tensors["shards"].as_array().unwrap().iter().any(|s| s["file"] == *shard));
            }
            let info = json(&["info", "--json", folder]);
            assert_eq!(info["tensors"], tensors["tensors"].as_array().unwrap().len());
            for verb in ["info", "tensors", "stats", "hash"] {
                good(&[verb, folder]);
            }
        }
    }
}

#[test]
fn verify_prints_all_findings() {
    let findings = |arguments: &[&str]| {
        let run = run(arguments);
        let line: Value = serde_json::from_slice(&run.stdout).unwrap();
        let findings = line["findings"].as_array().unwrap().clone();
        let short = findings
            .iter()
            .map(|f| (f["kind"].as_str().unwrap().to_owned(), f["refused"].as_bool().unwrap()));
        (run.code, short.collect::<Vec<_>>())
    };
    let extra = "tests/corpus/index-extra-tensor";
    let one = |kind: &str, refused| vec![(kind.to_owned(), refused)];
    assert_eq!(findings(&["verify", "--json", extra]), (Some(0), one("unlisted", false)));
    assert_eq!(
        findings(&["verify", "--json", "--strict", extra]),
        (Some(1), one("unlisted", true))
    );
    let stray = "tests/corpus/index-stray-file";
    assert_eq!(findings(&["verify", "--json", stray]), (Some(0), one("stray", false)));
    let missing = "tests/corpus/index-missing-shard";
    assert_eq!(findings(&["verify", "--json", missing]), (Some(1), one("not_found", true)));
}

/// A listed tensor that no shard contains is an error.
#[test]
fn incomplete_models_are_errors() {
    for verb in ["info", "tensors", "stats", "hash"] {
        let run = run(&[verb, "tests/corpus/index-tensor-not-in-shard"]);
        assert_eq!(run.code, Some(1), "{verb}");
        assert!(run
            .error()
            .contains("the index lists 3 tensors, but the shards have only 2 of them"));
    }
}

/// Reading a tensor needs only the shard that contains it.
#[test]
fn tensors_are_readable_if_other_shards_are_missing() {
    let model = "tests/corpus/index-missing-shard";
    let listed = json(&["tensors", "--json", &format!("{model}/model-00001-of-00002.safetensors")]);
    let name = listed["tensors"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(good(&["export", model, &name, "-o", "-"]).len(), 4);
    good(&["stats", model, &name]);
    for verb in ["stats", "info", "tensors", "hash"] {
        let run = run(&[verb, model]);
        assert_eq!((run.code, run.stdout.len()), (Some(2), 0), "{verb}");
        assert!(run.error().contains("model-00002-of-00002.safetensors: cannot be opened"));
    }
    let run = run(&["export", model, "nothing", "-o", "-"]);
    assert_eq!(run.code, Some(1));
}
