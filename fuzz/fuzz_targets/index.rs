//! Parses any text as a shard index, and any string as a shard's name. Accepted indexes match what
//! `serde_json` reads, errors have the right kind, and no accepted name leads out of the folder.
//!
//! An input that begins with 0xff, which never occurs in UTF-8, is a shard's name, built from parts
//! that are special on some system.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;

#[path = "../../tests/support/index.rs"]
mod index;

#[derive(Debug, Arbitrary)]
enum Piece<'a> {
    Known(u8),
    Character(char),
    Text(&'a str),
}

const PIECES: [&str; 24] = [
    "/",
    "\\",
    ".",
    "..",
    "./",
    "../",
    ":",
    "\0",
    " ",
    "a",
    "model",
    ".safetensors",
    "safetensors",
    "CON",
    "nul",
    "com",
    "lpt",
    "¹",
    "1",
    "conin$",
    "~",
    "%2e%2e",
    "\u{ff0e}",
    "C:",
];

fuzz_target!(|input: &[u8]| {
    let Some((0xff, rest)) = input.split_first() else { return index::check(input) };
    let Ok(pieces) = Vec::<Piece<'_>>::arbitrary(&mut Unstructured::new(rest)) else { return };
    let mut name = String::new();
    for piece in &pieces {
        match piece {
            Piece::Known(at) => name.push_str(PIECES[usize::from(*at) % PIECES.len()]),
            Piece::Character(character) => name.push(*character),
            Piece::Text(text) => name.push_str(text),
        }
    }
    if let Ok(accepted) = index::verdict(&name) {
        assert!(accepted.ends_with(".safetensors"), "{name:?}");
    }
    if let Ok(accepted) = index::verdict(&(name.clone() + ".safetensors")) {
        assert_eq!(accepted, name.strip_prefix("./").unwrap_or(&name).to_owned() + ".safetensors");
    }
});
