//! Promise: editing a file's metadata changes nothing else, doesn't move the data if the header has
//! room, and leaves the file unchanged if the edit is refused.

#![cfg(feature = "std")]
#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use quickcheck::QuickCheck;
use safetensors_zero::{
    serialize_with, Edited, ErrorKind, File, Limits, MetadataEdit, PlanOptions, SafeTensors,
    WriteErrorKind,
};
use support::file;
use support::model::{Metadata, Model};
use support::rng::Rng;
use support::temp::Temp;

type Map = BTreeMap<String, String>;

fn metadata_map(file: &[u8]) -> Option<Map> {
    let tensors = SafeTensors::deserialize(file).unwrap();
    let metadata = tensors.metadata()?;
    Some(metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
}

/// Everything in a file except its metadata: names, dtypes and shapes, and data.
fn tensors_of(file: &[u8]) -> Vec<(String, String, Vec<u8>)> {
    let tensors = SafeTensors::deserialize(file).unwrap();
    let contents = tensors.iter().map(|(name, view)| {
        (name.to_string(), format!("{} {}", view.dtype(), view.shape()), view.data().to_vec())
    });
    contents.collect()
}

#[test]
fn metadata_edits_change_nothing_else() {
    fn property(model: Model, seed: u64) -> bool {
        let temp = Temp::new();
        let (old, _) = model.write();
        let path = temp.write("model.safetensors", &old);
        let mut rng = Rng(seed);
        let mut expected = metadata_map(&old).unwrap_or_default();
        let mut edit = MetadataEdit::new();
        if rng.once_in(6) {
            edit.clear();
            expected.clear();
        }
        for _ in 0..rng.below(4) {
            let keys: Vec<String> = expected.keys().cloned().collect();
            if keys.is_empty() || rng.once_in(2) {
                let (key, value) = (format!("k\u{1}{}", rng.below(5)), "\"v".repeat(rng.below(30)));
                edit.set(&key, &value);
                expected.insert(key, value);
            } else {
                let key = rng.choose(&keys);
                edit.remove(key);
                expected.remove(key);
            }
        }
        let edited = edit.apply(&path).unwrap();
        let new = std::fs::read(&path).unwrap();
        assert_eq!(metadata_map(&new).unwrap_or_default(), expected);
        assert_eq!(tensors_of(&new), tensors_of(&old));
        let start = |file: &[u8]| 8 + u64::from_le_bytes(*file.first_chunk().unwrap());
        match edited {
            Edited::Unchanged => assert!(new == old),
            Edited::InPlace => assert_eq!(start(&new), start(&old)),
            Edited::Rewritten => {
                assert!(start(&new) > start(&old) && start(&new) % 8 == 0);
            }
            _ => unreachable!(),
        }
        // The same edit again changes nothing.
        assert_eq!(edit.apply(&path).unwrap(), Edited::Unchanged);
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
        true
    }
    let tests = if cfg!(debug_assertions) { 200 } else { 1000 };
    QuickCheck::new().tests(tests).quickcheck(property as fn(Model, u64) -> bool);
}

/// Pairs of a header and what it becomes when the key `k` is set to `v`.
#[test]
fn edits_keep_the_rest_of_the_header_text() {
    let entry = r#""t":{"dtype":"U8","x":[1, {}],"shape":[1],"data_offsets":[0,1]}"#;
    let new = r#""__metadata__":{"k":"v"}"#;
    let cases = [
        (format!("{{{entry}}}{:40}", ""), format!("{{{new},{entry}}}")),
        (format!("\n {{ {entry} }}{:40}", ""), format!("\n {{{new}, {entry} }}")),
        (
            format!("{{{entry}, \"__metadata__\" : null }}{:9}", ""),
            format!("{{{entry}, \"__metadata__\" : {{\"k\":\"v\"}} }}"),
        ),
        (
            format!("{{\"__met\\u0061data__\":{{}},{entry}}}{:9}", ""),
            format!("{{\"__met\\u0061data__\":{{\"k\":\"v\"}},{entry}}}"),
        ),
        (
            format!("{{\"__metadata__\":{{ \"k\":\"longer\"}},{entry}}}"),
            format!("{{{new},{entry}}}"),
        ),
    ];
    for (old, expected) in cases {
        let temp = Temp::new();
        let path = temp.write("model.safetensors", file::file(&old, &[42]));
        assert_eq!(MetadataEdit::new().set("k", "v").apply(&path).unwrap(), Edited::InPlace);
        let bytes = std::fs::read(&path).unwrap();
        let padded = format!("{expected:width$}", width = old.len());
        assert_eq!(String::from_utf8_lossy(&bytes[8..bytes.len() - 1]), padded);
        assert_eq!(bytes.last(), Some(&42));
    }
    let temp = Temp::new();
    let path = temp.write("empty.safetensors", file::file("{}", &[]));
    assert_eq!(MetadataEdit::new().set("k", "v").apply(&path).unwrap(), Edited::Rewritten);
    let header = format!("{{{new}}}");
    let expected = format!("{header:width$}", width = (8 + header.len()).next_multiple_of(8) - 8);
    assert_eq!(std::fs::read(&path).unwrap()[8..], *expected.as_bytes());
    assert_eq!(MetadataEdit::new().remove("k").apply(&path).unwrap(), Edited::InPlace);
    assert_eq!(metadata_map(&std::fs::read(&path).unwrap()), Some(Map::new()));
}

fn aligned(align: u64) -> Vec<u8> {
    let mut model = Model::random(&mut Rng(9), 5);
    model.metadata = Metadata::None;
    let mut options = PlanOptions::default();
    options.align = align;
    serialize_with(model.views(), None, &options).unwrap()
}

#[test]
fn rewriting_keeps_the_data_alignment() {
    let temp = Temp::new();
    for align in [1, 8, 64, 4096] {
        let path = temp.write("model.safetensors", aligned(align));
        let before = File::open(&path).unwrap().table().data_start();
        let long = "v".repeat(9000);
        assert_eq!(MetadataEdit::new().set("k", long).apply(&path).unwrap(), Edited::Rewritten);
        let after = File::open(&path).unwrap().table().data_start();
        assert_eq!(after % (1 << before.trailing_zeros().clamp(3, 12)), 0, "{before} {after}");
    }
}

#[test]
fn refused_edits_leave_the_file_unchanged() {
    let temp = Temp::new();
    let old = aligned(4096);
    let path = temp.write("model.safetensors", &old);
    let mut proceed = |_: safetensors_zero::Progress| ControlFlow::Continue(());
    let mut limits = Limits::TIGHT;
    limits.dtypes = Limits::DEFAULT.dtypes;
    limits.metadata_value_bytes = 3;
    let error =
        MetadataEdit::new().set("k", "four").apply_with(&path, &limits, &mut proceed).unwrap_err();
    assert!(matches!(error.refusal(), Some(ErrorKind::StringTooLong { len: 4, .. })), "{error}");
    limits = Limits::DEFAULT;
    limits.header_bytes = 4096;
    let long = "v".repeat(4096);
    let error =
        MetadataEdit::new().set("k", &long).apply_with(&path, &limits, &mut proceed).unwrap_err();
    assert!(matches!(error.refusal(), Some(ErrorKind::HeaderTooLarge { .. })), "{error}");
    let mut stop = |_: safetensors_zero::Progress| ControlFlow::Break(());
    let edit = MetadataEdit::new().set("k", &long).clone();
    let error = edit.apply_with(&path, &Limits::DEFAULT, &mut stop).unwrap_err();
    assert!(matches!(error.kind(), WriteErrorKind::Stopped), "{error}");
    assert!(std::fs::read(&path).unwrap() == old);

    let broken = temp.write("broken.safetensors", b"\x02\0\0\0\0\0\0\0{]");
    let error = edit.apply(&broken).unwrap_err();
    assert!(matches!(error.kind(), WriteErrorKind::Read(_)), "{error}");
    let error = edit.apply(temp.join("nowhere")).unwrap_err();
    assert!(matches!(error.kind(), WriteErrorKind::Read(_)), "{error}");
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 2);
}

