//! Everything that opens or saves, and why that fails. Each module imports only from those listed
//! before it.

pub(crate) mod failure;
pub(crate) mod interrupt;
pub(crate) mod suggest;
pub(crate) mod glob;
pub(crate) mod input;
pub(crate) mod listing;
pub(crate) mod values;
pub(crate) mod npy;
pub(crate) mod printer;
pub(crate) mod output;
