//! Promise: every corpus file gets the expected verdict and error under default and strict limits,
//! and accepted files contain the expected tensors and values, bit for bit.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use safetensors_zero::{
    Dtype, Error, ErrorKind, Limits, SafeTensors, TensorIndexer, TensorSlot, TensorView,
};
use support::corpus::{self, Case, Reason};
use support::naive;
use support::paths::{self, Tensor};

fn verdict(case: &Case, limits: &Limits) -> (&'static str, Option<Reason>) {
    match paths::read(&case.bytes(), limits) {
        Ok(_) => ("accept", None),
        Err(error) => ("reject", Some((error.kind().name().to_owned(), error.byte()))),
    }
}

#[test]
fn verdicts_and_errors_match_the_manifest() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in corpus::files() {
        count += 1;
        let (default, default_error) = verdict(&case, &Limits::DEFAULT);
        let (strict, strict_error) = verdict(&case, &Limits::STRICT);
        if (default, strict) != (&*case.default, &*case.strict) {
            wrong.push(format!("{}: {default_error:?} {strict_error:?}", case.id));
        }
        let errors = case.errors.clone().unwrap_or_default();
        if errors != [default_error.clone(), strict_error.clone()] {
            wrong.push(format!("{}: errors {default_error:?} {strict_error:?}", case.id));
        }
    }
    assert_eq!(count, 209, "number of file cases");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn accepted_files_contain_the_expected_tensors() {
    let mut count = 0;
    for case in corpus::files().iter().filter(|case| case.default == "accept") {
        let view = case.view.as_ref().unwrap_or_else(|| panic!("{}: no view", case.id));
        let bytes = case.bytes();
        let content = paths::read(&bytes, &Limits::DEFAULT).unwrap();
        assert_eq!(content.data_start, view.data_start, "{}", case.id);
        assert_eq!(content.tensors.len(), view.count, "{}", case.id);
        let metadata = content.metadata.map(|pairs| pairs.into_iter().collect());
        assert_eq!(metadata, view.metadata, "{}", case.id);

        let mut slots = vec![TensorSlot::EMPTY; 1000];
        let tensors = SafeTensors::parse(&bytes, &mut slots).unwrap();
        for (name, (dtype, shape, data_offsets, data)) in view.tensors.iter().flatten() {
            let expected = Tensor {
                name: name.clone(),
                dtype: dtype.parse().unwrap(),
                shape: shape.clone(),
                data_offsets: *data_offsets,
            };
            let info = tensors.table().info(name).unwrap_or_else(|e| panic!("{}: {e}", case.id));
            assert_eq!(Tensor::of(&info), expected, "{}", case.id);
            let found: String =
                tensors.tensor(name).unwrap().data().iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(found, *data, "{}", case.id);
        }
        count += 1;
    }
    assert_eq!(count, 74, "number of accepted cases");
}

#[test]
fn values_match_bit_for_bit() {
    let mut count = 0;
    for case in corpus::files() {
        for (name, values) in case.values.iter().flatten() {
            let bytes = case.bytes();
            let mut slots = [TensorSlot::EMPTY; 8];
            let tensors = SafeTensors::parse(&bytes, &mut slots).unwrap();
            let mut out = vec![0.0; values.len()];
            tensors.tensor(name).unwrap().dequant_into(&mut out).unwrap();
            for (i, (value, expected)) in out.iter().zip(values).enumerate() {
                let nan = value.is_nan();
                let right = match expected.as_str() {
                    "nan" => nan && value.is_sign_positive(),
                    "-nan" => nan && value.is_sign_negative(),
                    bits => {
                        let bits = u32::from_str_radix(bits, 16).unwrap();
                        // Hardware F16 conversion can quiet a signalling NaN.
                        let quiet =
                            nan && case.id == "val-f16" && value.to_bits() == bits | 0x0040_0000;
                        value.to_bits() == bits || quiet
                    }
                };
                assert!(
                    right,
                    "{} {name}[{i}]: {:08x}, expected {expected}",
                    case.id,
                    value.to_bits()
                );
            }
            count += 1;
        }
    }
    assert_eq!(count, 18, "number of tensors with values");
}

/// Returns the slice's shape and bytes, or the error kind.
fn slice(
    view: &TensorView<'_>,
    indexers: &[TensorIndexer],
) -> Result<(Vec<u64>, Vec<u8>), ErrorKind> {
    let slice = view.slice(indexers).map_err(|error: Error| error.kind())?;
    Ok((slice.shape().collect(), slice.iter().flatten().copied().collect()))
}

