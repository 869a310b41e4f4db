//! Promise: a file on disk of any size reads the same as its bytes in memory. A path that isn't a
//! regular file, or a file that shrinks while it is open, is an error.

#![cfg(feature = "std")]
#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::fs;
use std::ops::ControlFlow;

use safetensors_zero::{
    Dtype, ErrorKind, File, FileErrorKind, FileType, Limits, Progress, SafeTensors, TensorSlot,
};
use support::corpus;
use support::model::Model;
use support::paths;
use support::rng::Rng;
use support::temp::Temp;

/// A file of an F32 tensor `t` with the values 0, 1, 2, … and an F16 tensor `h`, of length `len`.
fn numbers(len: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..len).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let bytes = data.len();
    let header = format!(
        r#"{{"t":{{"dtype":"F32","shape":[{len}],"data_offsets":[0,{bytes}]}},"h":{{"dtype":"F16","shape":[{len}],"data_offsets":[{bytes},{}]}}}}"#,
        bytes + len * 2
    );
    support::file::file(header, &[data, vec![0x3c; len * 2]].concat())
}

#[test]
fn corpus_files_read_the_same_from_disk() {
    for limits in [Limits::DEFAULT, Limits::STRICT] {
        for case in corpus::files() {
            let bytes = case.bytes();
            let expected = paths::read(&bytes, &limits);
            let path = corpus::folder().join(case.file.as_ref().unwrap());
            let file = File::open_with(&path, &limits);
            match (&file, &expected) {
                (Ok(file), Ok(content)) => {
                    assert_eq!(paths::content(&file.table()), *content, "{}", case.id);
                    check_data(file, &bytes);
                }
                (Err(error), Err(expected)) => {
                    assert_eq!(error.invalid(), Some(*expected), "{}", case.id);
                    let sentence = expected.in_file(&bytes).to_string();
                    assert_eq!(error.sentence().to_string(), sentence, "{}", case.id);
                }
                (file, _) => panic!("{}: {file:?}", case.id),
            }
            check_map(&path, &limits, &bytes, &expected);
        }
    }
}

fn check_data(file: &File, bytes: &[u8]) {
    let mut slots = vec![TensorSlot::EMPTY; 2000];
    let tensors = SafeTensors::parse(bytes, &mut slots).unwrap();
    assert_eq!(file.len(), tensors.len());
    assert!(file.names().eq(tensors.names()));
    for (tensor, (name, view)) in file.tensors().zip(&tensors) {
        assert_eq!(tensor.name(), name);
        let mut read = vec![0; tensor.byte_len() as usize];
        file.tensor(&name.to_string()).unwrap().read_into(&mut read).unwrap();
        assert_eq!(read, view.data());
        let mut copied = Vec::new();
        assert_eq!(tensor.copy_to(&mut copied).unwrap(), tensor.byte_len());
        assert_eq!(copied, read);
    }
}

#[cfg(feature = "mmap")]
#[allow(unsafe_code)]
fn check_map(
    path: &std::path::Path,
    limits: &Limits,
    bytes: &[u8],
    expected: &Result<paths::Content, safetensors_zero::Error>,
) {
    let mut options = safetensors_zero::MmapOptions::default();
    options.limits = *limits;
    // SAFETY: no process writes to the corpus.
    match (unsafe { safetensors_zero::Mmap::open_with(path, &options) }, expected) {
        (Ok(map), Ok(content)) => {
            let tensors = map.tensors();
            assert_eq!(paths::content(tensors.table()), *content);
            assert_eq!(map.as_bytes(), bytes);
            for (name, view) in &tensors {
                let range = tensors.table().info(&name.to_string()).unwrap().data_offsets;
                let start = tensors.table().data_start();
                let range = (start + range.0) as usize..(start + range.1) as usize;
                assert_eq!(view.data(), &bytes[range]);
            }
        }
        (Err(error), Err(expected)) => match error.kind() {
            FileErrorKind::Map(_) => assert!(bytes.is_empty()),
            _ => assert_eq!(error.invalid(), Some(*expected)),
        },
        (map, _) => panic!("{}: {map:?}", path.display()),
    }
}

#[cfg(not(feature = "mmap"))]
fn check_map<T>(_: &std::path::Path, _: &Limits, _: &[u8], _: &T) {}

#[test]
fn random_models_read_the_same_from_disk() {
    let temp = Temp::new();
    let mut rng = Rng(1);
    for _ in 0..30 {
        let tensors = rng.below(12);
        let (bytes, content) = Model::random(&mut rng, tensors).write();
        let path = temp.write("model.safetensors", &bytes);
        let file = File::open(&path).unwrap();
        assert_eq!(paths::content(&file.table()), content);
        check_data(&file, &bytes);
    }
}

