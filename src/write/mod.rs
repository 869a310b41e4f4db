//! Writing files: plans, header text, streams, atomic saves, sharded saves, and edits in place.
//!
//! This floor doesn't interpret tensor data.

// In reading order: each module imports only those above it.
pub(crate) mod plan;
#[cfg(feature = "alloc")]
pub(crate) mod error;
#[cfg(feature = "alloc")]
pub(crate) mod build;
#[cfg(feature = "alloc")]
pub(crate) mod shards;
#[cfg(feature = "std")]
pub(crate) mod save;
#[cfg(feature = "std")]
pub(crate) mod edit;
