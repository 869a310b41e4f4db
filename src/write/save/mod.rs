//! Writing to files and streams: in order or not, in pieces of any size, and to a file that is whole
//! or not there.

mod atomic;
mod file;
mod stream;
mod tensor;

pub(crate) use atomic::write_all_at;
pub use atomic::AtomicFile;
pub use file::{serialize_to_file, serialize_to_file_with, serialize_to_folder, FileWriter};
pub use stream::StreamWriter;
pub use tensor::TensorWriter;