/// The API cases. Each is recorded by its id, so that none is left out.
#[test]
fn api_cases() {
    let bytes: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
    let vector = TensorView::new(Dtype::U8, &[8], &bytes).unwrap();
    let matrix = TensorView::new(Dtype::U8, &[2, 4], &bytes).unwrap();
    let mut done = Vec::new();
    let mut case = |id: &'static str| done.push(id);

    case("api-slice-start-after-stop");
    #[allow(clippy::reversed_empty_ranges)]
    let reversed: TensorIndexer = (3..1).into();
    let error = |dimension| Err(ErrorKind::IndexReversed { dimension, start: 3, stop: 1 });
    assert_eq!(slice(&vector, &[reversed]), error(0));
    assert_eq!(slice(&matrix, &[(..).into(), reversed]), error(1));

    case("api-slice-empty-outer");
    assert_eq!(slice(&matrix, &[(0..0).into(), (0..2).into()]), Ok((vec![0, 2], vec![])));
    let stepped = TensorIndexer::stepped(0..0, 2).unwrap();
    assert_eq!(slice(&matrix, &[stepped]), Ok((vec![0, 4], vec![])));

    case("api-slice-end-end");
    for at in 0..=8 {
        assert_eq!(slice(&vector, &[(at..at).into()]), Ok((vec![0], vec![])));
    }
    assert_eq!(slice(&vector, &[(8..).into()]), Ok((vec![0], vec![])));

    case("api-slice-usize-max");
    let max = u64::MAX;
    let out = |index| Err(ErrorKind::IndexOutOfRange { dimension: 0, index, size: 8 });
    assert_eq!(slice(&vector, &[max.into()]), out(max));
    assert_eq!(slice(&vector, &[(..=max).into()]), out(max));
    assert_eq!(
        slice(&vector, &[(max..).into()]),
        Err(ErrorKind::IndexReversed { dimension: 0, start: max, stop: 8 })
    );

    case("api-slice-huge-zero");
    let file = support::file::file(
        r#"{"t":{"dtype":"U8","shape":[0,9223372036854775808,4],"data_offsets":[0,0]}}"#,
        &[],
    );
    let mut slots = [TensorSlot::EMPTY; 1];
    let huge = SafeTensors::parse(&file, &mut slots).unwrap().tensor("t").unwrap();
    assert_eq!(slice(&huge, &[]), Ok((vec![0, 1 << 63, 4], vec![])));
    let inner = slice(&huge, &[(..).into(), (7..).into(), 3.into()]);
    assert_eq!(inner, Ok((vec![0, (1 << 63) - 7], vec![])));

    case("api-slice-out-of-range");
    assert_eq!(slice(&vector, &[(0..20).into()]), out(20));
    assert_eq!(slice(&vector, &[8.into()]), out(8));

    case("api-slice-f4-odd");
    let f4 = TensorView::new(Dtype::F4, &[2, 8], &bytes).unwrap();
    let odd = slice(&f4, &[0.into(), (1..3).into()]);
    assert_eq!(odd, Err(ErrorKind::PartialByteSlice { dtype: Dtype::F4 }));
    assert_eq!(slice(&f4, &[1.into(), (2..6).into()]), Ok((vec![4], vec![5, 6])));

    case("api-view-new-overflow");
    #[cfg(target_pointer_width = "64")]
    for (shape, bytes) in [([1 << 32, 1 << 32], 0), ([(1 << 63) + 2, 2], 4), ([1 << 61, 1], 0)] {
        assert!(TensorView::new(Dtype::F64, &shape, &bytes_of(bytes)).is_err(), "{shape:?}");
        let kind = TensorView::new(Dtype::U8, &shape, &bytes_of(bytes)).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::ShapeOverflow | ErrorKind::SizeMismatch { .. }));
    }

    let cases = corpus::cases();
    let expected: Vec<&str> =
        cases.iter().filter(|case| case.kind == "api").map(|case| case.id.as_str()).collect();
    assert_eq!(done, expected);
}

#[cfg(target_pointer_width = "64")]
fn bytes_of(len: usize) -> Vec<u8> {
    vec![0; len]
}

/// Checks that every remaining case has a test file that mentions its id.
#[test]
fn every_case_is_covered() {
    let covered_by = [
        ("big-5gib", "files"),
        ("big-600mb", "files"),
        ("run-bits-32", "files"),
        ("run-fifo", "files"),
        ("run-header-132mb", "limits"),
        ("run-mmap-overwrite", "saving"),
        ("run-mmap-truncated", "files"),
        ("run-mmap-unsupported", "files"),
        ("write-atomic", "saving"),
        ("write-deterministic", "writing"),
        ("write-duplicate-names", "writing"),
        ("write-metadata-name", "writing"),
        ("write-pad-spaces", "writing"),
        ("write-size-mismatch", "writing"),
    ];
    let test_file =
        |id: &str| covered_by.iter().find(|(case, _)| *case == id).map(|(_, file)| *file);
    let cases = corpus::cases();
    assert_eq!(cases.len(), 258);
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mentions = |file: &str, id: &str| {
        std::fs::read_to_string(tests.join(file).with_extension("rs")).unwrap().contains(id)
    };
    for case in cases.iter().filter(|case| !case.is_file() && case.kind != "api") {
        let by_shards = case.id.starts_with("index-").then_some("shards");
        let file = by_shards.or(test_file(&case.id));
        let file = file.unwrap_or_else(|| panic!("no test file covers {}", case.id));
        assert!(
            by_shards.is_some() || mentions(file, &case.id),
            "{file} does not mention {}",
            case.id
        );
    }
}

/// The naive implementation matches the corpus, so other tests can compare with it.
#[test]
fn the_naive_implementation_matches_the_corpus() {
    for case in corpus::files().iter().filter(|case| case.values.is_some()) {
        let bytes = case.bytes();
        let mut slots = [TensorSlot::EMPTY; 8];
        let tensors = SafeTensors::parse(&bytes, &mut slots).unwrap();
        for (name, view) in &tensors {
            let mut out = vec![0.0; view.elements() as usize];
            view.dequant_into(&mut out).unwrap();
            let expected = naive::widen(view.dtype(), view.data());
            assert!(
                out.iter().zip(&expected).all(|(a, b)| naive::same(*a, *b)),
                "{} {name}",
                case.id
            );
        }
    }
}
