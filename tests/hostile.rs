//! Promise: headers made to cost time get the right verdict all the same, by every way of reading.
//! What they cost is counted by `cargo bench --bench instructions`.

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
fn a_name_that_stands_twice_is_found_among_those_that_collide() {
    let of_one_hash = |kind: &&hostile::Hostile| kind.name.contains("of one hash");
    for kind in hostile::KINDS.iter().filter(of_one_hash) {
        let file = kind.file(100_000);
        let header_len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
        let header = std::str::from_utf8(&file[8..8 + header_len]).unwrap();
        // The first member once more, at the end.
        if let Some(keys) = header.strip_prefix(r#"{"__metadata__":{"#) {
            let first = keys.split(',').next().unwrap();
            let twice = format!("{},{first}}}}}", header.strip_suffix("}}").unwrap());
            let file = support::file::file(twice, &[]);
            let error = paths::read(&file, &Limits::DEFAULT).unwrap_err();
            let kind_of_error = ErrorKind::DuplicateMetadataKey { first: 26 };
            assert_eq!(error.kind(), kind_of_error, "{}", kind.name);
            continue;
        }
        let first = header[1..].split_inclusive('}').next().unwrap();
        let twice = format!("{},{first}}}", header.strip_suffix('}').unwrap());
        let file = support::file::file(twice, &[]);
        let error = paths::read(&file, &Limits::DEFAULT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DuplicateName { first: 10 }, "{}", kind.name);
    }
}
