//! Promise: a sharded model consists of the tensors that its index lists, no index can name a file
//! outside its folder, and every difference between index and shards is reported.

#![cfg(feature = "std")]
#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::fs;
use std::path::Path;

use quickcheck::{quickcheck, Arbitrary, Gen};
use safetensors_zero::{
    ErrorKind, FileErrorKind, Finding, FindingKind, Index, IndexLimits, Shards, ShardsOptions,
    TotalSize, WeightMap,
};
use support::corpus::{self, Case};
use support::file::file;
use support::index;
use support::rng::Rng;
use support::temp::Temp;

/// Returns the names of the findings, or the reason why the model is refused.
fn verdict(path: &Path, options: &ShardsOptions) -> Result<Vec<&'static str>, String> {
    let model = Shards::open_with(path, options)
        .map_err(|error| error.invalid().expect("an invalid index").kind().name().to_owned())?;
    let findings = model.verify();
    for finding in &findings {
        assert!(!finding.to_string().is_empty());
    }
    let name = |finding: &Finding| match &finding.kind {
        FindingKind::Shard(error) => match (error.kind(), error.invalid()) {
            (_, Some(error)) => error.kind().name().to_owned(),
            (FileErrorKind::Open(error), _) => format!("{:?}", error.kind()),
            (kind, _) => format!("{kind:?}"),
        },
        kind => kind.name().to_owned(),
    };
    match findings.iter().find(|finding| finding.refused) {
        Some(finding) => Err(name(finding)),
        None => Ok(findings.iter().map(|finding| finding.kind.name()).collect()),
    }
}

/// The names of the findings, or the reason why the model is refused.
type Verdict = Result<&'static [&'static str], &'static str>;

/// The corpus cases with the expected verdicts under default and strict options.
const CASES: [(&str, Verdict, Verdict); 27] = [
    ("index-good", Ok(&[]), Ok(&[])),
    ("index-missing-shard", Err("NotFound"), Err("NotFound")),
    ("index-tensor-not-in-shard", Err("not_in_shard"), Err("not_in_shard")),
    ("index-extra-tensor", Ok(&["unlisted"]), Err("unlisted")),
    ("index-duplicate-across-shards", Ok(&["elsewhere_too"]), Err("elsewhere_too")),
    ("index-duplicate-key-escaped", Err("duplicate_name"), Err("duplicate_name")),
    ("index-traversal", Err("shard_name"), Err("shard_name")),
    ("index-absolute", Err("shard_name"), Err("shard_name")),
    ("index-unc", Err("shard_name"), Err("shard_name")),
    ("index-subdir", Ok(&[]), Err("shard_name")),
    ("index-dot-name", Err("shard_name"), Err("shard_name")),
    ("index-nul-name", Err("shard_name"), Err("shard_name")),
    ("index-wrong-extension", Err("shard_name"), Err("shard_name")),
    ("index-lfs-shard", Err("foreign"), Err("foreign")),
    ("index-truncated-shard", Err("data_truncated"), Err("data_truncated")),
    ("index-no-weight-map", Err("missing_key"), Err("missing_key")),
    ("index-value-not-string", Err("wrong_type"), Err("wrong_type")),
    ("index-value-list", Err("wrong_type"), Err("wrong_type")),
    ("index-total-size-small", Ok(&["total_size"]), Err("total_size")),
    ("index-total-size-huge", Ok(&["total_size_not_natural"]), Err("integer_overflow")),
    ("index-no-total-size", Ok(&[]), Ok(&[])),
    ("index-no-metadata", Ok(&[]), Ok(&[])),
    ("index-extra-keys", Ok(&[]), Ok(&[])),
    ("index-stray-file", Ok(&["stray"]), Ok(&["stray"])),
    ("index-truncated-json", Err("unexpected_end"), Err("unexpected_end")),
    ("index-shard-is-dir", Err("NotAFile(Folder)"), Err("NotAFile(Folder)")),
    ("index-symlink-inside", Ok(&[]), Ok(&[])),
];

