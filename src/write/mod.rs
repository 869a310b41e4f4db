//! Floor 7, writing files: plans, header text, streams, atomic saves, sharded saves, and edits in
//! place.
//!
//! Nothing here interprets tensor data.

// In reading order. Each module imports only modules above it.
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
