//! The program's exact output. `REWRITE_SNAPSHOTS=1 cargo test --features cli --test cli` replaces
//! the snapshots with the current output.

use std::path::Path;

use crate::run::run;

/// Runs the program and compares its output and exit code with a snapshot.
fn compare(name: &str, arguments: &[&str]) {
    let run = run(arguments);
    let printed = String::from_utf8(run.stdout).unwrap();
    let mut found = format!("$ safetensor {}\n{printed}", arguments.join(" "));
    if !run.stderr.is_empty() {
        found += &format!("--- standard error\n{}", run.stderr);
    }
    if run.code != Some(0) {
        found += &format!("--- exit code {}\n", run.code.unwrap());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("REWRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name} has changed; see the top of tests/cli/snapshots.rs");
}

const ANIMALS: &str = "examples/animals.safetensors";
const MODEL: &str = "tests/corpus/index-good";

#[test]
fn help_texts() {
    compare("help", &["--help"]);
    compare("help-short", &["-h"]);
    let verbs = [
        "info", "tensors", "verify", "stats", "export", "diff", "hash", "meta", "repack",
        "selftest",
    ];
    for verb in verbs {
        compare(&format!("help-{verb}"), &[verb, "--help"]);
    }
}

#[test]
fn typical_output() {
    compare("info", &["info", ANIMALS]);
    compare("info-json", &["info", "--json", ANIMALS]);
    compare("info-shards", &["info", MODEL]);
    compare("info-shards-json", &["info", "--json", MODEL]);
    compare("tensors", &["tensors", ANIMALS]);
    compare("tensors-json", &["tensors", "--json", ANIMALS]);
    compare("tensors-shards", &["tensors", MODEL]);
    compare("tensors-shards-json", &["tensors", "--json", MODEL]);
    compare("verify", &["verify", ANIMALS, MODEL]);
    compare("verify-json", &["verify", "--json", ANIMALS, MODEL]);
    compare("stats", &["stats", ANIMALS]);
    compare("stats-one", &["stats", ANIMALS, "embedding.weight"]);
    compare("stats-json", &["stats", "--json", "--bins", "4", ANIMALS]);
    compare("stats-colour", &["stats", "--color", "always", ANIMALS, "counts"]);
    compare("hash", &["hash", ANIMALS]);
    compare("hash-json", &["hash", "--algorithm", "blake3", "--json", ANIMALS]);
    compare("diff-same", &["diff", ANIMALS, ANIMALS]);
    compare("diff", &["diff", ANIMALS, MODEL]);
    compare("diff-json", &["diff", "--json", ANIMALS, MODEL]);
    compare("meta", &["meta", ANIMALS]);
    compare("meta-json", &["meta", "--json", ANIMALS, "words"]);
    compare("selftest", &["selftest"]);
}

#[test]
fn output_for_hostile_files() {
    compare("tensors-ansi", &["tensors", "tests/corpus/enc-ansi-name.safetensors"]);
    compare("info-ansi", &["info", "tests/corpus/enc-ansi-name.safetensors"]);
    compare("tensors-dtypes", &["tensors", "tests/corpus/dtype-all.safetensors"]);
    compare("stats-dtypes", &["stats", "tests/corpus/dtype-all.safetensors"]);
    let files = [
        "dup-tensor-identical",
        "enc-newline-name-in-error",
        "alien-lfs-pointer",
        "alien-zip-torch",
        "ws-trailing-newline",
    ];
    let files = files.map(|file| format!("tests/corpus/{file}.safetensors"));
    let mut arguments = vec!["verify", "--strict"];
    arguments.extend(files.iter().map(String::as_str));
    compare("verify-refused", &arguments);
    arguments.insert(1, "--json");
    compare("verify-refused-json", &arguments);
    compare("verify-shards", &["verify", "tests/corpus/index-missing-shard"]);
    compare("verify-shards-json", &["verify", "--json", "tests/corpus/index-missing-shard"]);
    compare("verify-note", &["verify", "tests/corpus/index-stray-file"]);
}

#[test]
fn output_for_usage_mistakes() {
    compare("mistake-no-verb", &["inspect", ANIMALS]);
    compare("mistake-option", &["tensors", "--sorted", ANIMALS]);
    compare("mistake-value", &["tensors", "--sort", "dtype", ANIMALS]);
    compare("mistake-no-file", &["verify"]);
    compare("mistake-range", &["export", ANIMALS, "counts", "-o", "-", "--range", "1-2"]);
    compare("mistake-name", &["stats", ANIMALS, "embeding.weight"]);
    compare("mistake-rows", &["export", ANIMALS, "counts", "-o", "-", "--rows", "8..11"]);
    compare("mistake-align", &["repack", ANIMALS, "out.safetensors", "--align", "12"]);
    compare("mistake-size", &["repack", ANIMALS, "out", "--max-file-size", "5 gigabytes"]);
    compare("mistake-key", &["meta", ANIMALS, "licence"]);
    compare("mistake-pair", &["meta", ANIMALS, "--set", "licence"]);
    compare("mistake-scalar", &["export", ANIMALS, "scale", "-o", "-", "--rows", "0..1"]);
}
