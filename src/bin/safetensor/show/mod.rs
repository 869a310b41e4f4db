//! Everything that prints or draws. Each module imports only from those listed before it.

pub(crate) mod terminal;
pub(crate) mod numbers;
pub(crate) mod json;
pub(crate) mod errors;
pub(crate) mod progress;
pub(crate) mod chart;
pub(crate) mod columns;
pub(crate) mod groups;
pub(crate) mod histogram;
pub(crate) mod picture;
pub(crate) mod heatmap;
pub(crate) mod info;
pub(crate) mod tensors;
pub(crate) mod stats;
pub(crate) mod diff;
