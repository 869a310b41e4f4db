//! Floor 5, operations on tensors in memory: views, slices, conversion to `f32` and from numbers,
//! statistics, and the scan that needs no slots.
//!
//! Nothing here reads files.

// In reading order. Each module imports only modules above it.
pub(crate) mod extent;
pub mod dequant;
pub(crate) mod view;
pub(crate) mod scan;
pub mod slice;
pub mod stats;
pub(crate) mod tensors;
pub mod encode;
