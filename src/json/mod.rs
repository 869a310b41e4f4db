//! Floor 2, bytes to tokens: a bounded pull tokenizer, and escaped strings that are compared and
//! hashed without a buffer.
//!
//! Nothing here knows about tensors.

// In reading order. Each module imports only modules above it.
pub(crate) mod text;
mod magnitude;
mod nesting;
mod words;
pub(crate) mod tokenizer;
