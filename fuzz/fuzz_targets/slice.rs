//! Applies any indexers to any shape. The result, the byte ranges, the bytes and the values of a
//! slice match a list of its elements, in memory and from a source. For shapes too large to list,
//! the ranges stay inside the tensor, are in order, and add up to the slice's length.

#![no_main]

use std::num::NonZeroU64;
use std::ops::{Bound, ControlFlow};

use arbitrary::Arbitrary;
use libfuzzer_sys::{fuzz_target, Corpus};
use safetensors_zero::{
    slice::MAX_INDEXERS, Dtype, ErrorKind, Limits, Reader, Shape, Slice, TensorIndexer, TensorSlot,
    TensorView,
};

#[path = "../../tests/support/file.rs"]
#[allow(dead_code)]
mod file;
#[path = "../../tests/support/naive.rs"]
#[allow(dead_code)]
mod naive;

#[derive(Debug, Arbitrary)]
struct Input {
    dtype: u8,
    size: Size,
    indexers: Vec<Indexer>,
    buffer: u8,
}

#[derive(Debug, Arbitrary)]
enum Size {
    Small(Vec<u8>),
    Large(Vec<usize>),
}

#[derive(Debug, Arbitrary)]
enum Indexer {
    Select(Index),
    Narrow(Bound<Index>, Bound<Index>, Step),
}

/// An index, usually close to 0 or to the dimension's size.
#[derive(Debug, Arbitrary)]
enum Index {
    Small(u8),
    FromEnd(u8),
    Any(u64),
}

#[derive(Debug, Arbitrary)]
enum Step {
    Small(u8),
    Any(NonZeroU64),
}

impl Index {
    fn of(&self, size: u64) -> u64 {
        match *self {
            Index::Small(index) => u64::from(index % 12),
            Index::FromEnd(index) => size.saturating_sub(u64::from(index % 12)),
            Index::Any(index) => index,
        }
    }
}

fn indexer(indexer: &Indexer, size: u64) -> TensorIndexer {
    match indexer {
        Indexer::Select(index) => TensorIndexer::Select(index.of(size)),
        Indexer::Narrow(start, stop, step) => {
            let bound = |bound: &Bound<Index>| bound.as_ref().map(|index| index.of(size));
            let step = match step {
                Step::Small(step) => NonZeroU64::new(u64::from(step % 5) + 1).unwrap(),
                Step::Any(step) => *step,
            };
            TensorIndexer::Narrow(bound(start), bound(stop), step)
        }
    }
}

/// The selection in one dimension: the first index, the exclusive end, and the step.
#[derive(Debug, Clone, Copy)]
struct Taken {
    start: u128,
    stop: u128,
    step: u128,
    kept: bool,
}

impl Taken {
    fn count(&self) -> u128 {
        (self.stop - self.start).div_ceil(self.step)
    }
}

/// Computes the selection of indexers from their definition, in integers that can't overflow.
fn taken(sizes: &[u64], indexers: &[TensorIndexer]) -> Result<Vec<Taken>, ErrorKind> {
    let given = indexers.len() as u64;
    if indexers.len() > MAX_INDEXERS {
        return Err(ErrorKind::TooManyIndexers { given, limit: MAX_INDEXERS as u64 });
    }
    let one = |(dimension, indexer): (usize, &TensorIndexer)| {
        let limit = sizes.len() as u64;
        let size = *sizes.get(dimension).ok_or(ErrorKind::TooManyIndexers { given, limit })?;
        let dimension = dimension as u32;
        let out_of_range = |index| ErrorKind::IndexOutOfRange { dimension, index, size };
        let after = |index: u64| index.checked_add(1).ok_or(out_of_range(index));
        match *indexer {
            TensorIndexer::Select(index) if index >= size => Err(out_of_range(index)),
            TensorIndexer::Select(index) => {
                let start = u128::from(index);
                Ok(Taken { start, stop: start + 1, step: 1, kept: false })
            }
            TensorIndexer::Narrow(start, stop, step) => {
                let start = match start {
                    Bound::Included(start) => start,
                    Bound::Excluded(before) => after(before)?,
                    Bound::Unbounded => 0,
                };
                let stop = match stop {
                    Bound::Included(last) => after(last)?,
                    Bound::Excluded(stop) => stop,
                    Bound::Unbounded => size,
                };
                if stop > size {
                    return Err(out_of_range(stop));
                }
                if start > stop {
                    return Err(ErrorKind::IndexReversed { dimension, start, stop });
                }
                let (start, stop, step) = (start.into(), stop.into(), step.get().into());
                Ok(Taken { start, stop, step, kept: true })
            }
        }
    };
    indexers.iter().enumerate().map(one).collect()
}