/// Cases `big-5gib` (its second tensor begins above 4 GiB) and `big-600mb` (its tensor has more
/// bits than a `u32` can count, which on 32-bit targets is the case `run-bits-32`).
#[test]
fn large_files_are_readable() {
    let temp = Temp::new();
    let open = |header: &str, data_len: u64, end: &[u8]| {
        let begin = support::file::file(header, &[]);
        let len = begin.len() as u64 + data_len;
        File::open(temp.write_sparse("big.safetensors", &begin, len, end)).unwrap()
    };
    let file = open(
        r#"{"a":{"dtype":"U8","shape":[5368709112],"data_offsets":[0,5368709112]},"b":{"dtype":"I64","shape":[1],"data_offsets":[5368709112,5368709120]}}"#,
        5_368_709_120,
        &(-7_i64).to_le_bytes(),
    );
    assert_eq!(file.info("a").unwrap().elements(), 5_368_709_112);
    let mut out = [0.0];
    file.tensor("b").unwrap().dequant_into(&mut out).unwrap();
    assert_eq!(out, [-7.0]);
    let mut last = [1; 3];
    file.tensor("a").unwrap().read_into_at(5_368_709_109, &mut last).unwrap();
    assert_eq!(last, [0; 3]);

    let file = open(
        r#"{"a":{"dtype":"U8","shape":[600000000],"data_offsets":[0,600000000]}}"#,
        600_000_000,
        &[9],
    );
    file.tensor("a").unwrap().dequant_range(599_999_999, &mut out).unwrap();
    assert_eq!(out, [9.0]);
}

