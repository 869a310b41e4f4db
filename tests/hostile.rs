//! Promise: headers made to be slow to parse still get the right verdict, however they are read.
//! `cargo bench --bench instructions` measures their cost.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use safetensors_zero::{ErrorKind, Limits};
use support::{hostile, paths};

#[test]
fn hostile_headers_get_the_right_verdict() {
    for size in [3_000, 100_000] {
        for kind in hostile::KINDS {
            let verdict = paths::read(&kind.file(size), &Limits::DEFAULT);
            assert_eq!(verdict.is_ok(), kind.valid, "{}: {:?}", kind.name, verdict.map(drop));
        }
    }
}

#[test]
fn duplicate_names_are_found_among_colliding_names() {
    let colliding = |kind: &&hostile::Hostile| kind.name.contains("of one hash");
    assert!(hostile::KINDS.iter().filter(colliding).count() >= 8);
    for kind in hostile::KINDS.iter().filter(colliding) {
        let file = kind.file(100_000);
        let header_len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
        let header = std::str::from_utf8(&file[8..8 + header_len]).unwrap();
        // Repeat the first member at the end.
        if let Some(keys) = header.strip_prefix(r#"{"__metadata__":{"#) {
            let first = keys.split(',').next().unwrap();
            let twice = format!("{},{first}}}}}", header.strip_suffix("}}").unwrap());
            let file = support::file::file(twice, &[]);
            let error = paths::read(&file, &Limits::DEFAULT).unwrap_err();
            let expected = ErrorKind::DuplicateMetadataKey { first: 26 };
            assert_eq!(error.kind(), expected, "{}", kind.name);
            continue;
        }
        let first = header[1..].split_inclusive('}').next().unwrap();
        let twice = format!("{},{first}}}", header.strip_suffix('}').unwrap());
        let file = support::file::file(twice, &[]);
        let error = paths::read(&file, &Limits::DEFAULT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DuplicateName { first: 10 }, "{}", kind.name);
    }
}
