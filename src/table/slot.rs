//! What is kept of a tensor while its header is in memory: 40 bytes of positions and numbers.

use crate::base::dtype::Dtype;

/// The end of a chain of slots.
pub(crate) const NIL: u32 = u32::MAX;

/// Room for one tensor, which the caller provides: on the stack, in a `static`, in a `Vec`.
///
/// A slot holds positions in the header and no copies, so it has no lifetime, and the same slots
/// can serve one file after another.
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
    /// Begin and end of the data in the data region.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Where the name stands in the header's text, and its length as it is spelled there.
    pub(crate) name: u32,
    pub(crate) name_len: u32,
    /// Where the shape's `[` stands in the header's text.
    pub(crate) shape: u32,
    /// The index of names, whose room this is: see `names`.
    pub(crate) head: u32,
    pub(crate) next: u32,
    pub(crate) tag: u16,
    pub(crate) dtype: Dtype,
    /// Whether the name has escapes.
    pub(crate) escaped: bool,
}

const _: () = assert!(core::mem::size_of::<TensorSlot>() == 40);

impl TensorSlot {
    /// A slot that holds nothing yet.
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
    /// [`TensorSlot::EMPTY`].
    fn default() -> Self {
        TensorSlot::EMPTY
    }
}
