//! Floor 6, reading bytes that are not in memory: positioned reads, files, memory maps, shard
//! indexes, and models of several files.
//!
//! Nothing here decides which headers are valid. The floors before this one do.

// In reading order. Each module imports only modules above it.
pub(crate) mod source;
pub(crate) mod reader;
pub(crate) mod index;
#[cfg(feature = "alloc")]
pub(crate) mod weight_map;
#[cfg(feature = "std")]
pub(crate) mod file;
#[cfg(feature = "mmap")]
pub(crate) mod mmap;
#[cfg(feature = "std")]
pub(crate) mod shards;
