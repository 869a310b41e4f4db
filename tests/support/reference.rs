//! Comparison with the reference crate `safetensors`, and the intended differences from it.

use safetensors::SafeTensors as Reference;
use safetensors_zero::{Error, ErrorKind, Field, JsonType};

use super::paths::{self, Content};

/// An intended difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// A duplicate name. The format's README disallows it; the reference keeps the last one.
    DuplicateName,
    /// A duplicate key in `__metadata__`, treated the same way.
    DuplicateMetadataKey,
    /// An entry that is an array. The reference accepts it by accident, as the fields in order.
    EntryAsArray,
    /// A dtype that is an object with one key. The reference accepts it by accident, as an enum.
    DtypeAsObject,
    /// A shape without elements whose other dimensions overflow. Whether the reference accepts it
    /// depends on their order.
    EmptyShapeOverflow,
    /// A value nested exactly 128 levels deep, which only this crate accepts.
    Depth128,
    /// A number beyond 32 bits on a 32-bit system, where the reference counts in `usize`.
    Beyond32Bits,
    /// The reference panics, or would with overflow checks.
    ReferencePanics,
}

/// Parses a file with the reference. Returns `None` if it panics.
fn reference(file: &[u8]) -> Option<Result<Content, String>> {
    let parse = || {
        let (header_len, metadata) =
            Reference::read_metadata(file).map_err(|e| format!("{e:?}"))?;
        let tensors = Reference::deserialize(file).map_err(|e| format!("{e:?}"))?;
        let mut content = Content {
            data_start: 8 + header_len as u64,
            metadata: metadata.metadata().clone().map(|map| map.into_iter().collect()),
            tensors: Vec::new(),
        };
        for (name, info) in metadata.tensors() {
            // `paths` checks that this crate returns the same bytes.
            let view = tensors.tensor(&name).map_err(|e| format!("{e:?}"))?;
            let (begin, end) = info.data_offsets;
            assert_eq!(view.data(), &file[8 + header_len..][begin..end]);
            content.tensors.push(paths::Tensor {
                dtype: info.dtype.to_string().parse().unwrap(),
                shape: info.shape.iter().map(|d| *d as u64).collect(),
                data_offsets: (info.data_offsets.0 as u64, info.data_offsets.1 as u64),
                name,
            });
        }
        Ok(content)
    };
    std::panic::catch_unwind(parse).ok()
}

/// Sorts tensors and metadata by name.
fn sorted(mut content: Content) -> Content {
    content.tensors.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pairs) = &mut content.metadata {
        pairs.sort();
    }
    content
}

/// Compares this crate's result for a file with the reference's. Returns the intended difference,
/// if there is one.
pub fn compare(file: &[u8], ours: Result<Content, Error>) -> Result<Option<Difference>, String> {
    use Difference as D;
    let Some(theirs) = reference(file) else { return Ok(Some(D::ReferencePanics)) };
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) if sorted(ours.clone()) == sorted(theirs.clone()) => Ok(None),
        (Ok(ours), Ok(theirs)) => Err(format!("contents differ: {ours:?} {theirs:?}")),
        (Err(_), Err(_)) => Ok(None),
        (Err(ours), Ok(_)) => match ours.kind() {
            ErrorKind::DuplicateName { .. } => Ok(Some(D::DuplicateName)),
            ErrorKind::DuplicateMetadataKey { .. } => Ok(Some(D::DuplicateMetadataKey)),
            ErrorKind::WrongType { field: Field::Entry, found: JsonType::Array } => {
                Ok(Some(D::EntryAsArray))
            }
            ErrorKind::WrongType { field: Field::Dtype, found: JsonType::Object } => {
                Ok(Some(D::DtypeAsObject))
            }
            // The reference drops the first of two duplicates without checking it.
            _ if has_duplicates(file) => Ok(Some(D::DuplicateName)),
            _ => Err(format!("the reference accepts it, but: {}", ours.in_file(file))),
        },
        (Ok(ours), Err(theirs)) => {
            let empty = ours.tensors.iter().any(|tensor| {
                let others = tensor.shape.iter().filter(|d| **d > 0);
                tensor.shape.contains(&0)
                    && others.fold(1_u128, |product, d| product.saturating_mul(u128::from(*d)))
                        > u128::from(u64::MAX)
            });
            let beyond = theirs == "ValidationOverflow" || theirs.contains("expected usize");
            if cfg!(target_pointer_width = "32") && beyond {
                Ok(Some(D::Beyond32Bits))
            } else if theirs == "ValidationOverflow" && empty {
                Ok(Some(D::EmptyShapeOverflow))
            } else if theirs.contains("recursion limit exceeded") {
                Ok(Some(D::Depth128))
            } else {
                Err(format!("this crate accepts it, but the reference reports: {theirs}"))
            }
        }
    }
}

/// Checks whether a header that is valid JSON has duplicate names.
fn has_duplicates(file: &[u8]) -> bool {
    let header_len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let Names(mut names) = serde_json::from_slice(&file[8..8 + header_len]).unwrap();
    let all = names.len();
    names.sort();
    names.dedup();
    names.len() < all
}

/// All keys of an object, duplicates included.
struct Names(Vec<String>);

impl<'de> serde::Deserialize<'de> for Names {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Names;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, _)) = map.next_entry::<_, serde::de::IgnoredAny>()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