fuzz_target!(|input: Input| -> Corpus {
    let dtype = Dtype::ALL[usize::from(input.dtype) % Dtype::ALL.len()];
    let shape: Vec<usize> = match &input.size {
        Size::Small(sizes) => sizes.iter().take(6).map(|size| usize::from(size % 9)).collect(),
        Size::Large(sizes) => sizes.clone(),
    };
    let sizes: Vec<u64> = shape.iter().map(|size| *size as u64).collect();
    let sizes_or_none = sizes.iter().copied().chain(std::iter::repeat(0));
    let indexers: Vec<_> = input
        .indexers
        .iter()
        .zip(sizes_or_none)
        .map(|(given, size)| indexer(given, size))
        .collect();
    let taken = taken(&sizes, &indexers);
    match input.size {
        Size::Small(_) if shape.iter().product::<usize>() > 4096 => return Corpus::Reject,
        Size::Small(_) => small(dtype, &shape, &indexers, taken, usize::from(input.buffer)),
        Size::Large(_) => large(dtype, &shape, &indexers, taken),
    }
    Corpus::Keep
});

fn small(
    dtype: Dtype,
    shape: &[usize],
    indexers: &[TensorIndexer],
    taken: Result<Vec<Taken>, ErrorKind>,
    buffer: usize,
) {
    let slice = Slice::new(dtype, Shape::new(shape), indexers);
    let taken = match taken {
        Ok(taken) => taken,
        Err(kind) => return assert_eq!(slice.unwrap_err().kind(), kind, "{shape:?} {indexers:?}"),
    };
    let sizes: Vec<u64> = shape.iter().map(|size| *size as u64).collect();
    let picks: Vec<naive::Pick> = taken
        .iter()
        .map(|taken| naive::Pick {
            indexes: (0..taken.count()).map(|i| (taken.start + i * taken.step) as u64).collect(),
            kept: taken.kept,
        })
        .collect();
    let elements = naive::elements(&sizes, &picks);
    let bits = dtype.bitsize() as u64;
    let runs = naive::runs(&elements);
    let whole = runs.iter().all(|run| run.start * bits % 8 == 0 && run.end * bits % 8 == 0);
    if !whole {
        let kind = slice.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::PartialByteSlice { dtype }, "{shape:?} {indexers:?}");
        return;
    }
    let slice = slice.unwrap_or_else(|error| panic!("{error}: {dtype} {shape:?} {indexers:?}"));
    let kept = picks.iter().filter(|pick| pick.kept).map(|pick| pick.indexes.len() as u64);
    assert!(slice.shape().eq(kept.chain(sizes[picks.len()..].iter().copied())));
    assert_eq!(slice.elements(), elements.len() as u64);
    let ranges: Vec<_> = runs.iter().map(|run| run.start * bits / 8..run.end * bits / 8).collect();
    assert!(slice.runs().eq(ranges.iter().cloned()), "{dtype} {shape:?} {indexers:?}");

    let all: usize = shape.iter().product();
    if all * dtype.bitsize() % 8 == 0 {
        // Bytes that depend on their position.
        let len = all * dtype.bitsize() / 8;
        let data: Vec<u8> = (0..len).map(|i| (i * 167 + i / 256) as u8).collect();
        let expected: Vec<u8> = ranges
            .iter()
            .flat_map(|range| &data[range.start as usize..range.end as usize])
            .copied()
            .collect();
        contents(dtype, shape, indexers, &data, &expected, 8 + buffer);
    }
}

