//! Promise: the code is built as its picture says: each room knows only those below it, nothing
//! outside the core's four dependencies, and no file grows out of hand. And what is promised of
//! types holds: they go between threads, and most are copied freely.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

use std::path::Path;

use safetensors_zero::*;

/// The rooms of the core, each with what it may know: those before it.
const ROOMS: [&str; 43] = [
    "bare",
    "convert",
    "dtype",
    "foreign",
    "error",
    "limits",
    "text",
    "json",
    "shape",
    "header",
    "metadata",
    "entry",
    "quick",
    "walk",
    "report",
    "slot",
    "sort",
    "order",
    "names",
    "keys",
    "info",
    "extent",
    "table",
    "dequant",
    "view",
    "scan",
    "slice",
    "stats",
    "tensors",
    "encode",
    "plan",
    "owned",
    "source",
    "reader",
    "index",
    "weight_map",
    "file",
    "mmap",
    "shards",
    "write",
    "save",
    "edit",
    "internals",
];

fn sources(room: &str) -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![src.join(format!("{room}.rs"))];
    if let Ok(folder) = std::fs::read_dir(src.join(room)) {
        files.extend(folder.map(|file| file.unwrap().path()));
    }
    let read = |path: &std::path::PathBuf| {
        (path.display().to_string(), std::fs::read_to_string(path).unwrap())
    };
    files.iter().map(read).collect()
}

#[test]
fn rooms_know_only_those_below() {
    for (place, room) in ROOMS.iter().enumerate() {
        for (path, text) in sources(room) {
            for (_, rest) in
                text.match_indices("crate::").map(|(at, found)| text.split_at(at + found.len()))
            {
                let known: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if known.is_empty() || known.starts_with(char::is_uppercase) {
                    // A type by its public path, in documentation.
                    continue;
                }
                let below = ROOMS[..=place].contains(&known.as_str());
                let documented = ["slice::MAX_INDEXERS", "serialize()"]
                    .iter()
                    .any(|item| rest.starts_with(item));
                assert!(below || documented, "{path} knows {known}");
            }
        }
    }
    let lib =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let modules: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod ")))
        .map(|module| module.trim_end_matches(';'))
        .collect();
    assert_eq!(modules, ROOMS, "src/lib.rs lists the rooms in their order");
}

#[test]
fn no_file_is_too_long() {
    for room in ROOMS {
        for (path, text) in sources(room) {
            let code = text.split("#[cfg(test)]\n#[allow").next().unwrap();
            assert!(code.lines().count() <= 600, "{path} has {} lines", code.lines().count());
        }
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
