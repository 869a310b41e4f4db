//! Saving: to streams in data order, to files in any order, and atomically.

mod atomic;
mod file;
mod stream;
mod tensor;

pub(crate) use atomic::write_all_at;
pub use atomic::AtomicFile;
pub use file::{serialize_to_file, serialize_to_file_with, serialize_to_folder, FileWriter};
pub use stream::StreamWriter;
pub use tensor::TensorWriter;
