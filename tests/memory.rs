//! Promise: memory use is bounded by the size of the header or of the index, whatever it contains.
//! Sizes that a file only claims don't count.
//!
//! The allocator counts per thread, so tests don't disturb each other. Allocations beyond a test's
//! limit fail.

#![cfg(feature = "std")]
#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::fmt::Write;
use std::path::Path;

use safetensors_zero::{
    ErrorKind, File, FileErrorKind, Index, IndexLimits, Limits, SafeTensors, Shards, WeightMap,
};
use support::allocator::{peak, within, Counting};
use support::temp::Temp;
use support::{corpus, file, hostile};

/// Bytes for an error or an empty file: paths, messages, the error itself.
const SMALL: usize = 16 << 10;

/// Peak bytes per header byte, in addition to `SMALL`, for types that keep the header: the header
/// itself and 40 bytes per slot. A tensor's entry has at least 49 bytes. A `__metadata__` entry,
/// which needs a slot for the search for duplicates, can have as few as 9.
const HEADER_FACTOR: f64 = 5.5;

/// Peak bytes per byte of an index. Its entries can have as few as 20 bytes, and their number isn't
/// known in advance.
const INDEX_FACTOR: f64 = 7.0;

/// Peak bytes per shard (at most 10,000): its path and state.
const SHARD: usize = 200;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn bound(len: usize, factor: f64) -> usize {
    SMALL + (len as f64 * factor) as usize
}

/// Checks the peak memory use of every way of reading a file that allocates.
fn check(name: &str, bytes: &[u8], header_len: usize, valid: bool, temp: &Temp) {
    let path = temp.write("model.safetensors", bytes);
    let (owned, result) = peak(|| SafeTensors::deserialize(bytes).map(|tensors| tensors.len()));
    assert_eq!(result.is_ok(), valid, "{name}: {result:?}");
    let (opened, result) = peak(|| File::open(&path).map(|file| file.len()));
    assert_eq!(result.is_ok(), valid, "{name}: {result:?}");
    let (verified, result) = peak(|| Shards::open(&path).map(|model| model.verify().len()));
    assert_eq!(result.is_ok(), valid, "{name}: {result:?}");
    // The figures from which the bounds are chosen, shown by --nocapture.
    println!("{name}: {header_len} header bytes, peaks {owned}, {opened}, {verified}");
    assert!(owned <= bound(header_len, HEADER_FACTOR - 1.0), "{name}: {owned} for {header_len}");
    for peak in [opened, verified] {
        assert!(peak <= bound(header_len, HEADER_FACTOR), "{name}: {peak} for {header_len}");
    }
}

fn header_len(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |len| u64::from_le_bytes(*len) as usize)
}

#[test]
fn memory_is_counted_and_limited() {
    let (bytes, _) = peak(|| {
        let mut bytes = vec![0_u8; 1000];
        bytes.reserve_exact(2000);
        drop(bytes);
        vec![0_u8; 500]
    });
    assert_eq!(bytes, 4000, "old and new buffer together");
    let refused = within(1000, || Vec::<u8>::new().try_reserve_exact(1001));
    assert!(refused.is_err());
    assert!(Vec::<u8>::new().try_reserve_exact(1001).is_ok());
}

#[test]
fn hostile_headers_use_a_few_times_their_size() {
    let temp = Temp::new();
    for kind in hostile::KINDS {
        let bytes = kind.file(1 << 20);
        check(kind.name, &bytes, header_len(&bytes), kind.valid, &temp);
    }
    for case in corpus::files().iter().filter(|case| case.id.starts_with("dos-")) {
        let bytes = case.bytes();
        check(&case.id, &bytes, header_len(&bytes), case.default == "accept", &temp);
    }
}

