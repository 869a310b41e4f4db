//! Promise: all types can be shared between threads, borrowed views are `Copy`, and threads that
//! read through one view, file or model all get the same bits.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::thread;

use safetensors_zero::{
    Dtype, Index, IndexIter, IndexLimits, Limits, Reader, SafeTensors, ShardName, SliceReader,
    Source, Table, TensorIndexer, TensorReader, TensorSlot, TensorView, TotalSize,
};
use support::file;
use support::rng::Rng;

const THREADS: u64 = 8;

/// The number of ranges that each thread reads.
const ROUNDS: usize = if cfg!(debug_assertions) { 200 } else { 2_000 };

fn assert_shared<T: Send + Sync>() {}
fn assert_copy<T: Copy + Send + Sync>() {}

/// The types that read. `structure.rs` checks the others.
#[test]
fn core_types_can_be_shared() {
    type Memory<'a> = &'a [u8];
    assert_shared::<Reader<'_, '_, Memory<'_>>>();
    assert_shared::<IndexIter<'_>>();
    assert_shared::<Table<'_, '_>>();
    assert_copy::<TensorReader<'_, Memory<'_>>>();
    assert_copy::<SliceReader<'_, Memory<'_>>>();
    assert_copy::<Index<'_>>();
    assert_copy::<IndexLimits>();
    assert_copy::<ShardName<'_>>();
    assert_copy::<TotalSize>();
    assert_copy::<TensorView<'_>>();
    // A reader can be shared if its source can.
    fn of_source<S: Source + Send + Sync>() {
        assert_shared::<Reader<'_, '_, S>>();
        assert_shared::<TensorReader<'_, S>>();
    }
    of_source::<Memory<'_>>();
}

#[cfg(feature = "alloc")]
#[test]
fn owned_types_can_be_shared() {
    use safetensors_zero::{OwnedTable, WeightMap};
    assert_shared::<OwnedTable>();
    assert_shared::<WeightMap>();
    assert_shared::<SafeTensors<'static, 'static>>();
}

#[cfg(feature = "std")]
#[test]
fn file_types_can_be_shared() {
    use safetensors_zero::{
        File, FileError, FileErrorKind, FileSlice, FileTensor, FileType, Finding, Progress, Shards,
        ShardsOptions,
    };
    assert_shared::<File>();
    assert_shared::<Shards>();
    assert_shared::<FileTensor<'_>>();
    assert_shared::<FileSlice<'_, '_>>();
    assert_shared::<FileError>();
    assert_shared::<FileErrorKind>();
    assert_shared::<Finding>();
    assert_copy::<FileType>();
    assert_copy::<Progress>();
    assert_copy::<ShardsOptions>();
    #[cfg(feature = "mmap")]
    {
        assert_shared::<safetensors_zero::Mmap>();
        assert_copy::<safetensors_zero::MmapOptions>();
        assert_copy::<safetensors_zero::Advice>();
    }
}

/// The number of elements of each tensor.
const ELEMENTS: usize = 3_000;

/// A file with a tensor of random bytes for each dtype that has values, named after the dtype.
fn model() -> Vec<u8> {
    let mut rng = Rng(7);
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for dtype in dtypes() {
        let begin = data.len();
        data.extend(rng.bytes(ELEMENTS * dtype.bitsize() / 8));
        let end = data.len();
        entries.push(format!(
            r#""{dtype}":{{"dtype":"{dtype}","shape":[30,{}],"data_offsets":[{begin},{end}]}}"#,
            ELEMENTS / 30
        ));
    }
    file::file(format!("{{{}}}", entries.join(",")), &data)
}

fn dtypes() -> impl Iterator<Item = Dtype> {
    Dtype::ALL.into_iter().filter(|dtype| *dtype != Dtype::C64)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The names and bits of all tensors, read by one thread.
fn expected(tensors: &SafeTensors<'_, '_>) -> Vec<(String, Vec<u32>)> {
    let widen = |(name, view): (safetensors_zero::Text<'_>, TensorView<'_>)| {
        let mut values = vec![0.0; ELEMENTS];
        view.dequant_into(&mut values).unwrap();
        (name.to_string(), bits(&values))
    };
    tensors.iter().map(widen).collect()
}

/// Reads random ranges of random tensors in several threads, and compares them with what one thread
/// has read.
fn check(expected: &[(String, Vec<u32>)], read: impl Fn(&str, u64, &mut [f32]) + Sync) {
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let read = &read;
            scope.spawn(move || {
                let mut rng = Rng(seed);
                for _ in 0..ROUNDS {
                    let (name, whole) = rng.choose(expected);
                    let first = rng.below(ELEMENTS);
                    let mut out = vec![0.0; rng.below(ELEMENTS - first) + 1];
                    read(name, first as u64, &mut out);
                    assert!(bits(&out) == whole[first..first + out.len()], "{name} {first}");
                }
            });
        }
    });
}

