//! Dequantises any bytes as any dtype. Values match the dtype's definition. A range has the same
//! bits as that part of the whole, from memory and from a source with a buffer of any size. A failed
//! request leaves the output unchanged. The statistics match the values.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::{fuzz_target, Corpus};
use safetensors_zero::{dequant, Dtype, ErrorKind, Limits, Reader, SafeTensors, Stats, TensorSlot};

#[path = "../../tests/support/file.rs"]
#[allow(dead_code)]
mod file;
#[path = "../../tests/support/naive.rs"]
#[allow(dead_code)]
mod naive;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    dtype: u8,
    first: u16,
    count: u16,
    columns: u8,
    buffer: u8,
    data: &'a [u8],
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A NaN with a payload that dequantisation never produces.
const UNTOUCHED: f32 = f32::from_bits(0x7fc1_2345);

fuzz_target!(|input: Input<'_>| -> Corpus {
    let dtype = Dtype::ALL[usize::from(input.dtype) % Dtype::ALL.len()];
    if input.data.len() > 4096 {
        return Corpus::Reject;
    }
    if dtype == Dtype::C64 {
        refuses(input.data);
        return Corpus::Keep;
    }
    let mut expected = naive::widen(dtype, input.data);
    if dtype.bitsize() == 6 {
        // An incomplete group of three bytes at the end has no elements.
        expected.truncate(input.data.len() / 3 * 4);
    }
    let mut whole = vec![UNTOUCHED; expected.len()];
    dequant::dequant_into(dtype, input.data, &mut whole).unwrap();
    let same = whole.iter().zip(&expected).all(|(a, b)| naive::same(*a, *b));
    assert!(same, "{dtype}: {whole:?}, by definition {expected:?}");

    let first = usize::from(input.first) % (whole.len() + 2);
    let count = usize::from(input.count) % (whole.len() + 2);
    let mut out = vec![UNTOUCHED; count];
    let result = dequant::dequant_range(dtype, input.data, first as u64, &mut out);
    match whole.get(first..first + count) {
        Some(part) => {
            result.unwrap();
            assert_eq!(bits(&out), bits(part), "{dtype} {first} {count}");
        }
        None => {
            let kind = result.unwrap_err().kind();
            assert!(matches!(kind, ErrorKind::RangeOutOfBounds { .. }), "{kind:?}");
            assert!(out.iter().all(|value| value.to_bits() == UNTOUCHED.to_bits()));
        }
    }
    tensor(&input, dtype, &whole, first, count);
    Corpus::Keep
});

fn refuses(data: &[u8]) {
    let mut out = vec![UNTOUCHED; data.len() / 8];
    let error = dequant::dequant_range(Dtype::C64, data, 0, &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoF32 { dtype: Dtype::C64 });
    assert!(out.iter().all(|value| value.to_bits() == UNTOUCHED.to_bits()));
}

/// Checks the same bytes as a tensor in a file, with as many whole rows as they fill.
fn tensor(input: &Input<'_>, dtype: Dtype, whole: &[f32], first: usize, count: usize) {
    let columns = usize::from(input.columns) + 1;
    let mut rows = whole.len() / columns;
    while rows * columns * dtype.bitsize() % 8 != 0 {
        rows -= 1;
    }
    let elements = rows * columns;
    let whole = &whole[..elements];
    let data = &input.data[..elements * dtype.bitsize() / 8];
    let header = format!(
        r#"{{"t":{{"dtype":"{dtype}","shape":[{rows},{columns}],"data_offsets":[0,{}]}}}}"#,
        data.len()
    );
    let file = file::file(header, data);
    let mut slots = [TensorSlot::EMPTY; 1];
    let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
    let view = tensors.tensor("t").unwrap();
    // Without data the length of a row is 0.
    assert_eq!(view.row_len(), Ok(if rows == 0 { 0 } else { columns as u64 }));
    let (mut text, mut slots) = (vec![0; file.len()], [TensorSlot::EMPTY; 1]);
    let reader = Reader::open(&*file, &mut text, &mut slots, &Limits::DEFAULT).unwrap();
    let from_source = reader.tensor("t").unwrap();
    let mut buffer = vec![0; 8 + usize::from(input.buffer)];

    let part = whole.get(first..first + count);
    let mut out = vec![UNTOUCHED; count];
    let result = from_source.dequant_range(first as u64, &mut out, &mut buffer);
    assert_eq!(result.is_ok(), part.is_some());
    if let Some(part) = part {
        assert_eq!(bits(&out), bits(part), "{dtype} {first} {count} from a source");
    }
    // The same values, read as rows.
    let (begin, end) = (first.min(rows), (first + count).min(rows));
    let part = &whole[begin * columns..end * columns];
    let mut out = vec![UNTOUCHED; part.len()];
    view.dequant_rows(begin as u64..end as u64, &mut out).unwrap();
    assert_eq!(bits(&out), bits(part), "{dtype} rows {begin}..{end}");
    let mut out = vec![UNTOUCHED; part.len()];
    from_source.dequant_rows(begin as u64..end as u64, &mut out, &mut buffer).unwrap();
    assert_eq!(bits(&out), bits(part), "{dtype} rows {begin}..{end} from a source");

    let stats = view.stats().unwrap();
    same_stats(&from_source.stats(&mut buffer).unwrap(), &stats);
    check_stats(&stats, dtype, whole, data);
}

