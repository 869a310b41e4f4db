//! Puts any text into a header as a whole, as an unknown value, as a name, and as a metadata value.
//! It is accepted where `serde_json` reads it as JSON of the right type, strings decode to the same
//! text, and valid JSON never causes a syntax error.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::{fuzz_target, Corpus};
use safetensors_zero::{Error, ErrorKind, SafeTensors};
use serde::Deserialize;

#[path = "../../tests/support/file.rs"]
#[allow(dead_code)]
mod file;
#[path = "../../tests/support/index.rs"]
#[allow(dead_code)]
mod index;

/// The nesting depth that the default limits allow.
const DEPTH: usize = 128;

fuzz_target!(|text: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(text) else { return Corpus::Reject };
    // `serde_json` recurses, so long texts could overflow the stack.
    if text.len() > 4096 {
        return Corpus::Reject;
    }
    whole_header(text);
    unknown_value(text);
    name(text);
    metadata(text);
    Corpus::Keep
});

/// Parses a value with `serde_json`, without a limit on its depth.
fn json<'t, T: Deserialize<'t>>(text: &'t str) -> Option<T> {
    let mut parser = serde_json::Deserializer::from_str(text);
    parser.disable_recursion_limit();
    let value = T::deserialize(&mut parser).ok()?;
    parser.end().ok()?;
    Some(value)
}

fn is_json(text: &str) -> bool {
    json::<serde_json::Value>(text).is_some()
}

/// Returns the nesting depth of valid JSON.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn read(header: &str) -> Result<(), Error> {
    SafeTensors::deserialize(&file::file(header, &[])).map(drop)
}

fn whole_header(text: &str) {
    match read(text) {
        Ok(()) => assert!(is_json(text), "accepted: {text:?}"),
        Err(error) if is_json(text) => {
            assert!(!index::is_syntax(error.kind()), "{error}: {text:?}");
            if let ErrorKind::TooDeep { .. } = error.kind() {
                assert!(depth(text) > DEPTH, "{error}: {text:?}");
            }
        }
        Err(_) => {}
    }
}

fn unknown_value(text: &str) {
    let header = format!(r#"{{"t":{{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":{text}}}}}"#);
    let found = read(&header);
    if is_json(text) {
        if depth(text) + 2 > DEPTH {
            assert!(matches!(found.unwrap_err().kind(), ErrorKind::TooDeep { .. }), "{text:?}");
        } else {
            assert!(found.is_ok(), "{found:?}: {text:?}");
        }
    } else if !is_json(&header) {
        // Otherwise the text closes the entry and continues after it.
        assert!(found.is_err(), "accepted: {text:?}");
    }
}

fn name(text: &str) {
    let header = format!(r#"{{{text}:{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}}}"#);
    let file = file::file(&header, &[]);
    let found = SafeTensors::deserialize(&file);
    let Some(name) = json::<String>(text) else {
        assert!(found.is_err() || is_json(&header), "accepted: {text:?}");
        return;
    };
    if name == "__metadata__" {
        assert!(matches!(found.unwrap_err().kind(), ErrorKind::WrongType { .. }));
        return;
    }
    let tensors = found.unwrap_or_else(|error| panic!("{error}: {text:?}"));
    let (found, view) = tensors.iter().next().unwrap();
    assert_eq!(tensors.len(), 1);
    assert_eq!(tensors.tensor(&name), Ok(view));
    assert_eq!(found, name.as_str());
    assert_eq!((found.len(), found.is_empty()), (name.len(), name.is_empty()));
    assert!(found.chars().eq(name.chars()));
    assert_eq!((found.to_string(), &*found.to_cow()), (name.clone(), name.as_str()));
    let mut buffer = vec![0; name.len()];
    assert_eq!(found.copy_to(&mut buffer), Ok(name.as_str()));
    if let Some(shorter) = buffer.len().checked_sub(1) {
        assert!(found.copy_to(&mut buffer[..shorter]).is_err());
    }
    let other = format!("{name}x");
    assert!(tensors.tensor(&other).is_err() && found != other.as_str());
}

fn metadata(text: &str) {
    let header = format!(r#"{{"__metadata__":{{"k":{text}}}}}"#);
    let file = file::file(&header, &[]);
    let found = SafeTensors::deserialize(&file);
    let Some(pairs) = json::<BTreeMap<String, String>>(&header[16..header.len() - 1]) else {
        assert!(found.is_err() || is_json(&header), "accepted: {text:?}");
        return;
    };
    let metadata = match &found {
        Ok(tensors) => tensors.metadata().unwrap(),
        Err(error) => {
            let kind = error.kind();
            assert!(matches!(kind, ErrorKind::DuplicateMetadataKey { .. }), "{error}: {text:?}");
            return;
        }
    };
    let found: BTreeMap<String, String> =
        metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    assert_eq!(found, pairs);
    for (key, value) in &pairs {
        assert_eq!(metadata.get(key).unwrap(), value.as_str());
    }
}
