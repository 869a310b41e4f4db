//! The sixth floor reads bytes that are not in memory: positioned reads, files, memory maps, shard
//! indexes, and models of several files.
//!
//! Nothing here decides what is valid. The floors above do.

// In reading order: each module imports only from those above it.
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
