//! The sixth floor, bytes that are not in memory: positioned reads, files, maps, shard indexes, and
//! models of several files.
//!
//! Nothing here decides what is valid: the floors above do.

// In reading order: each module imports only those above it.
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
