//! Whether the library is built for bare metal, where flash is counted in kilobytes.
//!
//! Some functions have both a fast path and a smaller one with the same result. Bare-metal builds
//! contain only the smaller one, and do not inline functions that are called in many places.

/// Whether the target has no operating system.
pub(crate) const BARE_METAL: bool = cfg!(target_os = "none");
