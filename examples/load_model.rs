//! Loads a whole model as `f32` into one arena, using all processors.
//!
//! cargo run --release --example load_model -- examples/animals.safetensors --means
//!
//! The model is a safetensors file, the index of a sharded model, or a folder that holds either.
//! The size of the arena is computed from the headers. A model that needs more memory than allowed
//! (`--memory 16G`) is refused before anything is allocated. Threads then take ranges of about a
//! million elements in turn, and read and convert each into its part of the arena. Each thread
//! needs another 64 KiB.

#![allow(clippy::restriction, clippy::pedantic)]

use std::io::IsTerminal as _;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Instant;

use safetensors_zero::{FileError, Shards, TensorInfo};

const USAGE: &str = "usage: load_model PATH [--memory BYTES[K|M|G]] [--threads N] [--means]";

/// The number of elements that a thread reads at a time: large enough for efficient reads, small
/// enough to balance the threads.
const PART: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("load_model: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("load_model: {message}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    path: String,
    /// The maximum size of the arena in bytes.
    memory: u64,
    threads: usize,
    means: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut path = None;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Options { path: String::new(), memory: 8 << 30, threads, means: false };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--means" => options.means = true,
                "--memory" => options.memory = bytes(&value()?)?,
                "--threads" => {
                    let value = value()?;
                    let threads = value.parse();
                    options.threads =
                        threads.map_err(|_| format!("{value:?} is not a number of threads"))?;
                }
                _ if argument.starts_with("--") => {
                    return Err(format!("unknown option {argument}"))
                }
                _ if path.is_some() => return Err("more than one path".into()),
                _ => path = Some(argument),
            }
        }
        options.path = path.ok_or("missing path of a model")?;
        Ok(options)
    }
}

/// Parses a number of bytes: `64`, `64K`, `64M`, or `64G`.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text:?} is not a number of bytes"))
}

fn run(options: &Options) -> Result<(), String> {
    let started = Instant::now();
    let model = Shards::open(&options.path).map_err(|error| error.to_string())?;
    let plan = Plan::new(&model, options.memory)?;
    let progress = Progress::new(plan.elements);
    let arena = load(&model, &plan, options.threads, &progress)?;
    let seconds = started.elapsed().as_secs_f64();
    if options.means {
        for (info, place) in &plan.tensors {
            println!(
                "{:?} {} {} {}",
                info.name,
                info.dtype,
                info.shape,
                mean(&arena[place.clone()])
            );
        }
    }
    let (tensors, elements) = (plan.tensors.len(), plan.elements);
    println!("{tensors} tensors, {elements} elements, {seconds:.3} s, {} threads", options.threads);
    Ok(())
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64
}

/// The place of each tensor in the arena.
struct Plan<'m> {
    tensors: Vec<(TensorInfo<'m>, Range<usize>)>,
    /// The number of elements of all tensors, and so of the arena.
    elements: usize,
}

