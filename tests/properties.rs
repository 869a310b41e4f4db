//! Promise: parsing any file returns exactly what the file contains or an error. Slices and ranges
//! match a naive implementation, and JSON is accepted exactly if `serde_json` accepts it.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use quickcheck::{QuickCheck, TestResult, Testable};
use safetensors_zero::{
    dequant, Dtype, ErrorKind, Limits, SafeTensors, Shape, Slice, TensorIndexer, TensorSlot,
    TensorView,
};
use support::file;
use support::model::{json_value, Metadata, Model};
use support::naive::{self, Pick};
use support::paths;
use support::rng::Rng;

/// Checks a property with random input, more often in optimised builds.
fn check(property: impl Testable) {
    let tests = if cfg!(debug_assertions) { 1_000 } else { 10_000 };
    QuickCheck::new().tests(tests).quickcheck(property);
}

fn is_strict(model: &Model) -> bool {
    let large = |spec: &support::model::Spec| spec.shape.iter().any(|d| *d > i64::MAX as u64);
    model.spelling.canonical
        && !matches!(model.metadata, Metadata::Null)
        && !model.tensors.iter().any(large)
}

#[test]
fn valid_files_parse_to_their_content() {
    fn property(model: Model) -> bool {
        let (file, content) = model.write();
        assert_eq!(paths::read(&file, &Limits::DEFAULT), Ok(content.clone()));
        let strict = paths::read(&file, &Limits::STRICT);
        if is_strict(&model) {
            assert_eq!(strict, Ok(content));
        } else if let Ok(strict) = strict {
            assert_eq!(strict, content);
        }
        let mut slots = vec![TensorSlot::EMPTY; 64];
        let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
        model.tensors.iter().all(|spec| tensors.tensor(&spec.name).unwrap().data() == spec.data)
    }
    check(property as fn(Model) -> bool);
}

#[test]
fn damaged_files_parse_to_something_valid_or_fail() {
    fn property(model: Model, seed: u64) -> bool {
        let (mut file, _) = model.write();
        let mut rng = Rng(seed);
        let at = rng.below(file.len());
        match rng.below(6) {
            0 => file.truncate(at),
            1 => file.insert(at, rng.next() as u8),
            2 => drop(file.remove(at)),
            3 => file[at] = *rng.choose(b"{}[],:\"\\0123456789-.eu \0"),
            4 => file[at] ^= 1 << rng.below(8),
            _ => file[at] = rng.next() as u8,
        }
        // `read` checks the result.
        let default = paths::read(&file, &Limits::DEFAULT);
        let strict = paths::read(&file, &Limits::STRICT);
        let tight = paths::read(&file, &Limits::TIGHT);
        (default.is_ok() || strict.is_err()) && (strict.is_ok() || tight.is_err())
    }
    check(property as fn(Model, u64) -> bool);
}

/// A random dtype, a small shape whose data fills whole bytes, and the data.
fn tensor(rng: &mut Rng) -> (Dtype, Vec<usize>, Vec<u8>) {
    loop {
        let dtype = *rng.choose(&Dtype::ALL);
        let rank = rng.below(5);
        let dimension = |rng: &mut Rng| if rng.once_in(12) { 0 } else { 1 + rng.below(6) };
        let shape: Vec<usize> = (0..rank).map(|_| dimension(rng)).collect();
        let bits = shape.iter().product::<usize>() * dtype.bitsize();
        if bits % 8 == 0 {
            let data = rng.bytes(bits / 8);
            return (dtype, shape, data);
        }
    }
}

/// A random indexer for a dimension of this size, and the indexes that it selects.
fn indexer(rng: &mut Rng, size: u64) -> (TensorIndexer, Pick) {
    let kept = size == 0 || !rng.once_in(4);
    if !kept {
        let index = rng.below(size as usize) as u64;
        return (index.into(), Pick { indexes: vec![index], kept });
    }
    let start = rng.below(size as usize + 1) as u64;
    let stop = start + rng.below((size - start) as usize + 1) as u64;
    let step = if rng.once_in(2) { 1 } else { 1 + rng.below(4) as u64 };
    let indexes = (start..stop).step_by(step as usize).collect();
    let indexer = match rng.below(6) {
        0 if stop > start => TensorIndexer::stepped(start..=stop - 1, step),
        1 if stop == size => TensorIndexer::stepped(start.., step),
        2 if start == 0 => TensorIndexer::stepped(..stop, step),
        _ => TensorIndexer::stepped(start..stop, step),
    };
    (indexer.unwrap(), Pick { indexes, kept })
}

