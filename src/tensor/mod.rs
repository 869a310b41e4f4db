//! The fifth floor: operations on tensors in memory. Owns views, slices, conversion to and from
//! floats, statistics, and the scan that needs no slots.
//!
//! Nothing here reads files.

// In reading order: each module imports only those above it.
pub(crate) mod extent;
pub mod dequant;
pub(crate) mod view;
pub(crate) mod scan;
pub mod slice;
pub mod stats;
pub(crate) mod tensors;
pub mod encode;
