//! Promise: files are validated before they are written, the same content always gives the same
//! bytes, these are the reference's bytes wherever the reference is deterministic, and files read
//! back as written.
//!
//! Corpus cases: write-metadata-name, write-pad-spaces, write-deterministic,
//! write-duplicate-names, write-size-mismatch.

#![cfg(feature = "alloc")]
#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use quickcheck::QuickCheck;
use safetensors_zero::{
    serialize, serialize_with, Dtype, ErrorKind, Limits, Order, Plan, PlanBuilder, PlanOptions,
    PlanTensor, SafeTensors, Shape, StringKind, TensorSlot,
};
use support::model::{Metadata, Model, Spec};
use support::paths;
use support::rng::Rng;

fn check<A: quickcheck::Testable>(property: A) {
    let tests = if cfg!(debug_assertions) { 300 } else { 3_000 };
    QuickCheck::new().tests(tests).quickcheck(property);
}

fn spec(name: &str, dtype: Dtype, shape: &[u64]) -> Spec {
    let bits = shape.iter().product::<u64>() as usize * dtype.bitsize();
    Spec { name: name.to_owned(), dtype, shape: shape.to_vec(), data: vec![7; bits / 8] }
}

fn metadata(model: &Model) -> Option<BTreeMap<String, String>> {
    match &model.metadata {
        Metadata::Map(pairs) => Some(pairs.iter().cloned().collect()),
        _ => None,
    }
}

/// Checks that a file contains a model, with the data aligned as the options say.
fn check_file(file: &[u8], model: &Model, options: &PlanOptions) {
    let content = paths::read(file, &options.limits).unwrap();
    assert_eq!(content.data_start % options.align, 0);
    assert_eq!(content.metadata.map(BTreeMap::from_iter), metadata(model));
    assert_eq!(content.tensors.len(), model.tensors.len());
    let tensors = SafeTensors::deserialize(file).unwrap();
    for spec in &model.tensors {
        let view = tensors.tensor(&spec.name).unwrap();
        assert_eq!(view.dtype(), spec.dtype);
        assert_eq!(view.shape(), Shape::wide(&spec.shape));
        assert_eq!(view.data(), spec.data);
    }
}

#[test]
fn files_read_back_as_written() {
    fn property(model: Model, seed: u64) -> bool {
        let mut rng = Rng(seed);
        let mut options = PlanOptions::default();
        options.align = 1 << rng.below(13);
        options.order = *rng.choose(&[Order::ByDtype, Order::Given]);
        let file = serialize_with(model.views(), metadata(&model), &options).unwrap();
        check_file(&file, &model, &options);
        if options.order == Order::Given {
            let tensors = SafeTensors::deserialize(&file).unwrap();
            let with_bytes = |spec: &&Spec| !spec.data.is_empty();
            let given = model.tensors.iter().filter(with_bytes).map(|spec| spec.name.as_str());
            let read = tensors.iter().filter(|(_, view)| !view.data().is_empty());
            assert!(read.map(|(name, _)| name.to_string()).eq(given));
        }

        // The order of the given tensors doesn't change the bytes.
        options.order = Order::ByDtype;
        let file = serialize_with(model.views(), metadata(&model), &options).unwrap();
        let mut shuffled = model.views();
        rng.shuffle(&mut shuffled);
        file == serialize_with(shuffled, metadata(&model), &options).unwrap()
    }
    check(property as fn(Model, u64) -> bool);
}

/// A tensor for the reference's serializer.
struct Theirs<'a>(&'a Spec, Vec<usize>);

impl safetensors::View for Theirs<'_> {
    fn dtype(&self) -> safetensors::Dtype {
        serde_json::from_value(serde_json::Value::String(self.0.dtype.to_string())).unwrap()
    }

    fn shape(&self) -> &[usize] {
        &self.1
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.0.data)
    }

    fn data_len(&self) -> usize {
        self.0.data.len()
    }
}

