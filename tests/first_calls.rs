//! Promise: the calls that a user tries first exist, and mean what they mean in std and in the crate
//! `safetensors`.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]
#![cfg(feature = "std")]

use std::borrow::Cow;
use std::io;

use safetensors_zero::{File, SafeTensors, Shards, Text};

const ANIMALS: &str = "examples/animals.safetensors";

#[test]
fn tensors_are_found_by_get_and_contains() {
    let bytes = std::fs::read(ANIMALS).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.get("scale").unwrap().byte_len(), 4);
    assert!(tensors.get("Scale").is_none());
    assert!(tensors.contains("scale") && !tensors.contains("Scale"));
    let table = tensors.table();
    assert_eq!(table.get("counts").unwrap().elements(), 10);
    assert!(table.get("").is_none() && table.contains("counts") && !table.contains(""));

    let file = File::open(ANIMALS).unwrap();
    assert_eq!(file.get("embedding.weight").unwrap().byte_len(), 160);
    assert!(file.get("embedding").is_none());
    assert!(file.contains("embedding.weight") && !file.contains("embedding"));
}

#[test]
fn sharded_models_list_and_contain_names_without_opening_shards() {
    let names = |model: &Shards| model.names().map(String::from).collect::<Vec<_>>();
    let single = Shards::open(ANIMALS).unwrap();
    assert_eq!(names(&single), ["counts", "scale", "embedding.weight"]);
    assert!(single.contains("counts") && !single.contains("count"));
    let sharded = Shards::open("tests/corpus/index-good").unwrap();
    assert_eq!(names(&sharded), ["a", "b"]);
    assert!(sharded.contains("a") && !sharded.contains("c"));
    // The index lists a shard that does not exist.
    let incomplete = Shards::open("tests/corpus/index-missing-shard").unwrap();
    assert!(incomplete.open_all().is_err());
    assert!(names(&incomplete).iter().all(|name| incomplete.contains(name)));
}

#[test]
fn shapes_and_names_convert_to_standard_types() {
    let bytes = std::fs::read(ANIMALS).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let shape = tensors.get("embedding.weight").unwrap().shape();
    assert_eq!(shape.to_vec(), [10, 8]);
    assert_eq!(Vec::<usize>::from(shape), [10, 8]);
    assert_eq!((shape.get(0), shape.get(1), shape.get(2)), (Some(10), Some(8), None));
    assert_eq!(shape, vec![10, 8]);
    assert_eq!(shape, &[10, 8]);
    assert_ne!(shape, vec![10]);
    let name: Text<'_> = tensors.names().next().unwrap();
    assert_eq!(String::from(name), "counts");
    assert!(matches!(Cow::from(name), Cow::Borrowed("counts")));
}

#[test]
fn file_errors_become_io_errors_of_the_same_kind() {
    let missing: io::Error = File::open("tests/no such file").unwrap_err().into();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert!(missing.to_string().contains("no such file"));
    let invalid: io::Error =
        File::open("tests/corpus/dup-tensor-identical.safetensors").unwrap_err().into();
    assert_eq!(invalid.kind(), io::ErrorKind::InvalidData);
}
