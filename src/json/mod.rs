//! The second floor, bytes to tokens: a bounded pull tokenizer, and escaped strings that are compared
//! and hashed without a buffer.
//!
//! Nothing here knows what a tensor is.

// In reading order: each module imports only those above it.
pub(crate) mod text;
mod magnitude;
mod nesting;
mod words;
pub(crate) mod tokenizer;