#[test]
fn the_reference_writes_the_same_bytes() {
    fn property(mut model: Model) -> bool {
        // The reference writes metadata keys in random order.
        if let Metadata::Map(pairs) = &mut model.metadata {
            pairs.truncate(1);
        }
        let theirs = model.tensors.iter().filter_map(|spec| {
            let shape = spec.shape.iter().map(|d| usize::try_from(*d).ok()).collect::<Option<_>>();
            Some((spec.name.as_str(), Theirs(spec, shape?)))
        });
        let theirs: Vec<_> = theirs.collect();
        if theirs.len() < model.tensors.len() {
            return true;
        }
        let map = metadata(&model).map(|map| map.into_iter().collect::<HashMap<_, _>>());
        // For no tensors and an empty map, the reference writes `{},"__metadata__":{}}`, which it
        // can't read back.
        let broken = theirs.is_empty() && map.as_ref().is_some_and(HashMap::is_empty);
        match safetensors::serialize(theirs, map) {
            Ok(file) if broken => safetensors::SafeTensors::deserialize(&file).is_err(),
            Ok(expected) => serialize(model.views(), metadata(&model)).unwrap() == expected,
            // The reference multiplies dimensions in order, so an empty tensor's shape can overflow.
            Err(safetensors::SafeTensorError::ValidationOverflow) => {
                model.tensors.iter().any(|spec| spec.shape.contains(&u64::MAX))
            }
            Err(error) => panic!("{error}"),
        }
    }
    check(property as fn(Model) -> bool);
}

#[test]
fn plans_and_files_are_accepted_under_the_same_limits() {
    /// How many files were rejected, and how many accepted.
    static VERDICTS: [std::sync::atomic::AtomicU32; 2] =
        [const { std::sync::atomic::AtomicU32::new(0) }; 2];

    fn property(model: Model, seed: u64) -> bool {
        let mut rng = Rng(seed);
        let mut limits = *rng.choose(&[Limits::DEFAULT, Limits::STRICT, Limits::TIGHT]);
        // Half of the bounds, so that enough files are within all of them.
        if rng.below(2) == 0 {
            limits.tensors = rng.below(14) as u32;
        }
        if rng.below(2) == 0 {
            limits.metadata_entries = rng.below(40) as u32;
        }
        if rng.below(2) == 0 {
            limits.name_bytes = rng.below(300) as u32;
        }
        if rng.below(2) == 0 {
            limits.string_bytes = 12 + rng.below(300) as u32;
        }
        if rng.below(2) == 0 {
            limits.metadata_value_bytes = rng.below(300) as u32;
        }
        if rng.below(2) == 0 {
            limits.rank = rng.below(16) as u32;
        }
        if rng.below(2) == 0 {
            limits.header_bytes = 8 << rng.below(12);
        }
        if rng.below(2) == 0 {
            limits.integer = 1 << rng.below(64);
        }
        let mut options = PlanOptions::default();
        let file = serialize_with(model.views(), metadata(&model), &options).unwrap();
        options.limits = limits;
        let planned = serialize_with(model.views(), metadata(&model), &options);
        let read = SafeTensors::deserialize_with(&file, &limits);
        VERDICTS[usize::from(read.is_ok())].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match (planned, read) {
            (Ok(planned), Ok(_)) => planned == file,
            // If several rules are broken, the two can report different ones.
            (Err(_), Err(_)) => true,
            (planned, read) => panic!("{planned:?} {read:?} {limits:?}"),
        }
    }
    check(property as fn(Model, u64) -> bool);
    let verdicts =
        VERDICTS.each_ref().map(|count| count.load(std::sync::atomic::Ordering::Relaxed));
    assert!(verdicts.iter().all(|count| *count > 20), "{verdicts:?}");
}

type Tensors<'a> = &'a [(&'a str, Dtype, &'a [u64])];

/// Returns why a plan of these tensors is refused, and the index of the tensor at fault.
fn refusal(tensors: Tensors<'_>, options: &PlanOptions) -> (ErrorKind, Option<usize>) {
    let mut planned: Vec<_> = tensors
        .iter()
        .map(|(name, dtype, shape)| PlanTensor::new(name, *dtype, Shape::wide(shape)))
        .collect();
    let error = Plan::new(&mut planned, None, options).unwrap_err();
    (error.kind(), error.tensor())
}

