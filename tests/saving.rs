//! Promise: an interrupted or failed save leaves the complete old file or the complete new file.
//! Data can be written in pieces of any size, and to a file in any order.
//!
//! Corpus cases: write-atomic, run-mmap-overwrite.

#![cfg(feature = "std")]
#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use safetensors_zero::{
    serialize, serialize_to_file, serialize_to_file_with, serialize_to_folder, Dtype, ErrorKind,
    File, FileWriter, IndexLimits, Limits, OwnedPlan, PlanBuilder, PlanOptions, SafeTensors,
    Shards, ShardsOptions, StreamWriter, WriteErrorKind,
};
use support::model::{Metadata, Model, Spec};
use support::rng::Rng;
use support::temp::Temp;

fn plan_of(model: &Model) -> OwnedPlan {
    let mut builder = PlanBuilder::new();
    for spec in &model.tensors {
        builder.tensor(&*spec.name, spec.dtype, spec.shape.iter().copied());
    }
    builder.plan().unwrap()
}

/// The names of the files in a folder other than these.
fn other_files(folder: &Path, files: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !files.contains(&name.as_str())).collect()
}

fn random_model(rng: &mut Rng, tensors: usize) -> Model {
    let mut model = Model::random(rng, tensors);
    model.metadata = Metadata::None;
    model
}

#[test]
fn files_written_in_pieces_equal_serialised_files() {
    let mut rng = Rng(1);
    let temp = Temp::new();
    let path = temp.join("model.safetensors");
    for _ in 0..40 {
        let model = random_model(&mut rng, 8);
        let expected = serialize(model.views(), None).unwrap();
        let by_name: BTreeMap<&str, &Spec> = model.views().into_iter().collect();

        let mut stream = StreamWriter::new(Vec::new(), plan_of(&model)).unwrap();
        let names: Vec<String> =
            stream.plan().table().names().map(|name| name.to_string()).collect();
        for name in &names {
            let mut rest = by_name[name.as_str()].data.as_slice();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(1 + rng.below(rest.len()));
                let mut tensor = stream.tensor(name).unwrap();
                assert_eq!(tensor.remaining(), rest.len() as u64);
                tensor.write_bytes(piece).unwrap();
                rest = after;
            }
        }
        assert!(stream.finish().unwrap() == expected);

        let mut file = FileWriter::create(&path, plan_of(&model)).unwrap();
        let mut left: Vec<(&str, &[u8])> =
            by_name.iter().map(|(name, spec)| (*name, spec.data.as_slice())).collect();
        while !left.is_empty() {
            let at = rng.below(left.len());
            let (name, rest) = left[at];
            let (piece, after) = rest.split_at(rng.below(rest.len() + 1));
            file.tensor(name).unwrap().write_all(piece).unwrap();
            left[at].1 = after;
            if after.is_empty() {
                left.swap_remove(at);
            }
        }
        assert_eq!(other_files(temp.path(), &["model.safetensors"]).len(), 1);
        file.commit().unwrap();
        assert!(std::fs::read(&path).unwrap() == expected);
        assert_eq!(other_files(temp.path(), &["model.safetensors"]), [""; 0]);
    }
}

fn two_tensors() -> OwnedPlan {
    let mut builder = PlanBuilder::new();
    builder.tensor("a", Dtype::F32, [4]).tensor("b", Dtype::I16, [2]).tensor("e", Dtype::I8, [0]);
    builder.plan().unwrap()
}

