//! The description of one tensor in a header.

use crate::base::dtype::Dtype;
use crate::header::entry::Entry;
use crate::header::shape::Shape;
use crate::json::text::Text;
use crate::table::name_index;
use crate::table::slot::TensorSlot;

/// The description of one tensor in a header. The length of `data_offsets` always matches the dtype
/// and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo<'a> {
    /// The name.
    pub name: Text<'a>,
    /// The type of the elements.
    pub dtype: Dtype,
    /// The dimensions.
    pub shape: Shape<'a>,
    /// Start and end of the data, in bytes from the start of the data region.
    pub data_offsets: (u64, u64),
}

impl<'a> TensorInfo<'a> {
    #[inline]
    pub(crate) fn of_slot(header: &'a str, slot: &TensorSlot) -> Self {
        TensorInfo {
            name: name_index::name(header, slot),
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

    /// Returns the size of the data in bytes.
    #[inline]
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        let (begin, end) = self.data_offsets;
        end.saturating_sub(begin)
    }

    /// Returns the number of elements: the product of the shape. Takes constant time.
    #[inline]
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.dtype.elements_in(self.byte_len())
    }
}