/// Checks the bytes and the values of a slice, in memory and from a source.
fn contents(
    dtype: Dtype,
    shape: &[usize],
    indexers: &[TensorIndexer],
    data: &[u8],
    expected: &[u8],
    buffer: usize,
) {
    let view = TensorView::new(dtype, shape, data).unwrap();
    let slice = view.slice(indexers).unwrap();
    let mut bytes = vec![0xa5; expected.len()];
    slice.copy_to(&mut bytes).unwrap();
    assert_eq!(bytes, expected);
    assert!(slice.iter().flatten().eq(expected));

    let header = format!(
        r#"{{"t":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[0,{}]}}}}"#,
        data.len()
    );
    let file = file::file(header, data);
    let (mut text, mut slots) = (vec![0; file.len()], [TensorSlot::EMPTY; 1]);
    let reader = Reader::open(&*file, &mut text, &mut slots, &Limits::DEFAULT).unwrap();
    let tensor = reader.tensor("t").unwrap();
    let from_source = tensor.slice(indexers).unwrap();
    let mut bytes = vec![0xa5; expected.len()];
    from_source.read_into(&mut bytes).unwrap();
    assert_eq!(bytes, expected);
    let (mut pieces, mut buffer) = (Vec::new(), vec![0; buffer]);
    let done = from_source.read_pieces(&mut buffer, |piece| {
        pieces.extend_from_slice(piece);
        ControlFlow::<()>::Continue(())
    });
    assert!(done.unwrap().is_continue());
    assert_eq!(pieces, expected);

    let mut values = vec![0.5; slice.elements() as usize];
    let mut others = values.clone();
    let result = slice.dequant_into(&mut values);
    let other = from_source.dequant_into(&mut others, &mut buffer);
    if dtype == Dtype::C64 {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NoF32 { dtype });
        assert_eq!(other.unwrap_err().invalid().unwrap().kind(), ErrorKind::NoF32 { dtype });
        return;
    }
    result.unwrap();
    other.unwrap();
    let all = naive::widen(dtype, expected);
    assert!(all.iter().zip(&values).all(|(a, b)| naive::same(*a, *b)), "{dtype}");
    assert!(all.iter().zip(&others).all(|(a, b)| naive::same(*a, *b)), "{dtype} from a source");
}

fn large(
    dtype: Dtype,
    shape: &[usize],
    indexers: &[TensorIndexer],
    taken: Result<Vec<Taken>, ErrorKind>,
) {
    let slice = Slice::new(dtype, Shape::new(shape), indexers);
    let all = product(shape.iter().map(|size| *size as u128));
    let Ok(all) = u64::try_from(all) else {
        let kind = slice.unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::ShapeOverflow | ErrorKind::TooManyIndexers { .. }));
        return;
    };
    let bits = dtype.bitsize() as u128;
    let taken = match taken {
        Ok(taken) => taken,
        Err(kind) => return assert_eq!(slice.unwrap_err().kind(), kind, "{shape:?} {indexers:?}"),
    };
    let rest = shape[taken.len()..].iter().map(|size| *size as u128);
    let elements = product(taken.iter().map(Taken::count).chain(rest));
    let slice = match slice {
        Ok(slice) => slice,
        Err(error) => {
            // The slice has partial bytes, or the tensor's length in bytes exceeds 64 bits.
            assert_eq!(error.kind(), ErrorKind::PartialByteSlice { dtype });
            assert!(bits < 8 || u128::from(all) * bits / 8 > u128::from(u64::MAX));
            return;
        }
    };
    assert_eq!(u128::from(slice.elements()), elements, "{shape:?} {indexers:?}");
    if u128::from(all) * bits / 8 > u128::from(u64::MAX) {
        return;
    }
    let mut strides = vec![1_u128; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(shape[i] as u128);
    }
    let starts = taken.iter().zip(&strides).map(|(taken, stride)| (taken.start, *stride));
    let first = starts
        .fold(0_u128, |first, (start, stride)| first.saturating_add(start.saturating_mul(stride)));
    let (mut end, mut sum, mut ended) = (None, 0_u128, true);
    for (i, run) in slice.runs().enumerate() {
        if i == 100 {
            ended = false;
            break;
        }
        match end {
            None => assert_eq!(u128::from(run.start), first * bits / 8, "{shape:?} {indexers:?}"),
            Some(end) => assert!(run.start > end, "{shape:?} {indexers:?}"),
        }
        assert!(run.end > run.start && u128::from(run.end) <= u128::from(all) * bits / 8);
        sum += u128::from(run.end - run.start);
        end = Some(run.end);
    }
    assert!(if ended { sum * 8 == elements * bits } else { sum * 8 < elements * bits });
}

fn product(numbers: impl Iterator<Item = u128> + Clone) -> u128 {
    if numbers.clone().any(|number| number == 0) {
        return 0;
    }
    numbers.fold(1, u128::saturating_mul)
}