#[test]
fn missing_excess_and_late_data_are_errors() {
    let stream = || StreamWriter::new(Vec::new(), two_tensors()).unwrap();
    let refusal = |error: safetensors_zero::WriteError| {
        (error.tensor().unwrap().to_owned(), error.refusal().unwrap())
    };
    let missing = |written| ("a".to_owned(), ErrorKind::DataMissing { needed: 16, written });

    assert_eq!(refusal(stream().finish().unwrap_err()), missing(0));
    let mut stream = stream();
    assert_eq!(refusal(stream.tensor("b").unwrap_err()), missing(0));
    assert_eq!(refusal(stream.tensor("e").unwrap_err()), missing(0));
    stream.tensor("a").unwrap().write_bytes(&[0; 7]).unwrap();
    assert_eq!(refusal(stream.tensor("b").unwrap_err()), missing(7));
    let error = stream.tensor("a").unwrap().write_bytes(&[0; 10]).unwrap_err();
    let excess = ErrorKind::DataExcess { needed: 16, written: 17 };
    assert_eq!(refusal(error), ("a".to_owned(), excess));
    stream.tensor("a").unwrap().write_f32(&[1.0; 2]).unwrap();
    stream.tensor("a").unwrap().write_bytes(&[0; 1]).unwrap();
    stream.tensor("b").unwrap().write_i64(&[1, 2]).unwrap();
    assert_eq!(refusal(stream.tensor("a").unwrap_err()).1, ErrorKind::OutOfOrder);
    assert_eq!(refusal(stream.tensor("c").unwrap_err()).1, ErrorKind::TensorNotFound);
    let error = stream.tensor("e").unwrap().write_bytes(&[0]).unwrap_err();
    assert_eq!(refusal(error).1, ErrorKind::DataExcess { needed: 0, written: 1 });
    SafeTensors::deserialize(&stream.finish().unwrap()).unwrap();

    let temp = Temp::new();
    let path = temp.write("model.safetensors", b"old");
    let mut file = FileWriter::create(&path, two_tensors()).unwrap();
    file.tensor("b").unwrap().write_i64(&[1, 2]).unwrap();
    file.tensor("a").unwrap().write_bytes(&[0; 15]).unwrap();
    assert_eq!(file.tensor("c").unwrap_err().path(), Some(&*path));
    let error = file.tensor("e").unwrap().write_bytes(&[0]).unwrap_err();
    assert_eq!(refusal(error).1, ErrorKind::DataExcess { needed: 0, written: 1 });
    let error = file.commit().unwrap_err();
    let sentence = "tensor \"a\": only 15 of its 16 bytes were written";
    assert_eq!(error.to_string(), format!("{}: {sentence}", path.display()));
    assert_eq!(refusal(error), missing(15));
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(other_files(temp.path(), &["model.safetensors"]), [""; 0]);
}

#[test]
fn a_failed_stream_stays_failed() {
    /// Accepts up to 7 bytes of each write, fails once when it is full, then has space again.
    #[derive(Debug)]
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let taken = bytes.len().min(self.0).min(7);
            self.0 -= taken;
            if taken == 0 {
                self.0 = 1000;
                return Err(std::io::Error::other("full"));
            }
            Ok(taken)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let plan = two_tensors();
    let space = plan.data_start() as usize + 10;
    let mut stream = StreamWriter::new(Full(space), plan).unwrap();
    // There is space again, but how much of the failed write was accepted is unknown.
    for _ in 0..2 {
        let error = stream.tensor("a").unwrap().write_bytes(&[0; 16]).unwrap_err();
        assert!(matches!(error.kind(), WriteErrorKind::Write(_)), "{error}");
    }
    assert!(stream.finish().is_err());
    assert!(StreamWriter::new(Full(3), two_tensors()).is_err());
}