#[test]
fn large_unknown_values_use_no_extra_memory() {
    let temp = Temp::new();
    let junk = |value: String| {
        let known = r#""dtype":"U8","shape":[0],"data_offsets":[0,0]"#;
        file::file(format!(r#"{{"t":{{{known},"x":{value}}}}}"#), &[])
    };
    let numbers = junk(format!("[{}0]", "0,".repeat(10_000_000)));
    check("numbers", &numbers, header_len(&numbers), true, &temp);
    let nested = junk(format!("[{}0]", "[[[[[[[[{\"\":[]}]]]]]]]],".repeat(800_000)));
    check("nested", &nested, header_len(&nested), true, &temp);
    let text = junk(format!("\"{}\"", "\\u0000".repeat(3_400_000)));
    check("escapes", &text, header_len(&text), true, &temp);
}

#[test]
fn many_tensors_and_metadata_keys_use_only_their_slots() {
    let temp = Temp::new();
    let mut header = String::from("{");
    for i in 0..1_000_000 {
        write!(header, r#""{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}},"#).unwrap();
    }
    header.pop();
    header.push('}');
    let tensors = file::file(header, &[]);
    check("tensors", &tensors, header_len(&tensors), true, &temp);
    let keys: Vec<String> = (0..50_000).map(|i| format!(r#""{i:x}":"""#)).collect();
    let keys = file::file(format!(r#"{{"__metadata__":{{{}}}}}"#, keys.join(",")), &[]);
    check("keys", &keys, header_len(&keys), true, &temp);
    // Keys of three characters are the shortest entries that can fill this many slots.
    let letters: Vec<char> = ('!'..='~').filter(|c| !matches!(c, '"' | '\\')).collect();
    let mut header = String::from(r#"{"__metadata__":{"":"""#);
    for a in &letters {
        for b in &letters {
            for c in &letters {
                write!(header, r#","{a}{b}{c}":"""#).unwrap();
            }
        }
    }
    header.push_str("}}");
    let keys = file::file(header, &[]);
    check("short keys", &keys, header_len(&keys), true, &temp);
}

#[test]
fn claimed_lengths_use_no_memory() {
    let temp = Temp::new();
    for claimed in [3, 100_000_000, 100_000_001, 1 << 32, 1 << 63, u64::MAX] {
        let bytes = [&u64::to_le_bytes(claimed), &b"{}"[..]].concat();
        check(&claimed.to_string(), &bytes, 0, false, &temp);
    }
    // A sparse file of zeros that really has the claimed length.
    let path = temp.write_sparse("sparse", &(60_000_000_u64).to_le_bytes(), 60_000_008, b"");
    let (held, result) = peak(|| File::open_with(&path, &Limits::TIGHT).map(drop));
    let kind = result.unwrap_err().invalid().unwrap().kind();
    assert!(matches!(kind, ErrorKind::HeaderTooLarge { len: 60_000_000, .. }), "{kind:?}");
    assert!(held <= SMALL, "{held}");
    let (held, result) = peak(|| File::open(&path).map(drop));
    assert!(result.is_err() && held <= bound(60_000_000, 1.0), "{held}");
    // The same for sizes claimed by tensors.
    let entry = r#"{"t":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,9223372036854775808]}}"#;
    let bytes = file::file(entry, &[0; 8]);
    check("tensor", &bytes, entry.len(), false, &temp);
    let shape = format!("[{}1]", "1,".repeat(1 << 20));
    let rank = format!(r#"{{"t":{{"dtype":"U8","shape":{shape},"data_offsets":[0,1]}}}}"#);
    let bytes = file::file(rank, &[0]);
    check("rank", &bytes, header_len(&bytes), true, &temp);
}

#[test]
fn a_header_that_does_not_fit_in_memory_is_an_error() {
    let temp = Temp::new();
    let header = format!("{{{}}}", " ".repeat(1 << 20));
    let path = temp.write("model.safetensors", file::file(header, &[]));
    let opened = within(1 << 20, || File::open(&path).map(drop));
    let error = opened.unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::OutOfMemory { bytes: 1_048_578 }), "{error}");
    assert!(File::open(&path).is_ok());
}

/// Checks the peak memory use of every way of reading an index with this many shards.
fn check_index(
    name: &str,
    text: &str,
    shards: usize,
    verdict: Result<(), &'static str>,
    temp: &Temp,
) {
    let path = temp.write("model.safetensors.index.json", text);
    let limits = IndexLimits::DEFAULT;
    let (borrowed, _) = peak(|| Index::parse(text.as_bytes(), &limits).map(drop));
    assert_eq!(borrowed, 0, "{name}: `Index` must not allocate");
    let copy = text.as_bytes().to_vec();
    let (mapped, result) = peak(|| WeightMap::parse(copy, &limits).map(drop));
    assert_eq!(result.map_err(|error| error.kind().name()), verdict, "{name}");
    let (opened, result) = peak(|| Shards::open(&path).map(drop));
    assert_eq!(result.is_ok(), verdict.is_ok(), "{name}");
    let (len, for_shards) = (text.len(), shards * SHARD);
    println!("{name}: {len} bytes, {shards} shards, peaks {mapped}, {opened}");
    assert!(mapped <= bound(len, INDEX_FACTOR - 1.0) + for_shards, "{name}: {mapped} for {len}");
    assert!(opened <= bound(len, INDEX_FACTOR) + for_shards, "{name}: {opened} for {len}");
}

fn index(pairs: impl Iterator<Item = (String, String)>) -> String {
    let pairs: Vec<String> = pairs.map(|(t, shard)| format!(r#""{t}":"{shard}""#)).collect();
    format!(r#"{{"weight_map":{{{}}}}}"#, pairs.join(","))
}

#[test]
fn hostile_indexes_use_a_few_times_their_size() {
    let temp = Temp::new();
    let one = || "x.safetensors".to_owned();
    let ok = Ok(());
    let names = index((0..500_000).map(|i| (format!("{i}"), one())));
    check_index("names", &names, 1, ok, &temp);
    let short = index((0..300_000).map(|i| (format!("{i:x}"), ".safetensors".into())));
    check_index("short names", &short, 1, ok, &temp);
    let huge = index((0..4).map(|i| (format!("{i}").repeat(2_000_000), one())));
    check_index("huge names", &huge, 1, ok, &temp);
    let shard = format!("{}.safetensors", "a".repeat(5_000_000));
    let huge = index([("a".to_owned(), shard)].into_iter());
    check_index("a huge shard name", &huge, 0, Err("string_too_long"), &temp);
    let shard = |i: usize| format!("{i}{}.safetensors", "a".repeat(4_000));
    let long = index((0..2_000).map(|i| (format!("{i}"), shard(i))));
    check_index("long shard names", &long, 2000, ok, &temp);
    let shards = index((0..10_000).map(|i| (format!("{i}"), format!("{i}.safetensors"))));
    check_index("shards", &shards, 10_000, ok, &temp);
    let shards = index((0..200_000).map(|i| (format!("{i}"), format!("{i}.safetensors"))));
    check_index("too many shards", &shards, 10_000, Err("too_many_shards"), &temp);
    let twice = index((0..200_000).map(|i| (format!("{}", i % 199_999), one())));
    check_index("a name twice", &twice, 1, Err("duplicate_name"), &temp);
    let junk = format!(r#"{{"x":[{}0],"weight_map":{{}}}}"#, "[[0]],".repeat(3_000_000));
    check_index("junk", &junk, 0, ok, &temp);
    let number = "1".repeat(10_000_000);
    let number = format!(r#"{{"metadata":{{"total_size":{number}}},"weight_map":{{}}}}"#);
    check_index("a long number", &number, 0, Err("number_range"), &temp);
}

#[test]
fn an_index_beyond_the_limit_is_not_read() {
    let temp = Temp::new();
    let path = temp.write_sparse("model.safetensors.index.json", b"{", 250_000_001, b"}");
    let (held, result) = peak(|| Shards::open(&path).map(drop));
    let kind = result.unwrap_err().invalid().unwrap().kind();
    assert!(matches!(kind, ErrorKind::IndexTooLarge { len: 250_000_001, .. }), "{kind:?}");
    assert!(held <= SMALL, "{held}");
}

/// Dequantising and copying use one fixed buffer, however large the tensor is.
#[test]
fn reading_uses_one_buffer() {
    let temp = Temp::new();
    let (len, mib) = (32 << 20, 1 << 20);
    let header =
        format!(r#"{{"t":{{"dtype":"F16","shape":[{}],"data_offsets":[0,{len}]}}}}"#, len / 2);
    let begin = file::file(header, &[]);
    let path = temp.write_sparse("model.safetensors", &begin, begin.len() as u64 + len, &[1]);
    check_reading(&path, mib);
}

fn check_reading(path: &Path, elements: usize) {
    let file = File::open(path).unwrap();
    let tensor = file.tensor("t").unwrap();
    let mut out = vec![0.0; elements];
    let (held, result) = peak(|| tensor.dequant_range(7, &mut out));
    result.unwrap();
    assert!(held <= 65 << 10, "{held}");
    let (held, copied) = peak(|| tensor.copy_to(&mut std::io::sink()));
    assert_eq!(copied.unwrap(), tensor.byte_len());
    assert!(held <= 65 << 10, "{held}");
    let (held, stats) = peak(|| tensor.stats());
    assert_eq!(stats.unwrap().count, tensor.elements());
    assert!(held <= 65 << 10, "{held}");
}
