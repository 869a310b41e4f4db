//! Promise: where this crate and the reference implementation disagree about a file, the
//! disagreement is a known and intended one. Where both accept a file, they read the same content.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::collections::{BTreeMap, BTreeSet};

use safetensors_zero::Limits;
use support::model::Model;
use support::paths;
use support::reference::{self, Difference};
use support::rng::Rng;
use support::{corpus, file};

fn compare(file: &[u8]) -> Result<Option<Difference>, String> {
    reference::compare(file, paths::read(file, &Limits::DEFAULT))
}

/// Compares many files. Returns each kind of difference with the first file that shows it.
fn compare_all(files: impl Iterator<Item = (String, Vec<u8>)>) -> BTreeMap<Difference, String> {
    let mut seen = BTreeMap::new();
    for (id, file) in files {
        match compare(&file) {
            Ok(None) => {}
            Ok(Some(difference)) => {
                seen.entry(difference).or_insert(id);
            }
            Err(error) => panic!("{id}: {error}\n{}", file[..file.len().min(2000)].escape_ascii()),
        }
    }
    seen
}

/// Runs a test without printing the reference's panics.
fn quietly<T>(test: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map_or("", |location| location.file());
        if !file.contains("safetensors-0") {
            hook(info);
        }
    }));
    test()
}

#[test]
fn corpus_differences_are_known() {
    let seen = quietly(|| {
        compare_all(corpus::files().into_iter().map(|case| (case.id.clone(), case.bytes())))
    });
    let seen: BTreeSet<Difference> = seen.into_keys().collect();
    use Difference as D;
    let empty =
        if cfg!(target_pointer_width = "32") { D::Beyond32Bits } else { D::EmptyShapeOverflow };
    let expected = [D::DuplicateName, D::DuplicateMetadataKey, D::EntryAsArray, empty];
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn differences_in_handmade_files_are_known() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 2), "]".repeat(levels - 2));
        let entry = format!(r#""dtype":"U8","shape":[0],"data_offsets":[0,0],"x":{open}{close}"#);
        file::file(format!(r#"{{"t":{{{entry}}}}}"#), &[])
    };
    // The data ends at 2^64 - 1, so the file length overflows.
    let most = u64::MAX;
    let wraps = format!(r#"{{"t":{{"dtype":"U8","shape":[{most}],"data_offsets":[0,{most}]}}}}"#);
    use Difference as D;
    let cases = [
        (Ok(None), nested(127)),
        (Ok(Some(D::Depth128)), nested(128)),
        (Ok(None), nested(129)),
        (
            Ok(Some(D::DtypeAsObject)),
            file::zeros(r#"{"t":{"dtype":{"U8":null},"shape":[1],"data_offsets":[0,1]}}"#, 1),
        ),
        (Ok(None), file::zeros(r#"{"t":["U8",[1],[0,1],1]}"#, 1)),
        (Ok(None), file::zeros(r#"{"t":{"dtype":"U8","shape":[1],"data_offsets":{"0":1}}}"#, 1)),
    ];
    quietly(|| {
        for (expected, file) in cases {
            assert_eq!(compare(&file), expected, "{}", file.escape_ascii());
        }
        let wrapped = compare(&file::file(wraps, &[]));
        assert!(matches!(wrapped, Ok(None | Some(D::ReferencePanics))), "{wrapped:?}");
    });
}

#[test]
fn differences_in_random_and_damaged_files_are_known() {
    let rounds = if cfg!(debug_assertions) { 3_000 } else { 30_000 };
    let mut rng = Rng(20_240_611);
    let files = (0..rounds).flat_map(|i| {
        let tensors = rng.below(10);
        let (whole, _) = Model::random(&mut rng, tensors).write();
        let damaged = (0..4).map(|_| damage(&whole, &mut rng)).collect::<Vec<_>>();
        std::iter::once(whole)
            .chain(damaged)
            .map(move |file| (format!("random {i}"), file))
            .collect::<Vec<_>>()
    });
    let seen = quietly(|| compare_all(files));
    // The damaged files show at least one of these differences.
    let empty = [Difference::EmptyShapeOverflow, Difference::Beyond32Bits];
    assert!(empty.iter().any(|difference| seen.contains_key(difference)), "{seen:?}");
}

/// Changes a few bytes of a header and updates its length, or shortens or extends the data.
fn damage(file: &[u8], rng: &mut Rng) -> Vec<u8> {
    let header_len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let (mut header, mut data) =
        (file[8..8 + header_len].to_vec(), file[8 + header_len..].to_vec());
    for _ in 0..1 + rng.below(2) {
        if header.is_empty() {
            break;
        }
        let at = rng.below(header.len());
        match rng.below(8) {
            0 => header[at] = rng.next() as u8,
            1 => header.insert(at, *rng.choose(b"{}[],:\"\\0123456789-.eu \0")),
            2 => drop(header.remove(at)),
            3 => {
                // Repeat part of the header somewhere else.
                let piece = header[at..(at + rng.below(120)).min(header.len())].to_vec();
                let to = rng.below(header.len());
                header.splice(to..to, piece);
            }
            4 => data.truncate(rng.below(data.len() + 1)),
            5 => data.push(0),
            6 => {
                let digit = header.iter().position(|byte| byte.is_ascii_digit()).unwrap_or(at);
                header[digit] = b'0' + rng.below(10) as u8;
            }
            _ => header[at] = *rng.choose(b"{}[],:\"\\0123456789-.eu \0"),
        }
    }
    file::file(header, &data)
}
