//! A reference reader of shard indexes, built on `serde_json` and a simple rule for names, and a
//! check that this crate agrees with it.

use std::fmt;
use std::marker::PhantomData;

use safetensors_zero::{Error, ErrorKind, Index, IndexLimits, ShardNameFault, WeightMap};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::Value;

/// The accepted nesting depth, one more than `serde_json` accepts.
const DEPTH: usize = 128;

/// Why an index is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not JSON.
    Json,
    /// JSON, but not an index.
    Members,
    /// An index with an invalid shard name.
    ShardName,
}

/// All members of an object in file order, duplicate keys included.
struct Members<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = Members<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<T>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(V(PhantomData))
    }
}

/// Returns the tensors of an index and their shards exactly as the index spells them, or `None` if
/// the text is nested deeper than `serde_json` accepts.
pub fn list(text: &[u8]) -> Option<Result<Vec<(String, String)>, Fault>> {
    match serde_json::from_slice::<Value>(text) {
        Ok(_) => {}
        Err(error) if error.to_string().contains("recursion limit") => return None,
        Err(_) => return Some(Err(Fault::Json)),
    }
    let Some(pairs) = pairs(text) else { return Some(Err(Fault::Members)) };
    if pairs.iter().all(|(_, shard)| is_shard_name(shard)) {
        Some(Ok(pairs))
    } else {
        Some(Err(Fault::ShardName))
    }
}

fn pairs(text: &[u8]) -> Option<Vec<(String, String)>> {
    let raw: Members<Box<RawValue>> = serde_json::from_slice(text).ok()?;
    let of = |key: &str| -> Vec<&str> {
        raw.0.iter().filter(|(k, _)| k == key).map(|(_, value)| value.get()).collect()
    };
    let (maps, metadata) = (of("weight_map"), of("metadata"));
    let [map] = maps.as_slice() else { return None };
    if metadata.len() > 1 {
        return None;
    }
    for metadata in metadata.into_iter().filter(|metadata| *metadata != "null") {
        let members: Members<Value> = serde_json::from_str(metadata).ok()?;
        if members.0.iter().filter(|(key, _)| key == "total_size").count() > 1 {
            return None;
        }
    }
    let pairs: Members<String> = serde_json::from_str(map).ok()?;
    Some(pairs.0)
}

/// The rule for shard names in its simplest form.
fn is_shard_name(name: &str) -> bool {
    let rest = name.strip_prefix("./").unwrap_or(name);
    let is_part = |part: &str| {
        let stem = part.split('.').next().unwrap_or("").trim_end_matches(' ').to_ascii_lowercase();
        let number = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
        let device = ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&stem.as_str())
            || number.is_some_and(|number| {
                ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"].contains(&number)
            });
        !part.is_empty() && !part.ends_with(['.', ' ']) && !device
    };
    name.len() <= 4096
        && rest.split('/').all(is_part)
        && !rest.contains(['\\', ':', '\u{7f}'])
        && !rest.chars().any(|c| c < ' ')
        && rest.ends_with(".safetensors")
}

/// Checks whether a relative path stays inside its folder on every system.
fn stays_inside(name: &str) -> bool {
    use std::path::{Component, Path};
    let here = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let elsewhere = name.split(['/', '\\']).all(|part| !matches!(part, "" | "." | ".."));
    here && elsewhere && !name.contains([':', '\0'])
}

/// Checks whether an error means that the text is not JSON.
pub fn is_syntax(kind: ErrorKind) -> bool {
    use ErrorKind as K;
    matches!(
        kind,
        K::InvalidUtf8
            | K::UnexpectedEnd { .. }
            | K::AfterHeader { .. }
            | K::ControlCharacter { .. }
            | K::InvalidEscape
            | K::LoneSurrogate
            | K::InvalidNumber
            | K::NumberRange
    )
}