#[test]
fn slices_match_the_naive_implementation() {
    fn property(seed: u64) -> bool {
        let mut rng = Rng(seed);
        let (dtype, shape, data) = tensor(&mut rng);
        let sizes: Vec<u64> = shape.iter().map(|size| *size as u64).collect();
        let given = rng.below(shape.len() + 1);
        let (indexers, picks): (Vec<_>, Vec<_>) =
            sizes[..given].iter().map(|size| indexer(&mut rng, *size)).unzip();
        let elements = naive::elements(&sizes, &picks);
        let runs = naive::runs(&elements);
        let bits = dtype.bitsize() as u64;
        let whole = runs.iter().all(|run| run.start * bits % 8 == 0 && run.end * bits % 8 == 0);

        let slice = match Slice::new(dtype, Shape::new(&shape), &indexers) {
            Ok(slice) => slice,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::PartialByteSlice { dtype });
                return !whole;
            }
        };
        assert!(whole, "{dtype} {shape:?} {indexers:?}");
        let kept = picks.iter().filter(|pick| pick.kept).map(|pick| pick.indexes.len() as u64);
        assert!(slice.shape().eq(kept.chain(sizes[given..].iter().copied())));
        assert_eq!(slice.elements(), elements.len() as u64);
        let bytes: Vec<_> =
            runs.iter().map(|run| run.start * bits / 8..run.end * bits / 8).collect();
        assert!(slice.runs().eq(bytes.iter().cloned()), "{shape:?} {indexers:?}");

        let view = TensorView::new(dtype, &shape, &data).unwrap();
        let sliced = view.slice(&indexers).unwrap();
        let expected: Vec<u8> = bytes
            .iter()
            .flat_map(|run| &data[run.start as usize..run.end as usize])
            .copied()
            .collect();
        let mut copy = vec![0; expected.len()];
        sliced.copy_to(&mut copy).unwrap();
        assert_eq!(copy, expected);
        assert_eq!(sliced.iter().flatten().copied().collect::<Vec<u8>>(), expected);

        let mut numbers = vec![0.0; elements.len()];
        if dtype == Dtype::C64 {
            assert_eq!(
                sliced.dequant_into(&mut numbers).unwrap_err().kind(),
                ErrorKind::NoF32 { dtype }
            );
            return true;
        }
        sliced.dequant_into(&mut numbers).unwrap();
        let all = naive::widen(dtype, &data);
        elements.iter().zip(numbers).all(|(i, number)| naive::same(all[*i as usize], number))
    }
    check(property as fn(u64) -> bool);
}

#[test]
fn ranges_match_the_naive_implementation() {
    fn property(seed: u64) -> TestResult {
        let mut rng = Rng(seed);
        let (dtype, shape, data) = tensor(&mut rng);
        if dtype == Dtype::C64 {
            return TestResult::discard();
        }
        let view = TensorView::new(dtype, &shape, &data).unwrap();
        let all = naive::widen(dtype, &data);
        let first = rng.below(all.len() + 1);
        let count = rng.below(all.len() - first + 1);
        let mut out = vec![f32::MAX; count];
        view.dequant_range(first as u64, &mut out).unwrap();
        assert!(out.iter().zip(&all[first..]).all(|(a, b)| naive::same(*a, *b)), "{dtype}");

        let mut whole = vec![f32::MAX; all.len()];
        dequant::dequant_into(dtype, &data, &mut whole).unwrap();
        assert!(whole.iter().zip(&all).all(|(a, b)| naive::same(*a, *b)), "{dtype}");

        let beyond = all.len() + 1 - count;
        let error = view.dequant_range(beyond as u64, &mut out).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::RangeOutOfBounds { .. }));

        if let Some(rows) = shape.first().filter(|rows| **rows > 0) {
            let row = all.len() / rows;
            let begin = rng.below(rows + 1);
            let end = begin + rng.below(rows - begin + 1);
            let mut out = vec![f32::MAX; (end - begin) * row];
            view.dequant_rows(begin as u64..end as u64, &mut out).unwrap();
            assert!(out.iter().zip(&all[begin * row..]).all(|(a, b)| naive::same(*a, *b)));
        }
        TestResult::passed()
    }
    check(property as fn(u64) -> TestResult);
}

#[test]
fn json_is_accepted_if_serde_json_accepts_it() {
    fn property(seed: u64) -> TestResult {
        let mut rng = Rng(seed);
        let mut text = json_value(&mut rng, 4);
        for _ in 0..rng.below(3) {
            let places: Vec<usize> =
                text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let at = *rng.choose(&places);
            let piece = *rng.choose(&[
                "{", "}", "[", "]", ",", ":", "\"", "\\", "0", "9", "-", "+", ".", "e", "E",
                "\\u12aF", "\\ud800", "\\udfff", "true", "null", " ", "\n", "\u{b}", "\u{1}", "é",
                "\u{feff}",
            ]);
            if rng.once_in(3) && at < text.len() {
                text.remove(at);
            } else {
                text.insert_str(at, piece);
            }
        }
        let is_value = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        let header =
            format!(r#"{{"t":{{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":{text}}}}}"#);
        let is_json = serde_json::from_str::<serde_json::Value>(&header).is_ok();
        if is_json && !is_value {
            // The text closes the entry and continues outside it.
            return TestResult::discard();
        }
        let found = paths::read(&file::file(&header, &[]), &Limits::DEFAULT);
        assert_eq!(found.is_ok(), is_value, "{text:?}: {found:?}");
        TestResult::passed()
    }
    check(property as fn(u64) -> TestResult);
}