#[test]
fn invalid_plans_are_refused_with_the_right_error() {
    let default = PlanOptions::default();
    let f4 = Dtype::F4;
    let largest: &[u64] = &[1 << 63];
    let cases: [(Tensors<'_>, ErrorKind, Option<usize>); 9] = [
        (&[("__metadata__", Dtype::U8, &[1])], ErrorKind::ReservedName, Some(0)),
        (
            &[("b", Dtype::U8, &[1]), ("a", Dtype::F32, &[]), ("b", Dtype::F16, &[2])],
            ErrorKind::NameRepeated { first: 0 },
            Some(2),
        ),
        (&[("a", f4, &[3])], ErrorKind::PartialByte { dtype: f4, elements: 3 }, Some(0)),
        (
            &[("a", Dtype::F6_E3M2, &[2, 3])],
            ErrorKind::PartialByte { dtype: Dtype::F6_E3M2, elements: 6 },
            Some(0),
        ),
        (&[("a", f4, &[])], ErrorKind::PartialByte { dtype: f4, elements: 1 }, Some(0)),
        (&[("a", Dtype::U8, &[1 << 32, 1 << 32])], ErrorKind::ShapeOverflow, Some(0)),
        (&[("a", Dtype::U16, largest)], ErrorKind::ShapeOverflow, Some(0)),
        (
            &[("x", Dtype::U8, largest), ("y", Dtype::U8, largest), ("z", Dtype::U8, &[1])],
            ErrorKind::FileTooLarge,
            Some(1),
        ),
        (
            &[("x", Dtype::U8, largest), ("y", Dtype::U8, &[u64::MAX >> 1])],
            ErrorKind::FileTooLarge,
            None,
        ),
    ];
    for (tensors, kind, tensor) in cases {
        assert_eq!(refusal(tensors, &default), (kind, tensor), "{tensors:?}");
    }
    for align in [0, 3, 12, u64::MAX] {
        let options = with_align(align);
        assert_eq!(refusal(&[], &options), (ErrorKind::NotPowerOfTwo { align }, None));
    }
    let options = with_align(1 << 63);
    let (len, limit) = ((1 << 63) - 8, 100_000_000);
    assert_eq!(refusal(&[], &options), (ErrorKind::HeaderTooLarge { len, limit }, None));

    let mut tight = default;
    tight.limits = Limits::TIGHT;
    let long = "n".repeat(1025);
    let (what, len, limit) = (StringKind::Name, 1025, 1024);
    let expected = (ErrorKind::StringTooLong { what, len, limit }, Some(0));
    assert_eq!(refusal(&[(&long, Dtype::U8, &[1])], &tight), expected);
    let expected = (ErrorKind::DtypeNotAccepted { dtype: f4 }, Some(1));
    assert_eq!(refusal(&[("a", Dtype::U8, &[1]), ("b", f4, &[2])], &tight), expected);
    let expected = (ErrorKind::RankTooLarge { limit: 16 }, Some(0));
    assert_eq!(refusal(&[("a", Dtype::U8, &[1; 17])], &tight), expected);

    let mut pairs = [("k", "1"), ("j", "2"), ("k", "3")];
    let error = Plan::new(&mut [], Some(&mut pairs), &default).unwrap_err();
    assert_eq!((error.kind(), error.tensor()), (ErrorKind::MetadataKeyRepeated, None));
    let mut repeated = [
        PlanTensor::new("a", Dtype::U8, Shape::new(&[1])),
        PlanTensor::new("a", Dtype::U8, Shape::new(&[1])),
    ];
    let error = Plan::new(&mut repeated, None, &default).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tensor at index 1: duplicate name, first used by the tensor at index 0"
    );
}

fn with_align(align: u64) -> PlanOptions {
    let mut options = PlanOptions::default();
    options.align = align;
    options
}

#[test]
fn data_of_the_wrong_length_is_refused() {
    let mut short = spec("a", Dtype::F32, &[2, 2]);
    short.data.pop();
    let error = serialize([("a", &short)], None).unwrap_err();
    assert_eq!(error.refusal(), Some(ErrorKind::DataMissing { needed: 16, written: 15 }));
    assert_eq!(error.tensor(), Some("a"));
    assert_eq!(error.to_string(), "tensor \"a\": only 15 of its 16 bytes were written");
    let mut long = spec("b\n", Dtype::I8, &[]);
    long.data.push(0);
    let error = serialize([("b\n", &long)], None).unwrap_err();
    let sentence = "tensor \"b\\n\": it has 1 bytes, but 2 were supplied";
    assert_eq!(error.to_string(), sentence);
    let two = [("x", spec("x", Dtype::U8, &[1])), ("x", spec("x", Dtype::I8, &[1]))];
    let error = serialize(two, None).unwrap_err();
    assert_eq!(error.tensor(), Some("x"));
    assert_eq!(error.refusal(), Some(ErrorKind::NameRepeated { first: 0 }));
}

