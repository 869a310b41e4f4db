//! The crate `safetensors` as a judge, and the differences from it that are meant.

use safetensors::SafeTensors as Reference;
use safetensors_zero::{Error, ErrorKind, Field, JsonType};

use super::paths::{self, Content};

/// The differences that are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// A name stands twice: the README disallows it, the reference lets the last one win.
    DuplicateName,
    /// A key stands twice in `__metadata__`: likewise.
    DuplicateMetadataKey,
    /// An entry is an array: the reference takes it for the fields in order, by accident.
    EntryAsArray,
    /// A dtype is an object with one key: the reference takes it for an enum, by accident.
    DtypeAsObject,
    /// A shape has no elements, but its other dimensions overflow: whether the reference takes it
    /// depends on their order.
    EmptyShapeOverflow,
    /// Values nested exactly 128 levels: the reference stops before, this crate after.
    Depth128,
    /// On 32 bits the reference counts in 32 bits.
    Beyond32Bits,
    /// The reference panics, or would if it checked for overflow.
    ReferencePanics,
}

/// What the reference says of a file; `None` if it panics.
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
            // That this crate gives these bytes too is checked by `paths`.
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

/// The same content in one order.
fn sorted(mut content: Content) -> Content {
    content.tensors.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pairs) = &mut content.metadata {
        pairs.sort();
    }
    content
}

/// Compares this crate's verdict on a file with the reference's. `Ok` names the difference, if there
/// is one.
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
            // What is wrong with the first of two is nothing to the reference, which drops it.
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
                Err(format!("it is accepted, but the reference says: {theirs}"))
            }
        }
    }
}

/// Whether a tensor's name stands twice in a header that is JSON.
fn has_duplicates(file: &[u8]) -> bool {
    let header_len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let Names(mut names) = serde_json::from_slice(&file[8..8 + header_len]).unwrap();
    let all = names.len();
    names.sort();
    names.dedup();
    names.len() < all
}

/// The keys of an object, all of them.
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
