#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "mmap"), forbid(unsafe_code))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

// In reading order: each knows only those above it.
mod bare;
mod convert;
mod dtype;
mod foreign;
mod error;
mod limits;
mod text;
mod json;
mod shape;
mod header;
mod metadata;
mod entry;
mod quick;
mod walk;
mod report;
mod slot;
mod sort;
mod order;
mod names;
mod keys;
mod info;
mod extent;
mod table;
pub mod dequant;
mod view;
mod scan;
pub mod slice;
pub mod stats;
mod tensors;
pub mod encode;
mod plan;
#[cfg(feature = "alloc")]
mod owned;
mod source;
mod reader;
mod index;
#[cfg(feature = "alloc")]
mod weight_map;
#[cfg(feature = "std")]
mod file;
#[cfg(feature = "mmap")]
mod mmap;
#[cfg(feature = "std")]
mod shards;
#[cfg(feature = "alloc")]
mod write;
#[cfg(feature = "std")]
mod save;
#[cfg(feature = "std")]
mod edit;
#[doc(hidden)]
pub mod internals;

pub use dtype::{Dtype, DtypeClass, DtypeSet, ParseDtypeError};
#[cfg(feature = "std")]
pub use edit::{Edited, MetadataEdit};
pub use error::{Error, ErrorKind, Expected, Field, JsonType, Key, ShardNameFault, StringKind};
#[cfg(feature = "std")]
pub use file::{File, FileError, FileErrorKind, FileSlice, FileTensor, FileType, Progress};
pub use foreign::Foreign;
pub use header::{Frame, Header};
pub use index::{Index, IndexIter, ShardName, TotalSize};
pub use info::TensorInfo;
pub use limits::{IndexLimits, Limits};
pub use metadata::{Metadata, MetadataIter};
#[cfg(feature = "mmap")]
pub use mmap::{Advice, Mmap, MmapOptions};
#[cfg(feature = "alloc")]
pub use owned::OwnedTable;
pub use plan::{Order, Plan, PlanError, PlanOptions, PlanTensor};
pub use reader::{Reader, SliceReader, TensorReader};
pub use report::ErrorInFile;
#[cfg(feature = "std")]
pub use save::{
    serialize_to_file, serialize_to_file_with, serialize_to_folder, FileWriter, StreamWriter,
    TensorWriter,
};
pub use scan::{Found, Scan, Scanned};
pub use shape::{Dimensions, Shape};
#[cfg(feature = "std")]
pub use shards::{Finding, FindingKind, Shards, ShardsOptions};
pub use slice::{Slice, SliceView, TensorIndexer};
pub use slot::TensorSlot;
pub use source::{EndOfSource, ReadError, Source};
pub use stats::Stats;
pub use table::{Alignment, Count, Table, TableIter};
pub use tensors::{SafeTensors, TensorsIter};
pub use text::{Chars, Text};
pub use view::{Element, TensorView};
#[cfg(feature = "alloc")]
pub use weight_map::WeightMap;
#[cfg(feature = "alloc")]
pub use write::{
    serialize, serialize_with, OwnedPlan, PlanBuilder, ShardPlan, ShardPlans, View, WriteError,
    WriteErrorKind,
};
