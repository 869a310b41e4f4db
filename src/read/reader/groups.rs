//! Which bytes hold a range of elements, of those smaller than a byte too.

use core::ops::Range;

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};

/// The smallest groups of a dtype's elements that fill whole bytes.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    /// Elements of a group, less one: a mask.
    pub(super) last_of_group: u64,
    /// How far to shift an element's number to get its group's.
    shift: u32,
    bits: u64,
    /// Bytes of a group.
    bytes: usize,
}

/// The bytes that hold a range of elements.
pub(super) struct Bytes {
    /// Bytes of all groups that the elements are in.
    pub(super) whole: usize,
    /// Which of these hold the elements.
    pub(super) asked: Range<usize>,
    /// Where these are in the tensor.
    pub(super) offset: u64,
}

impl Groups {
    pub(super) fn of(dtype: Dtype) -> Groups {
        let bits = to_u64(dtype.bitsize());
        let (last_of_group, shift, bytes) = match dtype.bitsize() {
            4 => (1, 1, 1),
            6 => (3, 2, 3),
            bits => (0, 0, bits >> 3),
        };
        Groups { last_of_group, shift, bits, bytes }
    }

    /// Bytes of the whole groups that a buffer holds.
    pub(super) fn capacity(&self, buffer: &[u8]) -> Result<usize, Error> {
        let (needed, given) = (8, to_u64(buffer.len()));
        if given < needed {
            return Err(Error::new(ErrorKind::BufferLength { needed, given }));
        }
        let left_over = buffer.len().checked_rem(self.bytes).unwrap_or(0);
        Ok(buffer.len().saturating_sub(left_over))
    }

    /// The elements that whole groups of bytes hold.
    pub(super) fn elements(&self, bytes: usize) -> u64 {
        to_u64(bytes.checked_div(self.bytes).unwrap_or(0)).wrapping_shl(self.shift)
    }

    /// The bytes of elements, of which there are few enough for a buffer.
    pub(super) fn bytes(&self, first: u64, count: u64) -> Bytes {
        let size = to_u64(self.bytes);
        let offset = first.wrapping_shr(self.shift).saturating_mul(size);
        // From the first group's begin.
        let lead = first & self.last_of_group;
        let end = lead.saturating_add(count);
        let groups = end.saturating_add(self.last_of_group).wrapping_shr(self.shift);
        let begin_byte = lead.saturating_mul(self.bits) >> 3;
        let end_byte = end.saturating_mul(self.bits).saturating_add(7) >> 3;
        let in_memory = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Bytes {
            whole: in_memory(groups.saturating_mul(size)),
            asked: in_memory(begin_byte)..in_memory(end_byte),
            offset: offset.saturating_add(begin_byte),
        }
    }
}
