//! Promise: reading from a source returns its exact bytes, and reads only the bytes requested.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::cell::Cell;
use std::ops::ControlFlow;

use quickcheck::{quickcheck, Arbitrary, Gen};
use safetensors_zero::{
    ErrorKind, Header, Limits, ReadError, Reader, SafeTensors, Source, TensorIndexer, TensorReader,
    TensorSlot, TensorView,
};
use support::model::Model;
use support::paths::Counted;
use support::rng::Rng;

/// A model, and a seed for the requests.
#[derive(Debug, Clone)]
struct Requests(Model, u64);

impl Arbitrary for Requests {
    fn arbitrary(g: &mut Gen) -> Self {
        Requests(Model::arbitrary(g), u64::arbitrary(g))
    }
}

/// The bits of the values, so that equal NaNs compare equal.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Makes random requests of `tensor` and compares the results with `view` and the bytes counted.
fn check<S: Source<Error: std::fmt::Debug>>(
    view: &TensorView<'_>,
    tensor: &TensorReader<'_, S>,
    read: &Cell<u64>,
    rng: &mut Rng,
) {
    let counted = |bytes: u64| assert_eq!(read.replace(0), bytes, "bytes read of {view:?}");
    let mut buffer = vec![0xff; *rng.choose(&[8, 9, 11, 12, 16, 24, 100])];
    let len = view.data().len();
    counted(0);

    let mut bytes = vec![0; len];
    tensor.read_into(&mut bytes).unwrap();
    assert_eq!(bytes, view.data());
    counted(len as u64);

    let (begin, end) = range(rng, len);
    let mut bytes = vec![0; end - begin];
    tensor.read_into_at(begin as u64, &mut bytes).unwrap();
    assert_eq!(bytes, view.data()[begin..end]);
    counted(bytes.len() as u64);

    let mut pieces = Vec::new();
    let done = tensor.read_pieces(&mut buffer, |piece| {
        pieces.extend_from_slice(piece);
        ControlFlow::<()>::Continue(())
    });
    assert!(done.unwrap().is_continue());
    assert_eq!(pieces, view.data());
    counted(len as u64);

    let elements = view.elements() as usize;
    let (first, end) = range(rng, elements);
    let mut out = vec![7.0; end - first];
    let mut expected = out.clone();
    let result = tensor.dequant_range(first as u64, &mut out, &mut buffer);
    let whole = view.dequant_range(first as u64, &mut expected);
    assert_eq!(result.map_err(|error| error.invalid().unwrap()), whole);
    assert_eq!(bits(&out), bits(&expected));
    // Only the bytes that contain the elements.
    let size = view.dtype().bitsize();
    let held = if first == end { 0 } else { (end * size).div_ceil(8) - first * size / 8 };
    counted(if whole.is_ok() { held as u64 } else { 0 });

    if let Ok(row_len) = view.row_len() {
        assert_eq!(tensor.row_len(), Ok(row_len));
        let rows = view.shape().iter().next().unwrap();
        let (begin, end) = range(rng, rows.min(1000) as usize);
        let mut out = vec![7.0; (end - begin) * row_len as usize];
        let mut expected = out.clone();
        let rows = begin as u64..end as u64;
        let result = tensor.dequant_rows(rows.clone(), &mut out, &mut buffer);
        assert_eq!(result.is_ok(), view.dequant_rows(rows, &mut expected).is_ok());
        assert_eq!(bits(&out), bits(&expected));
        read.set(0);
    }

    let indexers: Vec<TensorIndexer> = view
        .shape()
        .iter()
        .take(rng.below(4))
        .map(|size| match (size, rng.below(3)) {
            (1.., 0) => (rng.next() % size).into(),
            _ => {
                let (begin, end) = range(rng, size.min(1000) as usize);
                let step = 1 + rng.below(3) as u64;
                TensorIndexer::stepped(begin as u64..end as u64, step).unwrap()
            }
        })
        .collect();
    match (view.slice(&indexers), tensor.slice(&indexers)) {
        (Ok(in_memory), Ok(slice)) => {
            assert!(in_memory.shape().eq(slice.shape()));
            let mut bytes = vec![0; slice.byte_len() as usize];
            let mut expected = bytes.clone();
            slice.read_into(&mut bytes).unwrap();
            in_memory.copy_to(&mut expected).unwrap();
            assert_eq!(bytes, expected);
            assert_eq!(read.replace(0), slice.byte_len());
            let mut pieces = Vec::new();
            let done = slice.read_pieces(&mut buffer, |piece| {
                pieces.extend_from_slice(piece);
                ControlFlow::<()>::Continue(())
            });
            assert!(done.unwrap().is_continue());
            assert_eq!(pieces, expected);
            assert_eq!(read.replace(0), slice.byte_len());
            let mut out = vec![7.0; slice.elements() as usize];
            let mut expected = out.clone();
            let result = slice.dequant_into(&mut out, &mut buffer);
            assert_eq!(result.is_ok(), in_memory.dequant_into(&mut expected).is_ok());
            assert_eq!(bits(&out), bits(&expected));
            assert!(read.replace(0) <= slice.byte_len());
        }
        (a, b) => assert_eq!(a.map(|_| ()), b.map(|_| ())),
    }
    match (view.stats(), tensor.stats(&mut buffer)) {
        (Ok(a), Ok(b)) => {
            // The mean and deviation can differ, because they are summed over other pieces.
            let counts =
                |s: safetensors_zero::Stats| (s.count, s.finite, s.nan, s.zeros, s.min, s.max);
            assert_eq!(counts(a), counts(b));
        }
        (a, b) => assert_eq!(a.err(), b.err().and_then(|error| error.invalid())),
    }
    read.set(0);
}

