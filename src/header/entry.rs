//! What an entry of a header says of a tensor.

use crate::base::dtype::Dtype;
use crate::json::text::Str;

/// What an entry of a header says of a tensor. Its size is that of its dtype and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: Str<'a>,
    pub(crate) dtype: Dtype,
    /// Where the shape's `[` stands in the header's text.
    pub(crate) shape: u32,
    /// Begin and end of the data in the data region; the end may be outside.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Where `[` of data_offsets stands in the header's text.
    pub(crate) offsets: u32,
}