impl<'m> Plan<'m> {
    /// Reads the headers of all shards. Fails if the arena would exceed `memory` bytes.
    fn new(model: &'m Shards, memory: u64) -> Result<Plan<'m>, String> {
        let mut tensors = Vec::new();
        let mut elements: u64 = 0;
        for tensor in model.tensors() {
            let info = tensor.map_err(|error| error.to_string())?.info();
            if !info.dtype.has_f32() {
                return Err(format!("{:?} is {}, which f32 cannot hold", info.name, info.dtype));
            }
            // Checked, because a header can claim any number of elements.
            let end = elements.saturating_add(info.elements());
            let needed = end.saturating_mul(size_of::<f32>() as u64);
            if needed > memory {
                return Err(format!(
                    "up to {:?}, the model needs {needed} bytes as f32, but {memory} are allowed",
                    info.name,
                ));
            }
            let place = usize::try_from(elements).ok().zip(usize::try_from(end).ok());
            let (begin, end) = place.ok_or("the model does not fit this machine's memory")?;
            tensors.push((info, begin..end));
            elements = end as u64;
        }
        Ok(Plan { tensors, elements: elements as usize })
    }
}

/// A part of a tensor, and its place in the arena.
struct Part<'a, 'm> {
    info: &'a TensorInfo<'m>,
    /// The position of its first element in the tensor.
    first: u64,
    place: &'a mut [f32],
}

/// Reads a model into an arena with the given number of threads.
fn load(
    model: &Shards,
    plan: &Plan<'_>,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>, String> {
    let mut arena = Vec::new();
    let no_memory = |_| format!("not enough memory for {} elements", plan.elements);
    arena.try_reserve_exact(plan.elements).map_err(no_memory)?;
    arena.resize(plan.elements, 0.0);

    let parts = Mutex::new(parts(plan, &mut arena));
    let failed = AtomicBool::new(false);
    // The lock is held while the next part is split off, not while it is read.
    let next = || parts.lock().ok().and_then(|mut parts| parts.next());
    let work = || {
        while let Some(part) = next().filter(|_| !failed.load(Ordering::Relaxed)) {
            let done = part.place.len();
            if let Err(error) = read(model, part) {
                failed.store(true, Ordering::Relaxed);
                return Err(error.to_string());
            }
            progress.add(done);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, 256)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    drop(parts);
    Ok(arena)
}

/// Splits the arena into the parts of all tensors.
fn parts<'a, 'm>(
    plan: &'a Plan<'m>,
    arena: &'a mut [f32],
) -> impl Iterator<Item = Part<'a, 'm>> + Send {
    let mut rest = arena;
    plan.tensors.iter().flat_map(move |(info, place)| {
        // The plan's places are contiguous and fill the arena.
        let (tensor, after) = std::mem::take(&mut rest).split_at_mut(place.len());
        rest = after;
        let firsts = (0..).step_by(PART);
        firsts.zip(tensor.chunks_mut(PART)).map(move |(first, place)| Part { info, first, place })
    })
}

fn read(model: &Shards, part: Part<'_, '_>) -> Result<(), FileError> {
    // Looked up each time, so that a model of many shards doesn't keep all of them open.
    let tensor = model.tensor(&part.info.name.to_cow())?;
    tensor.dequant_range(part.first, part.place)
}

/// Prints progress on stderr: in place on a terminal, otherwise as four lines.
struct Progress {
    total: usize,
    done: AtomicUsize,
    terminal: bool,
}

impl Progress {
    fn new(total: usize) -> Progress {
        Progress { total, done: AtomicUsize::new(0), terminal: std::io::stderr().is_terminal() }
    }

    fn add(&self, elements: usize) {
        let before = self.done.fetch_add(elements, Ordering::Relaxed);
        let steps = if self.terminal { 100 } else { 4 };
        let step = |done: usize| done as u128 * steps / self.total.max(1) as u128;
        let (before, now) = (step(before), step(before.saturating_add(elements)));
        if now == before {
            return;
        }
        let percent = now * (100 / steps);
        match self.terminal {
            true if percent < 100 => eprint!("\r{percent:3} %"),
            true => eprint!("\r      \r"),
            false => eprintln!("{percent:3} %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use safetensors_zero::{Dtype, File};

    use super::*;

    /// A temporary folder, removed when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("load_model-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Returns tensor names and a file with a tensor of each dtype but C64. A name is the dtype and
    /// the suffix.
    fn shard(suffix: &str, elements: usize) -> (Vec<String>, Vec<u8>) {
        let (mut names, mut entries, mut data) = (Vec::new(), Vec::new(), Vec::<u8>::new());
        for dtype in Dtype::ALL.iter().filter(|dtype| dtype.has_f32()) {
            let begin = data.len();
            let end = begin + elements * dtype.bitsize() / 8;
            data.extend((begin..end).map(|i| (i * 37 + i / 251) as u8));
            entries.push(format!(
                r#""{dtype}.{suffix}":{{"dtype":"{dtype}","shape":[{elements}],"data_offsets":[{begin},{end}]}}"#
            ));
            names.push(format!("{dtype}.{suffix}"));
        }
        let header = format!("{{{}}}", entries.join(","));
        let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
        (names, file)
    }

    /// Reads one tensor after another, opening its file each time.
    fn naive(model: &Shards) -> Vec<u32> {
        let mut bits = Vec::new();
        for tensor in model.tensors() {
            let tensor = tensor.unwrap();
            let mut values = vec![0.0; tensor.elements() as usize];
            let file = File::open(tensor.path()).unwrap();
            file.tensor(&tensor.name().to_cow()).unwrap().dequant_into(&mut values).unwrap();
            bits.extend(values.into_iter().map(f32::to_bits));
        }
        bits
    }

    fn check(path: &Path) -> usize {
        let model = Shards::open(path).unwrap();
        let expected = naive(&model);
        let plan = Plan::new(&model, 1 << 30).unwrap();
        assert_eq!(plan.tensors.len(), model.len());
        for threads in [1, 5] {
            let progress = Progress::new(plan.elements);
            let arena = load(&model, &plan, threads, &progress).unwrap();
            let bits: Vec<u32> = arena.into_iter().map(f32::to_bits).collect();
            assert!(bits == expected, "{threads} threads");
            assert_eq!(progress.done.into_inner(), expected.len());
        }
        expected.len()
    }

    #[test]
    fn loading_a_file_equals_reading_its_tensors() {
        check(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/animals.safetensors")));
        let folder = Folder::new("file");
        let path = folder.write("model.safetensors", shard("x", 3 * PART + 4).1);
        assert_eq!(check(&path), 21 * (3 * PART + 4));
    }

    #[test]
    fn loading_shards_equals_reading_their_tensors() {
        let folder = Folder::new("shards");
        let mut map = Vec::new();
        for (number, elements) in [4, 0, 1000, 12].into_iter().enumerate() {
            let name = format!("model-{number}.safetensors");
            let (tensors, file) = shard(&number.to_string(), elements);
            folder.write(&name, file);
            map.extend(tensors.iter().map(|tensor| format!(r#""{tensor}":"{name}""#)));
        }
        let index = format!(r#"{{"weight_map":{{{}}}}}"#, map.join(","));
        let index = folder.write("model.safetensors.index.json", index);
        assert_eq!(check(&index), 21 * 1016);
        assert_eq!(check(&folder.0), 21 * 1016);
    }

    #[test]
    fn memory_limit_is_exact() {
        let folder = Folder::new("memory");
        let model = Shards::open(folder.write("a.safetensors", shard("x", 4).1)).unwrap();
        let needed = 21 * 4 * 4;
        assert_eq!(Plan::new(&model, needed).unwrap().elements, 21 * 4);
        let error = Plan::new(&model, needed - 1).map(|_| ()).unwrap_err();
        assert!(error.contains("336 bytes") && error.contains("335 are allowed"), "{error}");
    }

    #[test]
    fn reports_a_truncated_file() {
        let folder = Folder::new("shrunk");
        let (_, file) = shard("x", 4);
        let path = folder.write("a.safetensors", &file);
        let model = Shards::open(&path).unwrap();
        let plan = Plan::new(&model, 1 << 20).unwrap();
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(file.len() as u64 - 1)
            .unwrap();
        let error = load(&model, &plan, 3, &Progress::new(84)).unwrap_err();
        assert!(error.contains("a.safetensors"), "{error}");
    }

    #[test]
    fn parses_options() {
        let parse = |text: &str| Options::parse(text.split_whitespace().map(str::to_owned));
        let options = parse("--memory 3M a.safetensors --threads 7").unwrap();
        assert_eq!((options.memory, options.threads, options.means), (3 << 20, 7, false));
        for wrong in ["", "a b", "a --threads x", "a --memory", "a --memory 99999999999G", "a --x"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
