//! Finds the bytes that contain a range of elements, including elements smaller than a byte.

use core::ops::Range;

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};

/// The smallest groups of a dtype's elements that occupy whole bytes.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    /// The elements per group minus one, a mask for an element's position in its group.
    pub(super) mask: u64,
    /// The base-2 logarithm of the elements per group.
    shift: u32,
    /// Bits per element.
    bits: u64,
    /// Bytes per group.
    bytes: usize,
}

/// The bytes that contain a range of elements.
pub(super) struct Bytes {
    /// The length of all groups that the range touches.
    pub(super) whole: usize,
    /// The bytes within these groups that contain the range.
    pub(super) needed: Range<usize>,
    /// The offset of the needed bytes in the tensor's data.
    pub(super) offset: u64,
}

impl Groups {
    pub(super) fn of(dtype: Dtype) -> Groups {
        let bits = to_u64(dtype.bitsize());
        let (mask, shift, bytes) = match dtype.bitsize() {
            4 => (1, 1, 1),
            6 => (3, 2, 3),
            bits => (0, 0, bits >> 3),
        };
        Groups { mask, shift, bits, bytes }
    }

    /// Returns how many bytes of a buffer whole groups can fill. A buffer needs at least 8 bytes.
    pub(super) fn capacity(&self, buffer: &[u8]) -> Result<usize, Error> {
        let (needed, given) = (8, to_u64(buffer.len()));
        if given < needed {
            return Err(Error::new(ErrorKind::BufferLength { needed, given }));
        }
        let left_over = buffer.len().checked_rem(self.bytes).unwrap_or(0);
        Ok(buffer.len().saturating_sub(left_over))
    }

    /// Returns the number of elements in this many bytes of whole groups.
    pub(super) fn elements(&self, bytes: usize) -> u64 {
        to_u64(bytes.checked_div(self.bytes).unwrap_or(0)).wrapping_shl(self.shift)
    }

    /// Returns the bytes that contain `count` elements from `first` on. They must fit in the
    /// caller's buffer.
    pub(super) fn bytes(&self, first: u64, count: u64) -> Bytes {
        let size = to_u64(self.bytes);
        let offset = first.wrapping_shr(self.shift).saturating_mul(size);
        // Counted from the start of the first group.
        let lead = first & self.mask;
        let end = lead.saturating_add(count);
        let groups = end.saturating_add(self.mask).wrapping_shr(self.shift);
        let begin_byte = lead.saturating_mul(self.bits) >> 3;
        let end_byte = end.saturating_mul(self.bits).saturating_add(7) >> 3;
        let in_memory = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Bytes {
            whole: in_memory(groups.saturating_mul(size)),
            needed: in_memory(begin_byte)..in_memory(end_byte),
            offset: offset.saturating_add(begin_byte),
        }
    }
}
