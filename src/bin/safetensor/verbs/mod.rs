//! One module for each verb: its arguments, and what it does. They do not import from each other.

pub(crate) mod info;
pub(crate) mod tensors;
pub(crate) mod verify;
pub(crate) mod stats;
pub(crate) mod export;
pub(crate) mod diff;
pub(crate) mod hash;
pub(crate) mod meta;
pub(crate) mod repack;
pub(crate) mod selftest;
pub(crate) mod completions;