#[test]
fn numbers_are_converted_to_the_dtype() {
    let mut builder = PlanBuilder::new();
    let len = 100_003;
    for dtype in [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16] {
        builder.tensor(dtype.as_str(), dtype, [len]);
    }
    for dtype in [Dtype::I8, Dtype::U16, Dtype::I64] {
        builder.tensor(dtype.as_str(), dtype, [len]);
    }
    let mut writer = StreamWriter::new(Vec::new(), builder.plan().unwrap()).unwrap();
    let halves: Vec<f64> = (0..len).map(|i| (i % 200) as f64 / 2.0 - 50.0).collect();
    let single: Vec<f32> = halves.iter().map(|value| *value as f32).collect();
    let whole: Vec<i64> = (0..len as i64).map(|i| i % 128).collect();
    let names: Vec<String> = writer.plan().table().names().map(|name| name.to_string()).collect();
    for name in &names {
        let mut tensor = writer.tensor(name).unwrap();
        let (is_float, dtype) = (tensor.info().dtype.as_str().contains('F'), tensor.info().dtype);
        if is_float && dtype == Dtype::BF16 {
            tensor.write_f32(&single).unwrap();
        } else if is_float {
            tensor.write_f64(&halves).unwrap();
        } else {
            let error = tensor.write_f32(&[1.0]).unwrap_err();
            assert_eq!(error.refusal(), Some(ErrorKind::NoConversion { dtype }));
            // The error has the index of the value that is out of range.
            if dtype == Dtype::U16 {
                let mut wrong = whole[..70_000].to_vec();
                wrong[69_000] = -1;
                let error = tensor.write_i64(&wrong).unwrap_err();
                let kind = ErrorKind::ValueOutOfRange { index: 69_000, value: -1, dtype };
                assert_eq!(error.refusal(), Some(kind));
                let done = len as usize - tensor.remaining() as usize / 2;
                assert!(done <= 69_000);
                tensor.write_i64(&whole[done..]).unwrap();
            } else {
                tensor.write_i64(&whole).unwrap();
            }
        }
        assert_eq!(tensor.remaining(), 0);
    }
    let file = writer.finish().unwrap();
    let tensors = SafeTensors::deserialize(&file).unwrap();
    for (name, view) in &tensors {
        let mut out = vec![0.0; len as usize];
        view.dequant_into(&mut out).unwrap();
        let floats = view.dtype().as_str().contains('F');
        let right = out.iter().enumerate().all(|(i, value)| {
            let expected = if floats { halves[i] } else { whole[i] as f64 };
            // BF16 has 8 bits of significand.
            f64::from(*value) == expected
                || (view.dtype() == Dtype::BF16 && (f64::from(*value) - expected).abs() <= 0.25)
        });
        assert!(right, "{name}");
    }
}

/// Two models whose files differ in every byte of data.
fn generations() -> [Model; 2] {
    [1, 2].map(|fill: u8| {
        let spec = |i: usize| Spec {
            name: format!("tensor.{i}"),
            dtype: Dtype::U8,
            shape: vec![40_000],
            data: vec![fill; 40_000],
        };
        let mut model = random_model(&mut Rng(3), 0);
        model.tensors = (0..8).map(spec).collect();
        model
    })
}

#[test]
fn only_files_are_replaced_and_failed_saves_leave_nothing() {
    let temp = Temp::new();
    let [model, _] = generations();
    let error = serialize_to_file(model.views(), None, temp.path()).unwrap_err();
    assert!(matches!(error.kind(), WriteErrorKind::NotAFile(_)), "{error}");
    let nowhere = temp.join("no/such/folder/model.safetensors");
    let error = serialize_to_file(model.views(), None, &nowhere).unwrap_err();
    assert!(matches!(error.kind(), WriteErrorKind::Create(_)), "{error}");
    assert_eq!(error.path(), Some(&*nowhere));
    let mut reserved = model.clone();
    reserved.tensors[3].name = "__metadata__".to_owned();
    let path = temp.join("model.safetensors");
    let error = serialize_to_file(reserved.views(), None, &path).unwrap_err();
    assert_eq!(error.refusal(), Some(ErrorKind::ReservedName));
    reserved.tensors[3].name = "short".to_owned();
    reserved.tensors[3].data.pop();
    let error = serialize_to_file(reserved.views(), None, &path).unwrap_err();
    assert_eq!(error.path(), Some(&*path));
    assert_eq!(other_files(temp.path(), &[]), [""; 0]);
    drop(FileWriter::create(&path, plan_of(&model)).unwrap());
    assert_eq!(other_files(temp.path(), &[]), [""; 0]);
    #[cfg(unix)]
    {
        let error = serialize_to_file(model.views(), None, "/dev/null").unwrap_err();
        assert!(matches!(error.kind(), WriteErrorKind::NotAFile(_)), "{error}");
        let pipe = temp.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = serialize_to_file(model.views(), None, &pipe).unwrap_err();
        assert!(matches!(error.kind(), WriteErrorKind::NotAFile(_)), "{error}");
    }
    serialize_to_file(model.views(), None, &path).unwrap();
    assert!(std::fs::read(&path).unwrap() == serialize(model.views(), None).unwrap());
}

