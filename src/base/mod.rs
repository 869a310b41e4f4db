//! The first floor: bytes without panics, checked conversions, dtypes, limits, errors and their
//! sentences, and how files of other formats are recognised.
//!
//! Nothing here knows JSON or the structure of the format.

// In reading order: each module imports only those above it.
pub(crate) mod bare;
pub(crate) mod convert;
pub(crate) mod dtype;
pub(crate) mod foreign;
pub(crate) mod error;
pub(crate) mod limits;