#[test]
fn corpus_indexes_get_the_expected_verdicts() {
    let cases = corpus::cases();
    let is_index = |case: &&Case| case.id.starts_with("index-");
    let mut count = 0;
    for case in cases.iter().filter(is_index) {
        let (_, default, strict) = CASES
            .iter()
            .find(|(id, ..)| *id == case.id)
            .unwrap_or_else(|| panic!("{} has no verdict", case.id));
        let temp = Temp::new();
        let path = match &case.file {
            Some(file) => corpus::folder().join(file),
            None if cfg!(unix) => hub_cache(&temp),
            None => continue,
        };
        for (options, expected, accepted) in [
            (ShardsOptions::DEFAULT, default, &case.default),
            (ShardsOptions::STRICT, strict, &case.strict),
        ] {
            let found = verdict(&path, &options);
            let expected = expected.map(<[_]>::to_vec).map_err(|reason: &str| reason.to_owned());
            assert_eq!(found, expected, "{}", case.id);
            assert_eq!(found.is_ok(), accepted == "accept", "{}", case.id);
            if found.is_ok() {
                let b = if case.id == "index-extra-tensor" { 1.0 } else { 2.0 };
                check_tensors(&Shards::open_with(&path, &options).unwrap(), b);
                // Opening the folder finds the same index.
                let folder = Shards::open_with(path.parent().unwrap(), &options).unwrap();
                assert_eq!(folder.index_path(), Some(path.as_path()));
            }
        }
        count += 1;
    }
    assert_eq!(count, if cfg!(unix) { 27 } else { 26 });
}

/// Checks a model of two tensors: `a` is 1, and `b` is the given value.
fn check_tensors(model: &Shards, b: f32) {
    assert_eq!(model.len(), 2);
    for (name, value) in [("a", 1.0), ("b", b)] {
        let mut out = [0.0];
        model.tensor(name).unwrap().dequant_into(&mut out).unwrap();
        assert_eq!(out, [value], "{name}");
    }
    let names: Vec<_> = model.tensors().map(|t| t.unwrap().name().to_string()).collect();
    assert_eq!(names, ["a", "b"]);
    let error = model.tensor("c").unwrap_err();
    assert_eq!(error.invalid().map(|error| error.kind()), Some(ErrorKind::TensorNotFound));
    assert_eq!(Some(error.path()), model.index_path());
}

/// Creates a model laid out like a Hugging Face cache: index and shards are links to blobs. Returns
/// the index's path.
#[cfg(unix)]
fn hub_cache(temp: &Temp) -> std::path::PathBuf {
    let good = corpus::folder().join("index-good");
    let snapshot = temp.join("snapshots/r1");
    fs::create_dir_all(&snapshot).unwrap();
    for (blob, entry) in fs::read_dir(good).unwrap().map(Result::unwrap).enumerate() {
        let blob = format!("blobs/{blob:040x}");
        temp.write(&blob, fs::read(entry.path()).unwrap());
        let link = snapshot.join(entry.file_name());
        std::os::unix::fs::symlink(Path::new("../..").join(blob), link).unwrap();
    }
    snapshot.join("model.safetensors.index.json")
}

#[cfg(not(unix))]
fn hub_cache(_: &Temp) -> std::path::PathBuf {
    unreachable!()
}

/// A shard of F32 scalars with these names and values.
fn shard(tensors: &[(&str, f32)]) -> Vec<u8> {
    let mut header = String::from("{");
    let mut data = Vec::new();
    for (name, value) in tensors {
        let (begin, end) = (data.len(), data.len() + 4);
        let comma = if begin == 0 { "" } else { "," };
        header += &format!(
            r#"{comma}"{name}":{{"dtype":"F32","shape":[],"data_offsets":[{begin},{end}]}}"#
        );
        data.extend(value.to_le_bytes());
    }
    file(header + "}", &data)
}

/// Creates a model of `count` shards with one tensor each, `t0`, `t1` and so on. Returns the path
/// of the index.
fn many_shards(temp: &Temp, count: usize) -> std::path::PathBuf {
    let mut map = Vec::new();
    for i in 0..count {
        let (name, tensor) = (format!("m-{i}.safetensors"), format!("t{i}"));
        temp.write(&name, shard(&[(&tensor, i as f32)]));
        map.push(format!(r#""{tensor}":"{name}""#));
    }
    let index = format!(
        r#"{{"metadata":{{"total_size":{}}},"weight_map":{{{}}}}}"#,
        count * 4,
        map.join(",")
    );
    temp.write("model.safetensors.index.json", index)
}

#[test]
#[cfg(unix)]
fn open_files_are_limited() {
    let temp = Temp::new();
    let index = many_shards(&temp, 40);
    let open_files = || fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count());
    let mut options = ShardsOptions::DEFAULT;
    options.open_files = 3;
    let model = Shards::open_with(&index, &options).unwrap();
    let before = open_files();
    model.open_all().unwrap();
    for round in 0..3 {
        for i in 0..40 {
            let mut out = [0.0];
            let i = (i * 7 + round) % 40;
            model.tensor(&format!("t{i}")).unwrap().dequant_into(&mut out).unwrap();
            assert_eq!(out, [i as f32]);
        }
    }
    // Other tests open files too.
    assert!(open_files() < before + 35);
    assert_eq!(model.tensors().count(), 40);
    assert!(model.verify().is_empty());

    // Reopening a shard that was replaced is an error.
    let path = model.path(5).to_path_buf();
    for i in 10..20 {
        model.tensor(&format!("t{i}")).unwrap();
    }
    temp.write("other", shard(&[("t5", 55.0)]));
    fs::rename(temp.join("other"), &path).unwrap();
    let error = model.tensor("t5").unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::Replaced), "{error}");
    assert_eq!(error.path(), path);
}