#[test]
fn headers_of_any_length_are_padded_with_spaces() {
    for align in [1, 2, 8, 64, 4096] {
        for len in 0..=2 * align.min(64) as usize {
            let name = "n".repeat(len);
            let views = [(name.as_str(), spec(&name, Dtype::U8, &[3]))];
            let file = serialize_with(views, None, &with_align(align)).unwrap();
            let header_len = u64::from_le_bytes(*file.first_chunk().unwrap());
            assert_eq!((8 + header_len) % align, 0);
            let header = std::str::from_utf8(&file[8..8 + header_len as usize]).unwrap();
            let padding = header.len() - header.trim_end_matches(' ').len();
            assert!((padding as u64) < align && header.trim_end_matches(' ').ends_with('}'));
            SafeTensors::deserialize_with(&file, &Limits::STRICT).unwrap();
        }
    }
}

#[test]
fn plans_predict_the_file() {
    let mut rng = Rng(5);
    for _ in 0..50 {
        let model = Model::random(&mut rng, 9);
        let options = with_align(64);
        let mut tensors: Vec<_> = model
            .tensors
            .iter()
            .map(|spec| PlanTensor::new(&spec.name, spec.dtype, Shape::wide(&spec.shape)))
            .collect();
        let map = metadata(&model);
        let mut pairs: Option<Vec<(&str, &str)>> =
            map.as_ref().map(|map| map.iter().rev().map(|(k, v)| (&**k, &**v)).collect());
        let plan = Plan::new(&mut tensors, pairs.as_deref_mut(), &options).unwrap();
        let file = serialize_with(model.views(), map.clone(), &options).unwrap();
        assert_eq!(plan.file_len(), file.len() as u64);
        let start = plan.data_start() as usize;
        let mut buffer = vec![1; start + 1];
        assert_eq!(plan.copy_to(&mut buffer), Ok(start));
        assert_eq!(buffer[..start], file[..start]);
        assert_eq!(buffer[start], 1);
        let short = plan.copy_to(&mut buffer[..start - 1]).unwrap_err();
        let (needed, given) = (start as u64, start as u64 - 1);
        assert_eq!(short.kind(), ErrorKind::BufferLength { needed, given });
        let mut text = String::new();
        plan.write_header(&mut text).unwrap();
        assert_eq!(text.as_bytes(), &file[8..start]);
        let mut slots = vec![TensorSlot::EMPTY; 64];
        let read = SafeTensors::parse(&file, &mut slots).unwrap();
        for tensor in plan.tensors() {
            let info = read.table().info(tensor.name()).unwrap();
            assert_eq!(info.data_offsets, tensor.data_offsets());
            assert_eq!((info.shape, info.dtype), (tensor.shape(), tensor.dtype()));
            assert_eq!(model.tensors[tensor.index()].name, tensor.name());
        }
        let mut builder = PlanBuilder::with_options(options);
        for spec in &model.tensors {
            builder.tensor(&*spec.name, spec.dtype, spec.shape.iter().copied());
        }
        if let Some(map) = map.as_ref().filter(|map| !map.is_empty()) {
            for (key, value) in map {
                builder.metadata(key, "before").metadata(key, value);
            }
            let owned = builder.plan().unwrap();
            assert_eq!((owned.frame(), owned.header()), (plan.frame(), text.as_str()));
            assert_eq!(owned.file_len(), plan.file_len());
        }
    }
}

#[test]
fn plans_of_many_tensors_are_fast() {
    // Names with a long common prefix, in reverse order. Quadratic steps would take far too long.
    let names: Vec<String> =
        (0..50_000).rev().map(|i| format!("{}{i:08}", "model.layers.".repeat(3))).collect();
    let mut tensors: Vec<_> =
        names.iter().map(|name| PlanTensor::new(name, Dtype::U8, Shape::new(&[0]))).collect();
    let plan = Plan::new(&mut tensors, None, &PlanOptions::default()).unwrap();
    assert!(plan.tensors().windows(2).all(|pair| pair[0].name() < pair[1].name()));
    assert_eq!(plan.tensors()[0].index(), 49_999);
}
