//! Floor 4, entries to a validated table: slots, order, the chain of offsets, duplicate names, and
//! lookup.
//!
//! Nothing here touches tensor data.

// In reading order. Each module imports only modules above it.
pub(crate) mod slot;
pub(crate) mod sort;
pub(crate) mod order;
pub(crate) mod name_index;
pub(crate) mod duplicate_keys;
pub(crate) mod info;
#[allow(clippy::module_inception)]
pub(crate) mod table;
#[cfg(feature = "alloc")]
pub(crate) mod owned;
