//! Floor 1: checked conversions, dtypes, limits, errors and their messages, and recognition of
//! files in other formats.
//!
//! Nothing here knows JSON or the structure of the format.

// In reading order. Each module imports only modules above it.
pub(crate) mod bare;
pub(crate) mod convert;
pub(crate) mod dtype;
pub(crate) mod foreign;
pub(crate) mod error;
pub(crate) mod limits;
