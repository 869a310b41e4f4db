//! The verbs that write models: the result has the same content in the requested form.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::run::{command, good, json, run, text};
use crate::support::file::{file, u8_entry};
use crate::support::temp::Temp;

const ANIMALS: &str = "examples/animals.safetensors";
const MODEL: &str = "tests/corpus/index-good";

/// The digest of a model's content, independent of its layout.
fn content(path: &Path) -> String {
    text(&["hash".as_ref(), path.as_os_str()]).lines().last().unwrap().to_owned()
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn meta_prints_metadata() {
    assert_eq!(
        text(&["meta", ANIMALS]),
        "words\tcat dog horse sparrow eagle trout shark oak rose moss\n"
    );
    assert_eq!(text(&["meta", ANIMALS, "words"]).split(' ').count(), 10);
    assert_eq!(json(&["meta", "--json", ANIMALS])["words"].as_str().unwrap().len(), 53);
    assert!(json(&["meta", "--json", ANIMALS, "words"]).is_string());
    let absent = run(&["meta", ANIMALS, "word"]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.error().ends_with("the metadata has no key \"word\""));
    let sharded = run(&["meta", MODEL]);
    assert_eq!((sharded.code, sharded.stdout.len()), (Some(2), 0));

    let temp = Temp::new();
    let header = r#"{"__metadata__":{"\u001b[31m":"a\nb\u202e"}}"#;
    let path = temp.write("model.safetensors", file(header, &[]));
    let path = path.to_str().unwrap();
    assert_eq!(text(&["meta", path]), "\\u{1b}[31m\ta\\nb\\u{202e}\n");
    assert_eq!(json(&["meta", "--json", path]), json!({"\u{1b}[31m": "a\nb\u{202e}"}));
    assert_eq!(text(&["meta", "--json", path, "\u{1b}[31m"]), "\"a\\nb\u{202e}\"\n");
    let none = temp.write("none.safetensors", file("{}", &[]));
    assert_eq!(text(&["meta", none.to_str().unwrap()]), "");
    assert!(json(&["meta", "--json", none.to_str().unwrap()]).is_null());
}

#[test]
fn meta_edits_metadata() {
    let temp = Temp::new();
    let path = temp.write("model.safetensors", fs::read(ANIMALS).unwrap());
    let path_text = path.to_str().unwrap();
    let before = content(&path);
    let output = text(&["meta", path_text, "--set", "licence=MIT=x", "--remove", "words"]);
    assert_eq!(output, format!("{path_text}: changed in place\n"));
    assert_eq!(json(&["meta", "--json", path_text]), json!({"licence": "MIT=x"}));
    let output = text(&["meta", path_text, "--set", "licence=MIT=x"]);
    assert_eq!(output, format!("{path_text}: already up to date\n"));
    let long = format!("long={}", "v".repeat(5000));
    assert!(text(&["meta", path_text, "--set", &long, "--set", "=empty"]).contains("a new file"));
    let keys = json(&["meta", "--json", path_text]);
    assert!(keys.as_object().unwrap().keys().eq(["", "licence", "long"]));
    assert_eq!(content(&path), before);

    let whole = fs::read(&path).unwrap();
    let absent = run(&["meta", path_text, "--set", "a=b", "--remove", "nothing"]);
    assert_eq!(absent.code, Some(1));
    assert_eq!(run(&["meta", path_text, "--set", "a"]).code, Some(2));
    assert_eq!(run(&["meta", path_text, "key", "--set", "a=b"]).code, Some(2));
    assert!(fs::read(&path).unwrap() == whole);
    assert_eq!(entries(temp.path()), ["model.safetensors"]);
}

#[test]
fn repack_keeps_the_content() {
    let temp = Temp::new();
    let one = temp.join("one.safetensors");
    let one_text = one.to_str().unwrap();
    let before = content(Path::new(MODEL));
    good(&["repack", MODEL, one_text, "--align", "4KiB", "--order", "name"]);
    good(&["verify", "--strict", one_text]);
    let listed = json(&["tensors", "--json", one_text]);
    assert_eq!(listed["data_start"], 4096);
    let names = listed["tensors"].as_array().unwrap().iter().map(|tensor| &tensor["name"]);
    assert!(names.eq(["a", "b"]));
    assert_eq!(content(&one), before);

    // Repack onto the input itself, then into shards.
    good(&["repack", one_text, one_text]);
    assert_eq!(json(&["tensors", "--json", one_text])["data_start"].as_u64().unwrap() % 8, 0);
    let folder = temp.join("apart");
    let folder_text = folder.to_str().unwrap();
    good(&["repack", one_text, folder_text, "--max-file-size", "150"]);
    let files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    assert_eq!(entries(&folder), [&files[..], &["model.safetensors.index.json"]].concat());
    good(&["verify", "--strict", folder_text]);
    assert_eq!(content(&folder), before);

    let own = run(&["repack", folder_text, folder_text, "--max-file-size", "1K"]);
    assert_eq!(own.code, Some(2));
    assert_eq!(run(&["repack", one_text, "x", "--align", "3"]).code, Some(2));
    assert_eq!(run(&["repack", one_text, "/dev/null"]).code, Some(2));
    assert_eq!(run(&["repack", "tests/corpus/index-missing-shard", "x"]).code, Some(2));
    assert!(!Path::new("x").exists());
}

/// Every file of the model that is read, under its own name, a link's and a hard link's.
#[test]
fn no_file_of_the_model_being_read_is_overwritten() {
    let temp = Temp::new();
    let one = temp.write("one.safetensors", fs::read(ANIMALS).unwrap());
    let model = temp.join("model");
    let folder = model.to_str().unwrap();
    good(&["repack", one.to_str().unwrap(), folder, "--max-file-size", "350"]);
    let names = entries(&model);
    assert!(names.len() > 2, "{names:?}");
    let before: Vec<_> = names.iter().map(|name| fs::read(model.join(name)).unwrap()).collect();
    let tensor = "embedding.weight";
    for name in &names {
        let own = model.join(name);
        let mut targets = vec![own.clone(), model.join(".").join(name)];
        #[cfg(unix)]
        {
            let (link, hard) =
                (temp.join(format!("link-{name}")), temp.join(format!("hard-{name}")));
            std::os::unix::fs::symlink(&own, &link).unwrap();
            fs::hard_link(&own, &hard).unwrap();
            targets.extend([link, hard]);
        }
        for target in &targets {
            let target = target.to_str().unwrap();
            for arguments in [
                &["export", folder, tensor, "-o", target][..],
                &["export", folder, tensor, "--png", target],
                &["stats", folder, tensor, "--png", target],
                &["repack", folder, target],
            ] {
                let refused = run(arguments);
                assert_eq!(refused.code, Some(2), "{arguments:?}");
                let start = format!("safetensor: {target}: this is {}", own.display());
                assert!(refused.error().starts_with(&start), "{}", refused.error());
            }
        }
    }
    let after: Vec<_> = names.iter().map(|name| fs::read(model.join(name)).unwrap()).collect();
    assert!(before == after);
    assert_eq!(entries(&model), names);
    // A single file can be replaced by its own repack.
    let path = one.to_str().unwrap();
    good(&["repack", path, path, "--align", "4096"]);
    good(&["verify", path]);
}

#[test]
fn repack_names_tensors_larger_than_the_file_size() {
    let temp = Temp::new();
    let out = temp.join("model");
    let arguments = ["repack", ANIMALS, out.to_str().unwrap(), "--max-file-size", "300"];
    let noted = run(&arguments);
    assert_eq!(noted.code, Some(0));
    let sentence = "tensor \"embedding.weight\" needs a file larger than --max-file-size: 328 B";
    assert!(noted.error().contains(sentence), "{}", noted.error());
}

#[test]
fn repack_keeps_metadata_unless_shards_contradict() {
    let temp = Temp::new();
    let out = temp.join("out.safetensors");
    good(&["repack", ANIMALS, out.to_str().unwrap()]);
    let metadata = |path: &str| json(&["meta", "--json", path]);
    assert_eq!(metadata(out.to_str().unwrap()), metadata(ANIMALS));

    let shard = |at: u32, value: &str| {
        let entry = u8_entry(&format!("t{at}"), 0, 1);
        let header = format!(r#"{{"__metadata__":{{"k":"{value}"}},{entry}}}"#);
        temp.write(format!("model/{at}.safetensors"), file(header, &[7]));
    };
    let map = r#"{"weight_map":{"t1":"1.safetensors","t2":"2.safetensors"}}"#;
    let index = temp.write("model/model.safetensors.index.json", map);
    let arguments = ["repack", index.to_str().unwrap(), out.to_str().unwrap()];
    shard(1, "v");
    shard(2, "v");
    good(&arguments);
    assert_eq!(metadata(out.to_str().unwrap()), json!({"k": "v"}));
    shard(2, "w");
    let contradiction = run(&arguments);
    assert_eq!(contradiction.code, Some(1));
    assert!(contradiction.error().contains("the value of \"k\""), "{contradiction:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_repack_leaves_nothing() {
    const LEN: u64 = 5 << 30;
    let temp = Temp::new();
    let begin = file(format!("{{{}}}", u8_entry("t", 0, LEN)), &[]);
    let input = temp.write_sparse("in.safetensors", &begin, LEN + begin.len() as u64, &[7]);
    let output = temp.write("out.safetensors", b"old");
    let arguments = ["repack", input.to_str().unwrap(), output.to_str().unwrap()];
    let mut child = command(&arguments).spawn().unwrap();
    while entries(temp.path()).len() < 3 {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    let kill = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(entries(temp.path()), ["in.safetensors", "out.safetensors"]);
    assert_eq!(fs::read(&output).unwrap(), b"old");
}