#[test]
fn shards_are_opened_on_demand() {
    let temp = Temp::new();
    let index = many_shards(&temp, 3);
    fs::remove_file(temp.join("m-1.safetensors")).unwrap();
    let model = Shards::open(&index).unwrap();
    let mut out = [0.0];
    model.tensor("t2").unwrap().dequant_into(&mut out).unwrap();
    assert_eq!(out, [2.0]);
    let missing = |error: safetensors_zero::FileError| {
        assert!(matches!(error.kind(), FileErrorKind::Open(_)), "{error}");
        assert_eq!(error.path(), temp.join("m-1.safetensors"));
    };
    missing(model.tensor("t1").unwrap_err());
    missing(model.open_all().unwrap_err());
    // A single error for the missing shard, and the other tensors.
    let tensors: Vec<_> = model.tensors().collect();
    let found: Vec<_> = tensors.iter().map(Result::is_ok).collect();
    assert_eq!(found, [true, false, true]);
    // A shard that appears later is found.
    temp.write("m-1.safetensors", shard(&[("t1", 1.0)]));
    model.tensor("t1").unwrap().dequant_into(&mut out).unwrap();
    assert_eq!(out, [1.0]);
}

#[test]
fn verify_reports_every_difference() {
    let temp = Temp::new();
    temp.write("a.safetensors", shard(&[("one", 1.0), ("extra", 5.0), ("two", 7.0)]));
    temp.write("b.safetensors", shard(&[("two", 2.0)]));
    temp.write("c.safetensors", b"version https://git-lfs.github.com/spec/v1\n");
    temp.write("stray.safetensors", shard(&[]));
    let index = temp.write(
        "model.safetensors.index.json",
        r#"{"metadata":{"total_size":99},"weight_map":{"one":"a.safetensors","two":"b.safetensors",
        "gone":"b.safetensors","three":"c.safetensors","four":"d.safetensors"}}"#,
    );
    let model = Shards::open(&index).unwrap();
    let findings = model.verify();
    let reported: Vec<(&str, &str, Option<&str>, bool)> = findings
        .iter()
        .map(|f| {
            let file = f.path.file_name().unwrap().to_str().unwrap();
            (f.kind.name(), file, f.tensor.as_deref(), f.refused)
        })
        .collect();
    let expected = [
        ("unlisted", "a.safetensors", Some("extra"), false),
        ("elsewhere_too", "a.safetensors", Some("two"), false),
        ("not_in_shard", "b.safetensors", Some("gone"), true),
        ("shard", "c.safetensors", None, true),
        ("shard", "d.safetensors", None, true),
        ("stray", "stray.safetensors", None, false),
    ];
    assert_eq!(reported, expected);
    let sentences: Vec<_> = findings.iter().map(|f| f.sentence().to_string()).collect();
    assert_eq!(sentences[0], "tensor \"extra\": the index does not list it");
    assert!(sentences[3].contains("a Git LFS pointer"), "{}", sentences[3]);
    let error = model.tensor("gone").unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::NotInShard) && error.is_invalid(), "{error}");

    // `verify_each` stops when the callback breaks.
    let mut count = 0;
    let stopped = model.verify_each(|_| {
        count += 1;
        std::ops::ControlFlow::Break("enough")
    });
    assert_eq!((stopped, count), (std::ops::ControlFlow::Break("enough"), 1));
}