/// A random range within `0..len`.
fn range(rng: &mut Rng, len: usize) -> (usize, usize) {
    let begin = rng.below(len + 1);
    (begin, begin + rng.below(len - begin + 1))
}

quickcheck! {
    fn requests_read_exactly_their_bytes(requests: Requests) -> bool {
        let Requests(model, seed) = requests;
        let mut rng = Rng(seed);
        let (file, content) = model.write();
        let mut slots = [TensorSlot::EMPTY; 200];
        let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
        let source = Counted { bytes: &file, read: Cell::new(0) };
        let mut header = vec![0; file.len()];
        let mut other_slots = [TensorSlot::EMPTY; 200];
        let reader =
            Reader::open(&source, &mut header, &mut other_slots, &Limits::default()).unwrap();
        source.read.set(0);
        assert_eq!(reader.tensors().count(), tensors.len());
        for (tensor, (name, view)) in reader.tensors().zip(&tensors) {
            assert_eq!(tensor.name(), name);
            check(&view, &reader.tensor(&name.to_string()).unwrap(), &source.read, &mut rng);
            let range = tensor.file_range();
            assert_eq!(view.data(), &file[range.start as usize..range.end as usize]);
        }
        // Without slots.
        let mut text = vec![0; file.len()];
        let header = Header::read_from(&source, &mut text, &Limits::default()).unwrap();
        source.read.set(0);
        if let Some(tensor) = content.tensors.first() {
            let found = header.find(&tensor.name).unwrap();
            let view = tensors.tensor(&tensor.name).unwrap();
            check(&view, &TensorReader::new(&source, &header, found.info), &source.read, &mut rng);
        }
        true
    }
}

