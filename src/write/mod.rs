//! The seventh floor, a file from tensors: plans, header text, streams, atomic saves, shards, and edits
//! in place.
//!
//! Nothing here interprets the data of a tensor.

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