#[cfg(unix)]
#[test]
fn saves_keep_links_permissions_and_owners() {
    use std::os::unix::fs::{chown, symlink, MetadataExt, PermissionsExt};
    let temp = Temp::new();
    let [model, other] = generations();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let usual = mode(&temp.write("usual", b""));
    let path = temp.join("model.safetensors");
    serialize_to_file(model.views(), None, &path).unwrap();
    assert_eq!(mode(&path), usual);
    // Only root can give a file away.
    let owner = std::fs::metadata(&path).unwrap().uid();
    let owner = if chown(&path, Some(12345), Some(23456)).is_ok() { 12345 } else { owner };
    for bits in [0o600, 0o644, 0o666, 0o440] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(bits)).unwrap();
        let before = std::fs::metadata(&path).unwrap();
        let mut writer = FileWriter::create(&path, two_tensors()).unwrap();
        // Nobody can read the new file who could not read the old one, while it is written either.
        let [partial] = &*other_files(temp.path(), &["model.safetensors", "usual"]) else {
            panic!()
        };
        assert_eq!(mode(&temp.join(partial)), bits);
        writer.tensor("a").unwrap().write_bytes(&[0; 16]).unwrap();
        writer.tensor("b").unwrap().write_bytes(&[0; 4]).unwrap();
        writer.commit().unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(mode(&path), bits);
        assert_eq!((after.uid(), after.gid()), (owner, before.gid()));
        assert_ne!(after.ino(), before.ino(), "a new file");
    }

    let link = temp.join("link.safetensors");
    symlink("chain", &link).unwrap();
    symlink(&path, temp.join("chain")).unwrap();
    serialize_to_file(other.views(), None, &link).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::symlink_metadata(temp.join("chain")).unwrap().is_symlink());
    assert!(std::fs::read(&path).unwrap() == serialize(other.views(), None).unwrap());
    assert_eq!(mode(&path), 0o440);

    // A link that leads to no file yet: the file is created where it leads.
    symlink("folder/new", temp.join("dangling")).unwrap();
    std::fs::create_dir(temp.join("folder")).unwrap();
    serialize_to_file(other.views(), None, temp.join("dangling")).unwrap();
    assert!(std::fs::symlink_metadata(temp.join("folder/new")).unwrap().is_file());
    symlink("circle", temp.join("circle")).unwrap();
    let error = serialize_to_file(other.views(), None, temp.join("circle")).unwrap_err();
    assert!(matches!(error.kind(), WriteErrorKind::Create(_)), "{error}");
    assert_eq!(error.path(), Some(&*temp.join("circle")));
}

