//! Floor 3, tokens to checked entries: the 8-byte frame, the walk over a header's entries with its
//! fast path, shapes, and metadata.
//!
//! Each entry is checked on its own. Nothing here compares entries with each other.

// In reading order. Each module imports only modules above it.
pub(crate) mod shape;
pub(crate) mod frame;
pub(crate) mod metadata;
pub(crate) mod entry;
pub(crate) mod fast;
pub(crate) mod walk;
pub(crate) mod error_in_file;