#[test]
fn opening_a_folder_finds_its_model() {
    let one = shard(&[("a", 1.0)]);
    let index = r#"{"weight_map":{"a":"x.safetensors"}}"#;
    let temp = Temp::new();
    let many = |error: safetensors_zero::FileError| match error.kind() {
        FileErrorKind::ManyModels { names } => names.clone(),
        _ => panic!("{error}"),
    };
    let file_of = |model: &Shards| model.path(0).file_name().unwrap().to_str().unwrap().to_owned();
    let error = Shards::open(temp.path()).unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::NoModel), "{error}");
    temp.write("readme.md", "");
    temp.write("pytorch_model.bin.index.json", "{}");
    temp.write("x.safetensors", &one);
    let model = Shards::open(temp.path()).unwrap();
    assert_eq!((file_of(&model).as_str(), model.index().is_none()), ("x.safetensors", true));
    assert_eq!((model.shards(), model.len(), model.verify().len()), (1, 1, 0));
    temp.write("y.safetensors", &one);
    assert_eq!(many(Shards::open(temp.path()).unwrap_err()), ["x.safetensors", "y.safetensors"]);
    temp.write("model.safetensors", &one);
    assert_eq!(file_of(&Shards::open(temp.path()).unwrap()), "model.safetensors");
    temp.write("b.safetensors.index.json", index);
    let model = Shards::open(temp.path()).unwrap();
    assert_eq!(model.index_path(), Some(temp.join("b.safetensors.index.json").as_path()));
    assert_eq!(file_of(&model), "x.safetensors");
    temp.write("a.safetensors.index.json", index);
    let names = ["a.safetensors.index.json", "b.safetensors.index.json"];
    assert_eq!(many(Shards::open(temp.path()).unwrap_err()), names);
    temp.write("model.safetensors.index.json", index);
    let model = Shards::open(temp.path()).unwrap();
    assert_eq!(model.index_path(), Some(temp.join("model.safetensors.index.json").as_path()));
}

#[test]
fn opening_an_invalid_single_file_is_an_error() {
    let error = Shards::open(corpus::folder().join("alien-gzip.safetensors")).unwrap_err();
    assert!(matches!(error.invalid().unwrap().kind(), ErrorKind::Foreign { .. }));
    let temp = Temp::new();
    let error = Shards::open(temp.join("missing")).unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::Open(_)));
}

