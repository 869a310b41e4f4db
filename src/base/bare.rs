//! Whether the library is built for bare metal, where flash is counted in kilobytes.
//!
//! In a few places there is a fast path beside a small one that comes to the same result; on bare
//! metal the fast one is left out. So are hints to inline what is called in many places.

/// Whether there is no operating system.
pub(crate) const BARE_METAL: bool = cfg!(target_os = "none");
