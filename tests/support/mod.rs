//! What the tests share: the corpus, a builder of files, a generator of models, and the paths that
//! a file can take through the library.

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