/// A map keeps showing the file that it was opened from.
#[cfg(all(feature = "mmap", unix))]
#[test]
#[allow(unsafe_code, reason = "mapping a file is unsafe")]
fn an_open_map_keeps_its_bytes() {
    let temp = Temp::new();
    let path = temp.join("model.safetensors");
    let [old, new] = generations();
    serialize_to_file(old.views(), None, &path).unwrap();
    let map = unsafe { safetensors_zero::Mmap::open(&path) }.unwrap();
    let opened = File::open(&path).unwrap();
    serialize_to_file(new.views(), None, &path).unwrap();
    for (_, view) in &map.tensors() {
        assert!(view.data().iter().all(|byte| *byte == 1));
    }
    let mut bytes = vec![0; 40_000];
    opened.tensor("tensor.0").unwrap().read_into(&mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 1));
    File::open(&path).unwrap().tensor("tensor.0").unwrap().read_into(&mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 2));
}

/// Not on targets that are tested in an emulator, where programs can't start each other.
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod in_another_process {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    const PATH: &str = "SAFETENSORS_ZERO_SAVING_TO";

    /// Runs this test in another process, which saves to this path.
    fn rerun(test: &str, path: &Path, before: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("{before} exec \"$0\" \"$@\""))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(PATH, path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    #[test]
    fn a_killed_save_leaves_the_old_or_the_new_file() {
        let models = generations();
        if let Some(path) = std::env::var_os(PATH) {
            for model in models.iter().cycle() {
                serialize_to_file(model.views(), None, &path).unwrap();
            }
        }
        let temp = Temp::new();
        let path = temp.join("model.safetensors");
        let whole = models.each_ref().map(|model| serialize(model.views(), None).unwrap());
        serialize_to_file(models[0].views(), None, &path).unwrap();
        // Kill within the time of four saves on this machine.
        let begin = std::time::Instant::now();
        for model in models.iter().cycle().take(20) {
            serialize_to_file(model.views(), None, &path).unwrap();
        }
        let four_saves = begin.elapsed() / 5;
        let mut rng = Rng(11);
        let (mut interrupted, mut seen) = (0, [0; 2]);
        for _ in 0..200 {
            let test = "in_another_process::a_killed_save_leaves_the_old_or_the_new_file";
            let mut child = rerun(test, &path, "").spawn().unwrap();
            // Wait for the temporary file of the first save.
            while other_files(temp.path(), &["model.safetensors"]).is_empty() {
                assert!(child.try_wait().unwrap().is_none());
                std::thread::yield_now();
            }
            std::thread::sleep(four_saves.mul_f64(rng.below(1000) as f64 / 1000.0));
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(9));
            let found = std::fs::read(&path).unwrap();
            let which = whole.iter().position(|file| *file == found);
            seen[which.expect("the file has to be one of the two, and complete")] += 1;
            for name in other_files(temp.path(), &["model.safetensors"]) {
                assert!(name.starts_with(".safetensors-") && name.ends_with(".partial"), "{name}");
                std::fs::remove_file(temp.join(name)).unwrap();
                interrupted += 1;
            }
        }
        assert!(interrupted > 20, "only {interrupted} kills interrupted a save");
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    }

    #[test]
    fn a_full_disk_is_an_error_and_leaves_nothing() {
        let [old, new] = generations();
        if let Some(path) = std::env::var_os(PATH) {
            let error = serialize_to_file(new.views(), None, &path).unwrap_err();
            assert!(matches!(error.kind(), WriteErrorKind::Write(_)), "{error}");
            let mut writer = FileWriter::create(&path, plan_of(&new)).unwrap();
            let mut tensor = writer.tensor("tensor.7").unwrap();
            let error = tensor.write_bytes(&new.tensors[7].data).unwrap_err();
            assert!(matches!(error.kind(), WriteErrorKind::Write(_)), "{error}");
            return;
        }
        let temp = Temp::new();
        let path = temp.join("model.safetensors");
        serialize_to_file(old.views(), None, &path).unwrap();
        let test = "in_another_process::a_full_disk_is_an_error_and_leaves_nothing";
        // Limit files to 64 KiB, and make writing more an error instead of a signal.
        let status = rerun(test, &path, "trap '' XFSZ; ulimit -f 128;").status().unwrap();
        assert!(status.success());
        assert!(std::fs::read(&path).unwrap() == serialize(old.views(), None).unwrap());
        assert_eq!(other_files(temp.path(), &["model.safetensors"]), [""; 0]);
    }
}