#[test]
fn threads_share_a_view_and_a_table() {
    let file = model();
    let mut slots = [TensorSlot::EMPTY; 32];
    let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
    let expected = expected(&tensors);
    assert_eq!(expected.len(), dtypes().count());
    check(&expected, |name, first, out| {
        tensors.tensor(name).unwrap().dequant_range(first, out).unwrap();
    });
    // Through views created beforehand.
    let views: Vec<(String, TensorView<'_>)> =
        tensors.iter().map(|(name, view)| (name.to_string(), view)).collect();
    check(&expected, |name, first, out| {
        let (_, view) = views.iter().find(|(other, _)| other == name).unwrap();
        view.dequant_range(first, out).unwrap();
    });
}

#[test]
fn threads_share_a_reader() {
    let file = model();
    let mut slots = [TensorSlot::EMPTY; 32];
    let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
    let expected = expected(&tensors);
    let (mut text, mut slots) = (vec![0; 8192], [TensorSlot::EMPTY; 32]);
    let reader = Reader::open(&*file, &mut text, &mut slots, &Limits::DEFAULT).unwrap();
    check(&expected, |name, first, out| {
        reader.tensor(name).unwrap().dequant_range(first, out, &mut [0; 40]).unwrap();
    });
}

#[test]
fn threads_share_a_slice() {
    let file = model();
    let mut slots = [TensorSlot::EMPTY; 32];
    let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
    let every_other = TensorIndexer::stepped(.., 2).unwrap();
    let slice = tensors.tensor("F16").unwrap().slice(&[every_other, (3..90).into()]).unwrap();
    let mut whole = vec![0.0; slice.elements() as usize];
    slice.dequant_into(&mut whole).unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut out = vec![0.0; whole.len()];
                for _ in 0..20 {
                    slice.dequant_into(&mut out).unwrap();
                    assert!(bits(&out) == bits(&whole));
                }
            });
        }
    });
}

#[cfg(feature = "std")]
#[test]
fn threads_share_a_file() {
    let bytes = model();
    let temp = support::temp::Temp::new();
    let path = temp.write("model.safetensors", &bytes);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let expected = expected(&tensors);
    let file = safetensors_zero::File::open(&path).unwrap();
    check(&expected, |name, first, out| {
        file.tensor(name).unwrap().dequant_range(first, out).unwrap();
    });
    let tensors: Vec<_> =
        file.tensors().map(|tensor| (tensor.name().to_string(), tensor)).collect();
    check(&expected, |name, first, out| {
        let (_, tensor) = tensors.iter().find(|(other, _)| other == name).unwrap();
        tensor.dequant_range(first, out).unwrap();
    });
    #[cfg(feature = "mmap")]
    {
        // SAFETY: no other process uses the file.
        #[allow(unsafe_code)]
        let map = unsafe { safetensors_zero::Mmap::open(&path) }.unwrap();
        check(&expected, |name, first, out| {
            map.tensors().tensor(name).unwrap().dequant_range(first, out).unwrap();
        });
    }
}

/// With few files open at a time, all threads keep closing and reopening shards.
#[cfg(feature = "std")]
#[test]
fn threads_share_a_sharded_model() {
    use safetensors_zero::{Shards, ShardsOptions};
    let bytes = model();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let expected = expected(&tensors);
    let temp = support::temp::Temp::new();
    let mut map = Vec::new();
    for (name, view) in &tensors {
        let shard = format!("{name}.safetensors");
        let (dtype, shape, len) = (view.dtype(), view.shape(), view.data().len());
        let header = format!(
            r#"{{"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{len}]}}}}"#
        );
        temp.write(&shard, file::file(header, view.data()));
        map.push(format!(r#""{name}":"{shard}""#));
    }
    let index = format!(r#"{{"weight_map":{{{}}}}}"#, map.join(","));
    let path = temp.write("model.safetensors.index.json", index);
    for open_files in [1, 4, 64] {
        let mut options = ShardsOptions::DEFAULT;
        options.open_files = open_files;
        let model = Shards::open_with(&path, &options).unwrap();
        check(&expected, |name, first, out| {
            model.tensor(name).unwrap().dequant_range(first, out).unwrap();
        });
        assert_eq!(model.tensors().map(Result::unwrap).count(), expected.len());
    }
}
