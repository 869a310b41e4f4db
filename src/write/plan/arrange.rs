//! Sorts the tensors of a plan into data order and assigns their offsets.
//!
//! While they are being sorted, `begin` holds a position in the list and `end` holds the tensor's
//! length. Only the positions are sorted; each tensor is moved once at the end.

use crate::base::convert::{to_u32, to_u64};
use crate::base::error::ErrorKind;
use crate::base::limits::Limits;
use crate::table::sort::{self, Sequence};
use crate::write::plan::{Order, PlanError, PlanOptions, PlanTensor};

/// Checks the tensors, sorts them into data order, and sets their offsets. Returns the length of
/// the data region in bytes.
pub(super) fn arrange(
    tensors: &mut [PlanTensor<'_>],
    options: &PlanOptions,
) -> Result<u64, PlanError> {
    let limits = &options.limits;
    if to_u64(tensors.len()) > u64::from(limits.tensors) {
        return Err(ErrorKind::TooManyTensors { limit: limits.tensors }.into());
    }
    for (index, tensor) in tensors.iter_mut().enumerate() {
        tensor.index = index;
        tensor.begin = to_u64(index);
        tensor.end = tensor.check(limits).map_err(|kind| PlanError::of_tensor(kind, index))?;
    }
    // Needed for every order: it finds duplicate names.
    sort_by_name(tensors)?;
    match options.order {
        Order::ByDtype => sort_by_dtype(tensors),
        Order::Given => return assign_offsets(tensors, limits),
    }
    move_to_sorted(tensors);
    assign_offsets(tensors, limits)
}

/// Returns the tensor at a position.
fn at<'s, 't>(tensors: &'s [PlanTensor<'t>], position: u64) -> Option<&'s PlanTensor<'t>> {
    tensors.get(usize::try_from(position).ok()?)
}

/// Sorts the positions by name, and rejects duplicate names.
fn sort_by_name(tensors: &mut [PlanTensor<'_>]) -> Result<(), PlanError> {
    let in_order = |pair: &[PlanTensor<'_>]| matches!(pair, [a, b] if a.name < b.name);
    if tensors.windows(2).all(in_order) {
        return Ok(());
    }
    // Equal names are sorted by index, so that the error reports the second one.
    sort::sort(&mut Positions(tensors, |a: &PlanTensor<'_>, b: &PlanTensor<'_>| {
        (a.name, a.index) < (b.name, b.index)
    }));
    for pair in tensors.windows(2) {
        let [a, b] = pair else { continue };
        if let (Some(a), Some(b)) = (at(tensors, a.begin), at(tensors, b.begin)) {
            if a.name == b.name {
                let kind = ErrorKind::NameRepeated { first: to_u64(a.index) };
                return Err(PlanError::of_tensor(kind, b.index));
            }
        }
    }
    Ok(())
}

/// Sorts the positions by dtype, largest first. They must be sorted by name already; this order is
/// kept within a dtype.
fn sort_by_dtype(tensors: &mut [PlanTensor<'_>]) {
    let first = tensors.first().map(|tensor| tensor.dtype);
    if tensors.iter().all(|tensor| Some(tensor.dtype) == first) {
        return;
    }
    for rank in 0..tensors.len() {
        let position = tensors.get(rank).map(|tensor| tensor.begin);
        let position = position.and_then(|position| usize::try_from(position).ok());
        if let Some(tensor) = position.and_then(|position| tensors.get_mut(position)) {
            tensor.rank = to_u32(rank);
        }
    }
    sort::sort(&mut Positions(tensors, |a: &PlanTensor<'_>, b: &PlanTensor<'_>| {
        (b.dtype, a.rank) < (a.dtype, b.rank)
    }));
}

/// Moves each tensor to its sorted position.
fn move_to_sorted(tensors: &mut [PlanTensor<'_>]) {
    /// Marks a position that has received its tensor. No list is this long.
    const FILLED: u64 = u64::MAX;
    let source = |tensor: &PlanTensor<'_>| match tensor.begin {
        FILLED => None,
        position => usize::try_from(position).ok(),
    };
    sort::follow(tensors, source, |tensor, moved| *tensor = PlanTensor { begin: FILLED, ..moved });
}

/// Sets the offsets of the tensors, one after another without gaps.
fn assign_offsets(tensors: &mut [PlanTensor<'_>], limits: &Limits) -> Result<u64, PlanError> {
    let mut begin: u64 = 0;
    for tensor in tensors {
        let error = |kind| PlanError::of_tensor(kind, tensor.index);
        let end = begin.checked_add(tensor.end).ok_or(error(ErrorKind::FileTooLarge))?;
        if end > limits.integer {
            return Err(error(ErrorKind::IntegerTooLarge { value: end, limit: limits.integer }));
        }
        (tensor.begin, tensor.end) = (begin, end);
        begin = end;
    }
    Ok(begin)
}

/// The positions of a list of tensors, compared by the tensors at them.
struct Positions<'s, 't, F>(&'s mut [PlanTensor<'t>], F);

impl<'t, F: Fn(&PlanTensor<'t>, &PlanTensor<'t>) -> bool> Sequence for Positions<'_, 't, F> {
    type Element = u64;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<u64> {
        self.0.get(at).map(|tensor| tensor.begin)
    }

    #[inline]
    fn set(&mut self, at: usize, position: u64) {
        if let Some(tensor) = self.0.get_mut(at) {
            tensor.begin = position;
        }
    }

    #[inline]
    fn less(&self, a: &u64, b: &u64) -> bool {
        match (at(self.0, *a), at(self.0, *b)) {
            (Some(a), Some(b)) => (self.1)(a, b),
            _ => false,
        }
    }
}