#[test]
fn shards_respect_the_size_bound_and_read_back() {
    let mut rng = Rng(8);
    for round in 0..30 {
        let temp = Temp::new();
        let count = 1 + rng.below(30);
        let model = random_model(&mut rng, count);
        let bound = 200 + rng.below(3000) as u64;
        let metadata: BTreeMap<_, _> = [("format".to_owned(), "pt".to_owned())].into();
        serialize_to_folder(model.views(), Some(metadata), temp.path(), bound).unwrap();

        let mut options = ShardsOptions::default();
        options.index = IndexLimits::STRICT;
        let shards = Shards::open_with(temp.path(), &options).unwrap();
        assert_eq!(shards.verify().len(), 0, "{:?}", shards.verify());
        assert_eq!(shards.len(), model.tensors.len());
        let total = shards.shards();
        for shard in 0..total {
            let name = format!("model-{:05}-of-{total:05}.safetensors", shard + 1);
            let file = File::open(temp.join(&name)).unwrap();
            let len = std::fs::metadata(temp.join(&name)).unwrap().len();
            assert!(len <= bound || file.len() == 1, "{round}: {len} of {bound}");
            assert_eq!(file.metadata().unwrap().get("format").unwrap(), "pt");
        }
        let index: serde_json::Value = serde_json::from_slice(
            &std::fs::read(temp.join("model.safetensors.index.json")).unwrap(),
        )
        .unwrap();
        let bytes: usize = model.tensors.iter().map(|spec| spec.data.len()).sum();
        assert_eq!(index["metadata"]["total_size"], bytes);
        for spec in &model.tensors {
            let tensor = shards.tensor(&spec.name).unwrap();
            let mut data = vec![0; spec.data.len()];
            tensor.read_into(&mut data).unwrap();
            assert_eq!((tensor.dtype(), &data), (spec.dtype, &spec.data));
        }
    }
}

#[test]
fn tensors_are_distributed_over_numbered_shards() {
    let mut builder = PlanBuilder::new();
    for layer in 0..10 {
        builder.tensor(format!("layers.{layer}"), Dtype::U8, [1000]);
    }
    builder.tensor("large", Dtype::U8, [9000]).tensor("last", Dtype::U8, [1]);
    let model = builder.shards("m", 4000).unwrap();
    let tensors: Vec<usize> =
        model.shards().iter().map(|shard| shard.plan().table().len()).collect();
    assert_eq!(tensors, [3, 3, 3, 1, 1, 1]);
    assert_eq!(model.shards()[5].name(), "m-00006-of-00006.safetensors");
    assert_eq!(model.index_name(), "m.safetensors.index.json");
    assert_eq!(PlanBuilder::new().shards("m", 0).unwrap().shards().len(), 1);
    for base in ["../m", "/m", "a\\b", "sub/m", "con:"] {
        let error = builder.shards(base, 4000).unwrap_err();
        assert!(matches!(error.refusal(), Some(ErrorKind::ShardName { .. })), "{base}");
    }
    builder.tensor("layers.0", Dtype::I8, [1]);
    let error = builder.shards("m", 4000).unwrap_err();
    assert_eq!(error.refusal(), Some(ErrorKind::NameRepeated { first: 0 }));
    assert_eq!(error.tensor(), Some("layers.0"));
}

#[test]
fn saves_use_the_given_options() {
    let temp = Temp::new();
    let path = temp.join("model.safetensors");
    let [model, _] = generations();
    let mut options = PlanOptions::default();
    options.align = 4096;
    serialize_to_file_with(model.views(), None, &path, &options).unwrap();
    let file = File::open_with(&path, &Limits::STRICT).unwrap();
    assert_eq!(file.table().data_start(), 4096);
}