/// Case `run-fifo`.
#[test]
fn paths_that_are_not_files_are_errors() {
    let temp = Temp::new();
    let kind = |path: &std::path::Path| {
        let error = File::open(path).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
        match error.kind() {
            FileErrorKind::NotAFile(found) => *found,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(kind(temp.path()), FileType::Folder);
    #[cfg(unix)]
    {
        let fifo = temp.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_eq!(kind(&fifo), FileType::Pipe);
        let socket = temp.join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(kind(&socket), FileType::Socket);
        assert_eq!(kind("/dev/zero".as_ref()), FileType::Device);
        // Also through a link.
        let link = temp.join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert_eq!(kind(&link), FileType::Device);
    }
    let missing = File::open(temp.join("missing.safetensors")).unwrap_err();
    let FileErrorKind::Open(error) = missing.kind() else { panic!("{missing:?}") };
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let below_a_file = temp.write("file", []).join("x");
    assert!(matches!(File::open(below_a_file).unwrap_err().kind(), FileErrorKind::Open(_)));
}

#[test]
#[cfg(unix)]
fn removed_files_stay_readable_and_shrunken_files_are_errors() {
    let temp = Temp::new();
    let path = temp.write("model.safetensors", numbers(1000));
    let file = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let mut out = [0.0; 1000];
    file.tensor("t").unwrap().dequant_into(&mut out).unwrap();
    assert_eq!(out[999], 999.0);

    let path = temp.write("model.safetensors", numbers(1000));
    let file = File::open(&path).unwrap();
    let tensor = file.tensor("t").unwrap();
    let range = tensor.file_range();
    fs::File::options().write(true).open(&path).unwrap().set_len(range.start + 400).unwrap();
    tensor.dequant_range(0, &mut out[..100]).unwrap();
    let shrunk = |error: safetensors_zero::FileError| {
        assert!(matches!(error.kind(), FileErrorKind::Shrunk { .. }), "{error}");
        assert_eq!(error.tensor(), Some("t"));
        error.to_string()
    };
    let sentence = shrunk(tensor.dequant_range(1, &mut out[..100]).unwrap_err());
    assert!(sentence.contains("tensor \"t\": the file shrank"), "{sentence}");
    shrunk(tensor.read_into(&mut [0; 4000]).unwrap_err());
    shrunk(tensor.copy_to(&mut Vec::new()).unwrap_err());
    shrunk(tensor.stats().unwrap_err());
    let slice = tensor.slice(&[TensorIndexer::stepped(.., 2).unwrap()]).unwrap();
    shrunk(slice.dequant_into(&mut [0.0; 500]).unwrap_err());
    use safetensors_zero::TensorIndexer;
}

/// Calls `run` with a progress callback that stops at its `n`th call. Also returns the reported
/// progress as pairs of done and total.
fn stop_at<T>(
    n: usize,
    run: impl FnOnce(&mut dyn FnMut(Progress) -> ControlFlow<()>) -> T,
) -> (T, Vec<(u64, u64)>) {
    let mut reported = Vec::new();
    let result = run(&mut |progress| {
        reported.push((progress.done, progress.total));
        if reported.len() == n {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    (result, reported)
}

#[test]
fn progress_is_reported_and_can_stop() {
    const LEN: usize = 600_000;
    let temp = Temp::new();
    let file = File::open(temp.write("model.safetensors", numbers(LEN))).unwrap();
    let never = usize::MAX;

    let tensor = file.tensor("t").unwrap();
    let mut out = vec![0.0; LEN];
    let (result, reported) =
        stop_at(never, |progress| tensor.dequant_into_with(&mut out, progress));
    result.unwrap();
    // F32 is read directly into the output in pieces of 1 MiB, or else through a 64 KiB buffer.
    let piece: u64 = if cfg!(target_endian = "little") { 1 << 18 } else { 16 << 10 };
    let pieces = (1..).map(|n| n * piece).take_while(|done| *done < LEN as u64);
    let expected: Vec<_> = pieces.chain([LEN as u64]).map(|done| (done, LEN as u64)).collect();
    assert_eq!(reported, expected);

    let stopped = |error: safetensors_zero::FileError| match error.kind() {
        FileErrorKind::Stopped { done } => *done,
        _ => panic!("{error}"),
    };
    let mut out = vec![-1.0; LEN];
    let (result, _) = stop_at(2, |progress| tensor.dequant_into_with(&mut out, progress));
    assert_eq!(stopped(result.unwrap_err()), 2 * piece);
    assert!(out[..2 * piece as usize].iter().zip(0..).all(|(value, i)| *value == i as f32));
    assert!(out[2 * piece as usize..].iter().all(|value| *value == -1.0));

    let mut bytes = vec![0; LEN * 4];
    let (result, reported) = stop_at(1, |progress| tensor.read_into_with(&mut bytes, progress));
    assert_eq!((stopped(result.unwrap_err()), reported.len()), (1 << 20, 1));

    let mut copied = Vec::new();
    let (result, _) = stop_at(3, |progress| tensor.copy_to_with(&mut copied, progress));
    assert_eq!(stopped(result.unwrap_err()), copied.len() as u64);
    assert_eq!(copied.len(), 3 * (64 << 10));
    let (result, reported) = stop_at(never, |progress| tensor.stats_with(progress));
    assert_eq!(result.unwrap().max, Some(LEN as f64 - 1.0));
    assert_eq!(reported.last(), Some(&(LEN as u64 * 4, LEN as u64 * 4)));

    let half = file.tensor("h").unwrap();
    let (result, reported) = stop_at(2, |progress| half.dequant_into_with(&mut out, progress));
    assert_eq!(stopped(result.unwrap_err()), reported[1].0);
    assert_eq!(reported[1], (2 * (32 << 10), LEN as u64));

    let slice = tensor.slice(&[(100..LEN as u64).into()]).unwrap();
    let mut copied = Vec::new();
    let (result, reported) = stop_at(never, |progress| slice.copy_to_with(&mut copied, progress));
    assert_eq!(result.unwrap(), (LEN as u64 - 100) * 4);
    assert_eq!(copied, bytes_of(&values_of(&tensor)[100..]));
    assert_eq!(reported.last().unwrap().0, reported[0].1);
    let mut part = vec![0.0; LEN - 100];
    let (result, _) = stop_at(1, |progress| slice.dequant_into_with(&mut part, progress));
    assert_eq!(stopped(result.unwrap_err()), piece);
    let (result, _) = stop_at(1, |progress| slice.read_into_with(&mut copied, progress));
    assert_eq!(stopped(result.unwrap_err()), 1 << 20);
}

fn values_of(tensor: &safetensors_zero::FileTensor<'_>) -> Vec<f32> {
    let mut out = vec![0.0; tensor.elements() as usize];
    tensor.dequant_into(&mut out).unwrap();
    out
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn write_errors_report_the_bytes_written() {
    struct Full(u64);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 =
                self.0.checked_sub(bytes.len() as u64).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let temp = Temp::new();
    let file = File::open(temp.write("model.safetensors", numbers(100_000))).unwrap();
    let error = file.tensor("t").unwrap().copy_to(&mut Full(200_000)).unwrap_err();
    let FileErrorKind::Write { error, written } = error.kind() else { panic!("{error}") };
    assert_eq!((error.kind(), *written), (std::io::ErrorKind::StorageFull, 3 * (64 << 10)));
}

#[test]
fn errors_of_invalid_requests_name_the_tensor() {
    let temp = Temp::new();
    let file = File::open(temp.write("model.safetensors", numbers(10))).unwrap();
    let error = file.tensor("x\u{1b}").unwrap_err();
    assert_eq!(error.invalid().map(|error| error.kind()), Some(ErrorKind::TensorNotFound));
    assert_eq!(error.sentence().to_string(), "tensor \"x\\u{1b}\": no tensor has this name");
    let tensor = file.tensor("t").unwrap();
    let error = tensor.dequant_range(5, &mut [0.0; 6]).unwrap_err();
    assert_eq!(error.sentence().to_string(), "tensor \"t\": the range 5..11 is not within 0..10");
    for error in [
        tensor.dequant_into(&mut [0.0; 9]).unwrap_err(),
        tensor.read_into(&mut [0; 41]).unwrap_err(),
        tensor.dequant_rows(0..2, &mut [0.0; 3]).unwrap_err(),
    ] {
        let kind = error.invalid().unwrap().kind();
        assert!(matches!(kind, ErrorKind::BufferLength { .. }), "{error}");
        assert!(error.is_invalid());
    }
}

#[test]
fn many_threads_can_read_one_file() {
    let temp = Temp::new();
    let file = File::open(temp.write("model.safetensors", numbers(50_000))).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let mut rng = Rng(seed);
                for _ in 0..200 {
                    let first = rng.below(49_000);
                    let mut out = [0.0; 700];
                    file.tensor("t").unwrap().dequant_range(first as u64, &mut out).unwrap();
                    assert!(out.iter().zip(first..).all(|(value, i)| *value == i as f32));
                }
            });
        }
    });
}

#[test]
fn reading_does_not_move_the_cursor() {
    use std::io::{Read, Seek, SeekFrom};
    let temp = Temp::new();
    let path = temp.write("model.safetensors", numbers(10));
    let mut std_file = fs::File::open(&path).unwrap();
    std_file.seek(SeekFrom::Start(3)).unwrap();
    let file = File::from_std(std_file, &path, &Limits::default()).unwrap();
    assert_eq!(file.tensor("h").unwrap().dtype(), Dtype::F16);
    values_of(&file.tensor("t").unwrap());
    let mut shared = file.as_std();
    let mut next = [0; 5];
    if cfg!(unix) {
        shared.read_exact(&mut next).unwrap();
        assert_eq!(next, fs::read(&path).unwrap()[3..8]);
    }
}

/// Case `run-mmap-unsupported`: a file that can't be mapped is an error that points to `File`. Case
/// `run-mmap-truncated` can't be checked: the contract of `Mmap::open` states it and recommends
/// `File`, which is tested by `removed_files_stay_readable_and_shrunken_files_are_errors`.
#[test]
#[cfg(feature = "mmap")]
#[allow(unsafe_code)]
fn maps_can_be_moved_shared_and_advised() {
    use safetensors_zero::{Advice, Mmap, MmapOptions, Source};
    let temp = Temp::new();
    let path = temp.write("model.safetensors", numbers(10_000));
    let mut options = MmapOptions::default();
    options.populate = true;
    // SAFETY: no other process uses this file.
    let map = unsafe { Mmap::open_with(&path, &options) }.unwrap();
    for advice in [Advice::Sequential, Advice::Random, Advice::WillNeed, Advice::Normal] {
        map.advise(advice).unwrap();
        map.advise_range(advice, 4096..5000).unwrap();
        map.advise_range(advice, 1 << 60..u64::MAX).unwrap();
    }
    assert_eq!(Source::len(&map), Ok(fs::metadata(&path).unwrap().len()));
    // A map can be moved, also to another thread, and borrowed there.
    let map = std::thread::spawn(move || {
        let last = map.tensors().tensor("t").unwrap().data()[4 * 9_999..].to_vec();
        assert_eq!(last, 9_999.0_f32.to_le_bytes());
        map
    });
    let map = Box::new(map.join().unwrap());
    assert_eq!(map.table().len(), 2);
    let mut out = [0.0; 2];
    map.tensors().tensor("t").unwrap().dequant_range(3, &mut out).unwrap();
    assert_eq!(out, [3.0, 4.0]);

    // SAFETY: as above.
    let error = unsafe { Mmap::open(temp.write("empty.safetensors", [])) }.unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::Map(_)), "{error}");
    assert!(error.to_string().ends_with("`File` can read it without mapping"), "{error}");
    // SAFETY: as above.
    let error = unsafe { Mmap::open(temp.path()) }.unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::NotAFile(FileType::Folder)), "{error}");
}
