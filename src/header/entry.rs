//! A checked entry of a header.

use crate::base::dtype::Dtype;
use crate::json::text::Str;

/// A tensor's entry in a header. `data_offsets` is known to match dtype and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: Str<'a>,
    pub(crate) dtype: Dtype,
    /// The position of the shape's `[` in the header's text.
    pub(crate) shape: u32,
    /// The data's offsets in the data region. They can be beyond its end.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The position of the `[` of `data_offsets` in the header's text.
    pub(crate) offsets: u32,
}
