//! What a header says of one tensor.

use crate::dtype::Dtype;
use crate::entry::Entry;
use crate::names;
use crate::shape::Shape;
use crate::slot::TensorSlot;
use crate::text::Text;

/// What a header says of one tensor. Its range of data has the size of its dtype and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo<'a> {
    /// The name.
    pub name: Text<'a>,
    /// The type of the elements.
    pub dtype: Dtype,
    /// The dimensions.
    pub shape: Shape<'a>,
    /// Begin and end of the data, in bytes from the data region's begin.
    pub data_offsets: (u64, u64),
}

impl<'a> TensorInfo<'a> {
    #[inline]
    pub(crate) fn of_slot(header: &'a str, slot: &TensorSlot) -> Self {
        TensorInfo {
            name: names::name(header, slot),
            dtype: slot.dtype,
            shape: Shape::in_header(header, slot.shape),
            data_offsets: (slot.begin, slot.end),
        }
    }

    #[inline]
    pub(crate) fn of_entry(header: &'a str, entry: &Entry<'a>) -> Self {
        TensorInfo {
            name: Text::in_header(header, entry.name),
            dtype: entry.dtype,
            shape: Shape::in_header(header, entry.shape),
            data_offsets: (entry.begin, entry.end),
        }
    }

    /// Bytes of the data.
    #[inline]
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        let (begin, end) = self.data_offsets;
        end.saturating_sub(begin)
    }

    /// Elements of the tensor: the product of its shape. Takes constant time.
    #[inline]
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.dtype.elements_in(self.byte_len())
    }
}