/// An edit in place doesn't read the data, so it works on a 5 GiB file. The file here is sparse.
#[test]
fn data_is_not_moved_if_the_header_has_room() {
    const LEN: u64 = 5 << 30;
    let temp = Temp::new();
    let entry = format!(r#"{{"t":{{"dtype":"U8","shape":[{LEN}],"data_offsets":[0,{LEN}]}}}}"#);
    let begin = file::file(format!("{entry:200}"), &[]);
    let path = temp.write_sparse("model.safetensors", &begin, LEN + begin.len() as u64, &[7]);
    assert_eq!(MetadataEdit::new().set("k", "v").apply(&path).unwrap(), Edited::InPlace);
    let file = File::open(&path).unwrap();
    assert_eq!(file.metadata().unwrap().get("k").unwrap(), "v");
    let mut last = [0];
    file.tensor("t").unwrap().read_into_at(LEN - 1, &mut last).unwrap();
    assert_eq!(last, [7]);
}

#[cfg(unix)]
#[test]
fn edits_follow_links_and_keep_permissions() {
    use std::os::unix::fs::{symlink, PermissionsExt};
    let temp = Temp::new();
    let path = temp.write("blob", aligned(8));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let link = temp.join("model.safetensors");
    symlink("blob", &link).unwrap();
    let long = "v".repeat(5000);
    assert_eq!(MetadataEdit::new().set("k", long).apply(&link).unwrap(), Edited::Rewritten);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(File::open(&link).unwrap().metadata().unwrap().len(), 1);
}