#[test]
fn index_limits_are_exact() {
    let text = r#"{"x":[[0]],"metadata":{"total_size":7},"weight_map":{"ab":"abc.safetensors","c":"d.safetensors"}}"#;
    let len = text.len() as u64;
    type Change = fn(&mut IndexLimits, i32);
    let d = IndexLimits::DEFAULT;
    let bounds: [(Change, ErrorKind); 5] = [
        (|l, less| l.bytes = (97 - less) as u64, ErrorKind::IndexTooLarge { len, limit: len - 1 }),
        (|l, less| l.depth = (3 - less) as u8, ErrorKind::TooDeep { limit: 2 }),
        (|l, less| l.tensors = (2 - less) as u32, ErrorKind::TooManyTensors { limit: 1 }),
        (
            |l, less| l.name_bytes = (2 - less) as u32,
            ErrorKind::StringTooLong { what: safetensors_zero::StringKind::Name, len: 2, limit: 1 },
        ),
        (
            |l, less| l.shard_name_bytes = (15 - less) as u32,
            ErrorKind::StringTooLong {
                what: safetensors_zero::StringKind::ShardName,
                len: 15,
                limit: 14,
            },
        ),
    ];
    assert_eq!(len, 97);
    for (change, kind) in bounds {
        let mut limits = d;
        change(&mut limits, 0);
        assert_eq!(Index::parse(text.as_bytes(), &limits).unwrap().len(), 2);
        WeightMap::parse(text.into(), &limits).unwrap();
        change(&mut limits, 1);
        assert_eq!(Index::parse(text.as_bytes(), &limits).unwrap_err().kind(), kind);
        assert_eq!(WeightMap::parse(text.into(), &limits).unwrap_err().kind(), kind);
    }
    let mut limits = d;
    limits.shards = 2;
    WeightMap::parse(text.into(), &limits).unwrap();
    limits.shards = 1;
    let kind = ErrorKind::TooManyShards { limit: 1 };
    assert_eq!(WeightMap::parse(text.into(), &limits).unwrap_err().kind(), kind);
    let mut limits = d;
    limits.string_bytes = 10;
    Index::parse(text.as_bytes(), &limits).unwrap();
    limits.string_bytes = 9;
    assert!(Index::parse(text.as_bytes(), &limits).is_err());

    let strict = |text: &str| Index::parse(text.as_bytes(), &IndexLimits::STRICT).map(|_| ());
    let lax = |text: &str| Index::parse(text.as_bytes(), &d).map(|index| index.total_size());
    for (text, total_size) in [
        (r#"{"weight_map":{}}"#, TotalSize::Absent),
        (r#"{"metadata":null,"weight_map":{"a":"b.safetensors"}}"#, TotalSize::Absent),
        (r#"{"metadata":{"total_size":"7"},"weight_map":{"a":"b.safetensors"}}"#, TotalSize::Other),
        (r#"{"metadata":{"total_size":7.0},"weight_map":{"a":"b.safetensors"}}"#, TotalSize::Other),
    ] {
        assert_eq!(lax(text), Ok(total_size), "{text}");
        assert!(strict(text).is_err(), "{text}");
    }
    assert_eq!(lax(text), Ok(TotalSize::Bytes(7)));
    for text in [
        r#"{"metadata":[],"weight_map":{}}"#,
        r#"{"metadata":{},"metadata":{},"weight_map":{}}"#,
        r#"{"metadata":{"total_size":1,"total_size":1},"weight_map":{}}"#,
        r#"{"weight_map":{},"weight_map":{}}"#,
        r#"{"weight_map":[]}"#,
        r#"{"weight_map":null}"#,
        "",
        "[]",
        r#"{"weight_map":{}} x"#,
    ] {
        assert!(lax(text).is_err(), "{text}");
    }
}

#[test]
fn index_errors_have_positions_and_names() {
    let text = br#"{"weight_map":{"a\u0062":"../x.safetensors"}}"#;
    let error = Index::parse(text, &IndexLimits::DEFAULT).unwrap_err();
    assert_eq!((error.byte(), error.tensor()), (Some(26), Some(16..23)));
    assert_eq!(
        error.in_file(text).to_string(),
        r#"tensor "ab": the shard name leads to the parent folder: "../x.safetensors" (byte 26)"#
    );
    let text = br#"{"weight_map":{"a":"x.safetensors","\u0061":"x.safetensors"}}"#;
    let error = WeightMap::parse(text.to_vec(), &IndexLimits::DEFAULT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateName { first: 16 });
    assert_eq!(error.byte(), Some(36));
    let index = Index::parse(text, &IndexLimits::DEFAULT).unwrap();
    assert_eq!(index.shard_of("a").unwrap_err(), error);

    let temp = Temp::new();
    let path = temp.write("model.safetensors.index.json", text);
    let error = Shards::open(&path).unwrap_err();
    let expected = format!(
        "{}: tensor \"a\": duplicate name, first used at byte 16 (byte 36)",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    let path =
        temp.write("other.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    let error = Shards::open(&path).unwrap_err();
    assert!(error.to_string().contains("not a shard index: it looks like a Git LFS pointer"));
}

/// The text of an index, valid or with one byte changed.
#[derive(Debug, Clone)]
struct Text(String);

impl Arbitrary for Text {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut rng = Rng(u64::arbitrary(g));
        let gap =
            |rng: &mut Rng| if rng.once_in(4) { *rng.choose(&[" ", "\n\t", "\r\n  "]) } else { "" };
        let name = |rng: &mut Rng| {
            (*rng.choose(&[
                "a",
                "b.c",
                "é",
                "\\u0061",
                "a\\\"b",
                "",
                "\\ud83d\\ude00",
                "weight_map",
            ]))
            .to_owned()
                + &rng.below(40).to_string()
        };
        let shard = |rng: &mut Rng| {
            if rng.once_in(30) {
                *rng.choose(&["../x.safetensors", "x.bin", "", "a\\\\b.safetensors"])
            } else {
                *rng.choose(&[
                    "x.safetensors",
                    "./x.safetensors",
                    "s/y.safetensors",
                    "\\u007a.safetensors",
                ])
            }
        };
        let pairs: Vec<String> = (0..rng.below(12))
            .map(|_| {
                format!(
                    "{}\"{}\":{}\"{}\"",
                    gap(&mut rng),
                    name(&mut rng),
                    gap(&mut rng),
                    shard(&mut rng)
                )
            })
            .collect();
        let mut members = vec![format!("\"weight_map\":{}{{{}}}", gap(&mut rng), pairs.join(","))];
        if rng.once_in(2) {
            let size = *rng.choose(&["7", "\"7\"", "-1", "18446744073709551616", "1e3", "[1]"]);
            members.push(format!("\"metadata\":{{\"x\":null,\"total_size\":{size}}}"));
        }
        if rng.once_in(3) {
            members.push("\"other\":{\"weight_map\":[1,{}]}".to_owned());
        }
        rng.shuffle(&mut members);
        let mut text = format!("{{{}}}{}", members.join(","), gap(&mut rng)).into_bytes();
        if rng.once_in(3) {
            let at = rng.below(text.len());
            text[at] = *rng.choose(b"{}[]\",:\\a0 ");
        }
        Text(String::from_utf8_lossy(&text).into_owned())
    }
}

quickcheck! {
    fn indexes_read_the_same_as_with_a_json_parser(text: Text) -> bool {
        index::check(text.0.as_bytes());
        true
    }
}
