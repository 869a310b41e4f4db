#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "mmap"), forbid(unsafe_code))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

// The seven floors. Data flows from the first to the last; each imports only from those above it.
mod base;
mod json;
mod header;
mod table;
mod tensor;
mod read;
mod write;
#[doc(hidden)]
pub mod internals;
// Pages of documentation, without code.
#[cfg(all(doc, feature = "std"))]
#[cfg_attr(not(feature = "mmap"), allow(rustdoc::broken_intra_doc_links))]
pub mod guide;

pub use base::dtype::{Dtype, DtypeSet, ParseDtypeError};
pub use base::error::{
    Error, ErrorKind, Expected, Field, JsonType, Key, ShardNameFault, StringKind,
};
pub use base::foreign::Foreign;
pub use base::limits::{IndexLimits, Limits};

pub use json::text::{Chars, Text};

pub use header::error_in_file::ErrorInFile;
pub use header::frame::{Frame, Header};
pub use header::metadata::{Metadata, MetadataIter};
pub use header::shape::{Dimensions, Shape};

pub use table::info::TensorInfo;
#[cfg(feature = "alloc")]
pub use table::owned::OwnedTable;
pub use table::slot::TensorSlot;
pub use table::table::{Alignment, Count, Table, TableIter};

pub use tensor::scan::{Found, Scan, Scanned};
pub use tensor::slice::{Slice, SliceView, TensorIndexer};
pub use tensor::stats::Stats;
pub use tensor::tensors::{SafeTensors, TensorsIter};
pub use tensor::view::{Element, TensorView};
pub use tensor::{dequant, encode, slice, stats};

#[cfg(feature = "std")]
pub use read::file::{File, FileError, FileErrorKind, FileSlice, FileTensor, FileType, Progress};
pub use read::index::{Index, IndexIter, ShardName, TotalSize};
#[cfg(feature = "mmap")]
pub use read::mmap::{Advice, Mmap, MmapOptions};
pub use read::reader::{Reader, SliceReader, TensorReader};
#[cfg(feature = "std")]
pub use read::shards::{Finding, FindingKind, Shards, ShardsOptions};
pub use read::source::{EndOfSource, ReadError, Source};
#[cfg(feature = "alloc")]
pub use read::weight_map::WeightMap;

#[cfg(feature = "alloc")]
pub use write::build::{serialize, serialize_with, OwnedPlan, PlanBuilder, View};
#[cfg(feature = "std")]
pub use write::edit::{Edited, MetadataEdit};
#[cfg(feature = "alloc")]
pub use write::error::{WriteError, WriteErrorKind};
pub use write::plan::{Order, Plan, PlanError, PlanOptions, PlanTensor};
#[cfg(feature = "std")]
pub use write::save::{
    serialize_to_file, serialize_to_file_with, serialize_to_folder, AtomicFile, FileWriter,
    StreamWriter, TensorWriter,
};
#[cfg(feature = "alloc")]
pub use write::shards::{ShardPlan, ShardPlans};