/// Checks that this crate reads an index as the reference reader does, and that no shard name
/// leads out of its folder. Accepts any bytes.
pub fn check(text: &[u8]) {
    let limits = IndexLimits::DEFAULT;
    let found = Index::parse(text, &limits);
    let map = WeightMap::parse(text.to_vec(), &limits);
    let strict = Index::parse(text, &IndexLimits::STRICT);
    let shown = || String::from_utf8_lossy(text);
    match (&found, list(text)) {
        (Ok(index), Some(Ok(pairs))) => check_pairs(index, &pairs),
        (Ok(index), None) => assert_eq!(index.len(), index.iter().count()),
        (Ok(_), Some(Err(fault))) => panic!("accepted, but {fault:?}: {}", shown()),
        (Err(error), Some(Ok(_))) => panic!("{error}: {}", shown()),
        (Err(error), expected) => check_error(error, expected.and_then(Result::err), text),
    }
    match (&found, &map) {
        (Ok(index), map) => check_map(index, map.as_ref()),
        (Err(error), map) => assert_eq!(map.as_ref().unwrap_err(), error, "{}", shown()),
    }
    if let Ok(strict) = strict {
        let default = found.unwrap_or_else(|error| panic!("strict alone accepts {error}"));
        assert!(strict.iter().eq(default.iter()) && strict.total_size() == default.total_size());
    }
}

fn check_error(error: &Error, fault: Option<Fault>, text: &[u8]) {
    let (kind, shown) = (error.kind(), String::from_utf8_lossy(text));
    match (kind, fault) {
        (ErrorKind::TooDeep { .. }, _) => {
            let opened = text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
            assert!(opened > DEPTH, "{error}: {shown}");
        }
        (_, Some(Fault::ShardName)) => assert!(
            matches!(kind, ErrorKind::ShardName { .. } | ErrorKind::StringTooLong { .. }),
            "{error}: {shown}"
        ),
        (_, Some(Fault::Members)) => assert!(!is_syntax(kind), "{error}: {shown}"),
        _ => {}
    }
    let end = error.byte().unwrap_or(0);
    assert!(end <= text.len() as u64, "{error}");
}

fn check_pairs(index: &Index<'_>, pairs: &[(String, String)]) {
    let plain = |shard: &str| shard.strip_prefix("./").unwrap_or(shard).to_owned();
    let expected = pairs.iter().map(|(tensor, shard)| (tensor.clone(), plain(shard)));
    let listed = index.iter().map(|(tensor, shard)| (tensor.to_string(), shard.to_string()));
    assert!(listed.eq(expected), "{pairs:?}");
    assert_eq!((index.len(), index.is_empty()), (pairs.len(), pairs.is_empty()));
    for (_, shard) in index {
        assert!(stays_inside(&shard.to_string()), "{shard}");
    }
}

fn check_map(index: &Index<'_>, map: Result<&WeightMap, &Error>) {
    let mut pairs: Vec<(String, String)> =
        index.iter().map(|(tensor, shard)| (tensor.to_string(), shard.to_string())).collect();
    let names: std::collections::HashSet<_> = pairs.iter().map(|(tensor, _)| tensor).collect();
    let map = match map {
        Ok(map) => map,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::DuplicateName { .. }), "{error}");
            assert!(names.len() < pairs.len());
            return;
        }
    };
    assert_eq!(names.len(), pairs.len(), "duplicate tensor");
    let listed = map.iter().map(|(tensor, at)| (tensor.to_string(), map.shards()[at].clone()));
    assert!(listed.eq(pairs.iter().cloned()));
    assert_eq!((map.len(), map.total_size()), (index.len(), index.total_size()));
    // A look-up takes time linear in the length of the index.
    pairs.truncate(50);
    for (tensor, shard) in &pairs {
        assert_eq!(&map.shards()[map.shard_of(tensor).unwrap()], shard);
        assert_eq!(index.shard_of(tensor).unwrap().to_string(), *shard);
    }
    assert_eq!(map.shard_of("not in the map"), None);
}

/// Parses an index with a single shard. Returns its name as the crate lists it, or the fault in the
/// name.
pub fn verdict(name: &str) -> Result<String, Option<ShardNameFault>> {
    let name = serde_json::to_string(name).unwrap();
    let text = format!(r#"{{"weight_map":{{"t":{name}}}}}"#);
    check(text.as_bytes());
    match Index::parse(text.as_bytes(), &IndexLimits::DEFAULT) {
        Ok(index) => Ok(index.iter().next().unwrap().1.to_string()),
        Err(error) => match error.kind() {
            ErrorKind::ShardName { fault } => Err(Some(fault)),
            _ => Err(None),
        },
    }
}
