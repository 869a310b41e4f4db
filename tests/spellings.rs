//! Promise: the fast path through a header never changes a result. Whatever the spelling, the
//! tokenizer alone returns the same entries and the same errors.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use quickcheck::QuickCheck;
use safetensors_zero::internals::walk_both_ways;
use safetensors_zero::{Dtype, ErrorKind, Limits};
use support::model::Model;
use support::rng::Rng;
use support::{corpus, file, hostile, paths};

const PRESETS: [Limits; 3] = [Limits::DEFAULT, Limits::STRICT, Limits::TIGHT];

/// Compares both walks under every preset. Returns the number of members that took the fast path
/// under default limits.
fn check(file: &[u8]) -> usize {
    let walks = PRESETS.map(|limits| walk_both_ways(file, &limits));
    for walk in walks {
        assert_ne!(walk, Some(Err(())), "{}", file[..file.len().min(3000)].escape_ascii());
    }
    walks[0].map_or(0, Result::unwrap)
}

#[test]
fn walks_agree_on_corpus_and_hostile_headers() {
    for case in corpus::files() {
        check(&case.bytes());
    }
    for kind in hostile::KINDS {
        check(&kind.file(20_000));
    }
}

/// Dtypes are compared as integers, where a NUL byte could be mistaken for padding.
#[test]
fn dtypes_have_one_spelling() {
    for dtype in Dtype::ALL {
        for byte in 0..0x80_u8 {
            for spelling in [format!("{dtype}{}", byte as char), format!("{}{dtype}", byte as char)]
            {
                if spelling.parse::<Dtype>().is_ok() {
                    continue;
                }
                let entry = format!(r#"{{"dtype":"{spelling}","shape":[0],"data_offsets":[0,0]}}"#);
                let file = file::file(format!(r#"{{"t":{entry}}}"#), &[]);
                check(&file);
                let error = paths::read(&file, &Limits::DEFAULT).unwrap_err();
                match byte {
                    0..0x20 => {
                        assert_eq!(error.kind(), ErrorKind::ControlCharacter { found: byte });
                    }
                    b'"' | b'\\' => {}
                    _ => assert_eq!(error.kind(), ErrorKind::UnknownDtype, "{spelling:?}"),
                }
            }
        }
    }
}

/// A key directly followed by another key is an error at every place in an entry.
#[test]
fn rejects_keys_without_values() {
    let members = [r#""dtype":"U64""#, r#""shape":[1]"#, r#""data_offsets":[0,8]"#];
    let keys = [r#""dtype":"#, r#""shape":"#, r#""data_offsets":"#, r#""x":"#];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for (place, key, gap) in
            (0..3).flat_map(|place| keys.map(|key| [(place, key, ""), (place, key, " ")])).flatten()
        {
            let mut words = order.map(|i| members[i].to_owned());
            words[place].insert_str(0, &format!("{key}{gap}"));
            let entry = words.join(&format!(",{gap}"));
            let header = format!(r#"{{"a":{{{entry}}}}}"#);
            let file = file::file(&header, &[0; 8]);
            check(&file);
            assert!(paths::read(&file, &Limits::DEFAULT).is_err(), "{header}");
        }
    }
}

#[test]
fn walks_agree_on_random_and_damaged_spellings() {
    fn property(model: Model, seed: u64) -> bool {
        let (whole, _) = model.write();
        check(&whole);
        let mut rng = Rng(seed);
        let header_len = u64::from_le_bytes(*whole.first_chunk().unwrap()) as usize;
        for _ in 0..20 {
            let mut header = whole[8..8 + header_len].to_vec();
            let at = rng.below(header.len());
            match rng.below(5) {
                0 => header[at] = *rng.choose(b"{}[],:\"\\0123456789-.eu \n\0"),
                1 => header.insert(at, *rng.choose(b"{}[],:\"\\0123456789-.eu \n\t\r\0")),
                2 => drop(header.remove(at)),
                3 => {
                    // Repeat a piece of the header at a random position.
                    let begin = rng.below(header.len());
                    let end = (begin + 1 + rng.below(20)).min(header.len());
                    let piece = header[begin..end].to_vec();
                    header.splice(at..at, piece);
                }
                _ => header[at] = rng.next() as u8,
            }
            check(&file::file(header, &[]));
        }
        true
    }
    let tests = if cfg!(debug_assertions) { 500 } else { 5_000 };
    QuickCheck::new().tests(tests).quickcheck(property as fn(Model, u64) -> bool);
}

/// A file of three tensors whose header is formatted as JSON writers do.
fn spelled(names: [&str; 3], order: [usize; 3], colon: &str, comma: &str, indent: &str) -> Vec<u8> {
    let line = |depth: usize| {
        if indent.is_empty() {
            String::new()
        } else {
            format!("\n{}", indent.repeat(depth))
        }
    };
    let array = |a: &str, b: &str| format!("[{0}{a}{comma}{0}{b}{1}]", line(3), line(2));
    let entries: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let (begin, end) = (i * 123_456_789, (i + 1) * 123_456_789);
            let fields = [
                format!(r#""dtype":{colon}"U8""#),
                format!(r#""shape":{colon}{}"#, array("1", "123456789")),
                format!(r#""data_offsets":{colon}{}"#, array(&begin.to_string(), &end.to_string())),
            ];
            let fields: Vec<&str> = order.iter().map(|field| fields[*field].as_str()).collect();
            let join = format!(
                ",{}{}",
                if indent.is_empty() { comma.trim_start_matches(',') } else { "" },
                line(2)
            );
            format!(
                r#"{}"{name}":{colon}{{{}{}{}}}"#,
                line(1),
                line(2),
                fields.join(&join),
                line(1)
            )
        })
        .collect();
    let join = if indent.is_empty() { comma } else { "," };
    file::file(format!("{{{}{}}}        ", entries.join(join), line(0)), &[])
}

#[test]
fn usual_spellings_take_the_fast_path() {
    let names = ["model.layers.0.mlp.up_proj.weight", "a", "with a space and an escape \\u00e9!"];
    for order in [[0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0]] {
        for (colon, comma, indent) in [
            ("", ",", ""),
            (" ", ", ", ""),
            (" ", ",", "  "),
            (" ", ",", "    "),
            (" ", ",", "\u{20}"),
        ] {
            let fast = check(&spelled(names, order, colon, comma, indent));
            // The tokenizer reads the first member to find out whether there is white space.
            let expected = if colon.is_empty() { 3 } else { 2 };
            assert_eq!(fast, expected, "{order:?} {colon:?} {comma:?} {indent:?}");
        }
    }
}
