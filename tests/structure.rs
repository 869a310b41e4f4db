//! Promise: the code has the structure that the guide's page on architecture shows. Each floor imports
//! only from those above it, each module of a floor only from those listed above it, and no file grows
//! out of hand. The public types are Send, Sync and mostly Copy.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

use std::path::{Path, PathBuf};

use safetensors_zero::*;

/// The floors of the library, in the direction in which data flows.
const FLOORS: [&str; 7] = ["base", "json", "header", "table", "tensor", "read", "write"];
/// Modules that can import from all floors.
const ROOF: [&str; 2] = ["internals", "guide"];

/// The floors of the program, and what is above them.
const PROGRAM_FLOORS: [&str; 3] = ["files", "show", "verbs"];
const PROGRAM_ROOF: [&str; 1] = ["arguments"];

/// Lines of a file, its unit tests not counted.
const MAX_LINES: usize = 600;

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file under a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The modules that a file declares, in its order.
fn modules(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
        Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
    };
    text.lines().filter_map(name).collect()
}

/// A file without its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\n#[allow").next().unwrap()
}

/// The code of a file without its unit tests and comments.
fn code(text: &str) -> String {
    let lines = without_tests(text).lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The paths that follow `crate::` in some code, each as its components.
fn imports(code: &str) -> Vec<Vec<String>> {
    let path = |at: usize| {
        let is_path = |c: &char| c.is_alphanumeric() || *c == '_' || *c == ':';
        let path: String = code[at..].chars().take_while(is_path).collect();
        path.split("::").map(str::to_owned).collect()
    };
    code.match_indices("crate::").map(|(at, found)| path(at + found.len())).collect()
}

/// Checks the files of some floors, whose folders are in `root`, and returns how many imports it saw.
fn check_floors(root: &Path, floors: &[&str]) -> usize {
    let mut seen = 0;
    for (height, floor) in floors.iter().enumerate() {
        let folder = root.join(floor);
        let order = modules(&read(&folder.join("mod.rs")));
        let place = |module: &str| order.iter().position(|listed| listed == module);
        for file in files(&folder) {
            let inside = file.strip_prefix(&folder).unwrap();
            let own = inside.components().next().unwrap().as_os_str().to_str().unwrap();
            let own = place(own.trim_end_matches(".rs"));
            let code = code(&read(&file));
            for path in imports(&code) {
                seen += 1;
                let shown = path.join("::");
                let target = floors.iter().position(|floor| *floor == path[0]);
                let Some(target) = target else { panic!("{}: crate::{shown}", file.display()) };
                assert!(target <= height, "{}: crate::{shown} goes up", file.display());
                if target == height {
                    let module = place(&path[1]);
                    assert!(module.is_some(), "{}: crate::{shown}", file.display());
                    assert!(module <= own, "{}: crate::{shown} goes up", file.display());
                }
            }
            // `super` leads out of a floor, or past the order of its modules, unless it stays in a folder.
            if inside.components().count() == 1 {
                assert!(!code.contains("super::"), "{}: super", file.display());
            }
            assert!(!code.contains("super::super"), "{}: super::super", file.display());
        }
    }
    seen
}

#[test]
fn floors_import_only_from_those_above() {
    let listed = modules(&read(&src().join("lib.rs")));
    assert_eq!(listed, [&FLOORS[..], &ROOF[..]].concat(), "src/lib.rs lists the floors in order");
    assert!(check_floors(&src(), &FLOORS) > 200, "the imports are found");
}

#[test]
fn program_imports_only_from_floors_above_and_from_the_public_interface() {
    let root = src().join("bin/safetensor");
    let listed = modules(&read(&root.join("main.rs")));
    assert_eq!(listed, [&PROGRAM_FLOORS[..], &PROGRAM_ROOF[..]].concat());
    assert!(check_floors(&root, &PROGRAM_FLOORS) > 100, "the imports are found");
    for file in files(&root) {
        assert!(!read(&file).contains("safetensors_zero::internals"), "{}", file.display());
    }
}

#[test]
fn no_file_is_too_long() {
    for file in files(&src()) {
        let lines = without_tests(&read(&file)).lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", file.display());
    }
}

fn is_free<T: Send + Sync + Unpin + Clone + std::fmt::Debug + std::panic::UnwindSafe>() {}
fn is_copied<T: Copy>() {}

#[test]
fn types_go_everywhere() {
    is_free::<SafeTensors<'_, '_>>();
    is_free::<Table<'_, '_>>();
    is_free::<Scan<'_, '_>>();
    is_free::<slice::Runs<'_>>();
    is_free::<MetadataIter<'_>>();
    is_free::<TensorsIter<'_, '_>>();
    macro_rules! copied {
        ($($type:ty),*) => {$(is_free::<$type>(); is_copied::<$type>();)*};
    }
    copied!(
        Error,
        ErrorKind,
        ErrorInFile<'_>,
        Limits,
        Dtype,
        DtypeSet,
        Text<'_>,
        Shape<'_>,
        Frame,
        Header<'_>,
        Metadata<'_>,
        TensorInfo<'_>,
        TensorView<'_>,
        TensorSlot,
        TensorIndexer,
        Slice<'_>,
        SliceView<'_>,
        Stats,
        stats::Accumulator,
        Alignment,
        Count,
        Scanned<'_>,
        Found<'_>,
        IndexLimits,
        Index<'_>,
        ShardName<'_>,
        TotalSize,
        EndOfSource,
        PlanTensor<'_>,
        PlanOptions,
        Order,
        Plan<'_, '_>,
        PlanError
    );
    fn is_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_error::<Error>();
    is_error::<PlanError>();
    is_error::<EndOfSource>();
    is_error::<ReadError<EndOfSource>>();
    is_free::<Reader<'_, '_, &[u8]>>();
    is_free::<TensorReader<'_, &[u8]>>();
    is_free::<SliceReader<'_, &[u8]>>();
    #[cfg(feature = "alloc")]
    {
        is_error::<WriteError>();
        is_free::<OwnedTable>();
        is_free::<WeightMap>();
        is_free::<PlanBuilder>();
        is_free::<OwnedPlan>();
        is_free::<ShardPlans>();
    }
    #[cfg(feature = "std")]
    {
        fn is_shared<T: Send + Sync + std::fmt::Debug>() {}
        is_error::<FileError>();
        is_shared::<File>();
        is_shared::<FileTensor<'_>>();
        is_shared::<FileSlice<'_, '_>>();
        is_shared::<Shards>();
        is_shared::<Finding>();
        is_shared::<FileWriter>();
        is_shared::<StreamWriter<Vec<u8>>>();
        is_free::<MetadataEdit>();
        #[cfg(feature = "mmap")]
        is_shared::<Mmap>();
    }
    assert!(size_of::<Error>() <= 64 && size_of::<TensorSlot>() == 40);
    assert!(size_of::<Slice<'_>>() <= 512, "{}", size_of::<Slice<'_>>());
}