#[test]
fn invalid_requests_and_failed_reads_are_errors() {
    let file =
        support::file::file(r#"{"t":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}}"#, &[0; 8]);
    let limits = Limits::default();
    let mut slots = [TensorSlot::EMPTY; 1];
    let open = |source: &[u8], header: &mut [u8], slots: &mut [TensorSlot]| {
        Reader::open(source, header, slots, &limits).map(|_| ()).map_err(|error| error.invalid())
    };
    let kind = |kind| Err(Some(kind));
    let opened = |header: &mut [u8], slots: &mut [TensorSlot]| {
        open(&file, header, slots).map_err(|error| error.map(|error| error.kind()))
    };
    let header_len = file.len() as u64 - 16;
    let short = ErrorKind::BufferLength { needed: header_len, given: 9 };
    assert_eq!(opened(&mut [0; 9], &mut slots), kind(short));
    assert_eq!(opened(&mut [0; 99], &mut []), kind(ErrorKind::TooFewSlots { needed: 1, given: 0 }));

    // A source that shrinks after it is opened.
    struct Short<'b>(&'b [u8], Cell<u64>);
    impl Source for Short<'_> {
        type Error = safetensors_zero::EndOfSource;
        fn len(&self) -> Result<u64, Self::Error> {
            Ok(self.0.len() as u64)
        }
        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Self::Error> {
            self.0[..self.1.get() as usize].read_exact_at(offset, buffer)
        }
    }
    let source = Short(&file, Cell::new(file.len() as u64));
    let mut header = [0; 99];
    let reader = Reader::open(&source, &mut header, &mut slots, &limits).unwrap();
    let tensor = reader.tensor("t").unwrap();
    let (mut out, mut buffer) = ([0.0; 4], [0; 8]);
    tensor.dequant_into(&mut out, &mut buffer).unwrap();
    source.1.set(file.len() as u64 - 1);
    let error = tensor.dequant_into(&mut out, &mut buffer).unwrap_err();
    assert!(matches!(error, ReadError::Read { len: 8, .. }), "{error:?}");
    let sentence = format!(
        "cannot read 8 bytes at byte {}: the source ends before these bytes",
        file.len() - 8
    );
    assert_eq!(error.to_string(), sentence);

    // Invalid requests leave the output unchanged.
    let mut out = [7.0; 4];
    let error = tensor.dequant_range(1, &mut out, &mut buffer).unwrap_err().invalid().unwrap();
    assert_eq!(error.kind(), ErrorKind::RangeOutOfBounds { begin: 1, end: 5, len: 4 });
    let error = tensor.dequant_into(&mut out, &mut [0; 7]).unwrap_err().invalid().unwrap();
    assert_eq!(error.kind(), ErrorKind::BufferLength { needed: 8, given: 7 });
    let error = tensor.read_into_at(1, &mut [0; 8]).unwrap_err().invalid().unwrap();
    assert_eq!(error.kind(), ErrorKind::RangeOutOfBounds { begin: 1, end: 9, len: 8 });
    assert_eq!(out, [7.0; 4]);
}

/// A source of 500 GB with a real header. Each byte of data is the low byte of its offset.
struct Huge(Vec<u8>);

const HUGE: u64 = 500_000_000_000;

impl Source for Huge {
    type Error = u64;

    fn len(&self) -> Result<u64, u64> {
        Ok(self.0.len() as u64 + HUGE)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), u64> {
        for (byte, at) in buffer.iter_mut().zip(offset..) {
            let in_data = at.checked_sub(self.0.len() as u64);
            *byte = match in_data {
                None => self.0[at as usize],
                Some(at) if at < HUGE => at as u8,
                Some(_) => return Err(at),
            };
        }
        Ok(())
    }
}

/// Offsets have 64 bits on every target, so tensors too large for `usize` can be read in parts.
#[test]
fn tensors_beyond_usize_are_readable() {
    let middle = HUGE / 2;
    let rows = middle / 1000;
    let header = format!(
        r#"{{"a":{{"dtype":"U8","shape":[{rows},1000],"data_offsets":[0,{middle}]}},"b":{{"dtype":"U16","shape":[{}],"data_offsets":[{middle},{HUGE}]}}}}"#,
        middle / 2
    );
    let huge = Huge(support::file::file(&header, &[]));
    let (mut text, mut slots) = (vec![0; 1000], [TensorSlot::EMPTY; 2]);
    let reader = Reader::open(&huge, &mut text, &mut slots, &Limits::STRICT).unwrap();
    let (mut out, mut buffer) = ([0.0; 1000], [0; 8]);
    let a = reader.tensor("a").unwrap();
    assert_eq!(a.elements(), middle);
    a.dequant_rows(rows - 1..rows, &mut out, &mut buffer).unwrap();
    assert!(out.iter().zip(middle - 1000..).all(|(value, at)| *value == f32::from(at as u8)));
    let b = reader.tensor("b").unwrap();
    b.dequant_range(middle / 2 - 1, &mut out[..1], &mut buffer).unwrap();
    let last = u16::from_le_bytes([(HUGE - 2) as u8, (HUGE - 1) as u8]);
    assert_eq!(out[0], f32::from(last));
    let mut bytes = [0; 3];
    b.read_into_at(middle - 3, &mut bytes).unwrap();
    assert_eq!(bytes, [HUGE - 3, HUGE - 2, HUGE - 1].map(|at| at as u8));
    let beyond = b.read_into_at(middle - 2, &mut bytes).unwrap_err();
    assert!(matches!(beyond.invalid().unwrap().kind(), ErrorKind::RangeOutOfBounds { .. }));
    let slice = a.slice(&[(rows - 1..rows).into(), TensorIndexer::stepped(.., 500).unwrap()]);
    slice.unwrap().dequant_into(&mut out[..2], &mut buffer).unwrap();
    assert_eq!(out[..2], [middle - 1000, middle - 500].map(|at| f32::from(at as u8)));
}