/// Checks that statistics computed piece by piece match those of the whole. Means and deviations
/// can differ slightly, because sums in another order round differently.
fn same_stats(pieces: &Stats, whole: &Stats) {
    let (mut counts, mut others) = (*pieces, *whole);
    for stats in [&mut counts, &mut others] {
        (stats.mean, stats.std_dev) = (None, None);
    }
    assert_eq!(counts, others);
    let (Some(min), Some(max)) = (whole.min, whole.max) else { return };
    // Subnormal numbers have less precision, so a relative tolerance is too strict for them.
    let scale = min.abs().max(max.abs()).max(1e-290);
    for stats in [pieces, whole] {
        let mean = stats.mean.unwrap();
        assert!(mean >= min - scale * 1e-9 && mean <= max + scale * 1e-9, "{stats:?}");
        assert!(stats.std_dev.unwrap() >= 0.0, "{stats:?}");
    }
    let close = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() <= scale * 1e-6;
    assert!(close(pieces.mean, whole.mean), "{pieces:?} {whole:?}");
    // Outside this range the squares of deviations overflow or underflow.
    let squares = (1e-150..1e150).contains(&scale);
    assert!(!squares || close(pieces.std_dev, whole.std_dev), "{pieces:?} {whole:?}");
}

/// Checks statistics against the dequantised values, as far as rounding to `f32` can't change them.
fn check_stats(stats: &Stats, dtype: Dtype, whole: &[f32], data: &[u8]) {
    let count = |is: fn(f64) -> bool| {
        let values = whole.iter().map(|value| f64::from(*value));
        if dtype == Dtype::F64 {
            let exact = data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap()));
            return exact.filter(|value| is(*value)).count() as u64;
        }
        values.filter(|value| is(*value)).count() as u64
    };
    assert_eq!(stats.count, whole.len() as u64);
    assert_eq!(stats.nan, count(f64::is_nan), "{dtype}");
    assert_eq!(stats.positive_infinity, count(|value| value == f64::INFINITY), "{dtype}");
    assert_eq!(stats.negative_infinity, count(|value| value == f64::NEG_INFINITY), "{dtype}");
    assert_eq!(stats.zeros, count(|value| value == 0.0), "{dtype}");
    assert_eq!(stats.finite, count(f64::is_finite), "{dtype}");
    let some = stats.finite > 0;
    assert!([stats.min, stats.max, stats.mean, stats.std_dev].iter().all(|s| s.is_some() == some));
    if matches!(dtype, Dtype::F64 | Dtype::I64 | Dtype::U64 | Dtype::I32 | Dtype::U32) {
        return;
    }
    let finite = || whole.iter().copied().filter(|value| value.is_finite());
    assert_eq!(stats.min, finite().reduce(f32::min).map(f64::from), "{dtype}");
    assert_eq!(stats.max, finite().reduce(f32::max).map(f64::from), "{dtype}");
}
