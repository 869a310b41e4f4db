//! The record kept for each tensor of a parsed header: 40 bytes of positions and numbers.

use crate::base::dtype::Dtype;

/// The end of a chain of slots.
pub(crate) const NIL: u32 = u32::MAX;

/// Storage for one tensor, provided by the caller: on the stack, in a `static`, or in a `Vec`.
///
/// A slot holds positions in the header, not copies. It therefore has no lifetime, and the same
/// slots can be reused for one file after another.
///
/// ```
/// use safetensors_zero::TensorSlot;
///
/// let mut slots = [TensorSlot::EMPTY; 64];
/// # let _ = &mut slots;
/// assert!(core::mem::size_of::<TensorSlot>() <= 40);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TensorSlot {
    /// Start and end of the data in the data region.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The name's position in the header's text, and its length there, escapes included.
    pub(crate) name: u32,
    pub(crate) name_len: u32,
    /// The position of the shape's `[` in the header's text.
    pub(crate) shape: u32,
    /// The index of names uses `head`, `next` and `tag`: see `name_index`.
    pub(crate) head: u32,
    pub(crate) next: u32,
    pub(crate) tag: u16,
    pub(crate) dtype: Dtype,
    /// Whether the name has escapes.
    pub(crate) escaped: bool,
}

const _: () = assert!(core::mem::size_of::<TensorSlot>() == 40);

impl TensorSlot {
    /// An empty slot.
    pub const EMPTY: TensorSlot = TensorSlot {
        begin: 0,
        end: 0,
        name: 0,
        name_len: 0,
        shape: 0,
        head: NIL,
        next: NIL,
        tag: 0,
        dtype: Dtype::BOOL,
        escaped: false,
    };
}

impl Default for TensorSlot {
    /// Returns [`TensorSlot::EMPTY`].
    fn default() -> Self {
        TensorSlot::EMPTY
    }
}
