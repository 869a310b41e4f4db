//! Code that tests share: the corpus, file builders, a generator of models, reference
//! implementations, and a reader that compares every path through the library.

pub mod allocator;
pub mod corpus;
pub mod file;
pub mod hostile;
#[cfg(feature = "alloc")]
pub mod index;
pub mod model;
pub mod naive;
pub mod paths;
pub mod reference;
pub mod rng;
pub mod temp;
