//! The tensors of a plan in the order of their data.
//!
//! As long as they are being put in order, `begin` is a place in the list: what is sorted are these
//! numbers, not the tensors, each of which is moved once at the end. `end` is the tensor's length.

use crate::base::convert::{to_u32, to_u64};
use crate::base::error::ErrorKind;
use crate::base::limits::Limits;
use crate::table::sort::{self, Sequence};
use crate::write::plan::{Order, PlanError, PlanOptions, PlanTensor};

/// Checks the tensors and puts them in the order of their data, each with its place there. Returns
/// the bytes of all of them.
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
        tensor.end = tensor.check(limits).map_err(|kind| PlanError::of(kind, index))?;
    }
    by_name(tensors)?;
    match options.order {
        Order::ByDtype => by_dtype(tensors),
        Order::Given => return lay_out(tensors, limits),
    }
    follow_places(tensors);
    lay_out(tensors, limits)
}

/// The tensor that stands at a place.
fn at<'s, 't>(tensors: &'s [PlanTensor<'t>], place: u64) -> Option<&'s PlanTensor<'t>> {
    tensors.get(usize::try_from(place).ok()?)
}

/// Puts the places in the order of names, no two of which may be one.
fn by_name(tensors: &mut [PlanTensor<'_>]) -> Result<(), PlanError> {
    let in_order = |pair: &[PlanTensor<'_>]| matches!(pair, [a, b] if a.name < b.name);
    if tensors.windows(2).all(in_order) {
        return Ok(());
    }
    // Of equal names, which are an error, the first first.
    sort::sort(&mut Places(tensors, |a: &PlanTensor<'_>, b: &PlanTensor<'_>| {
        (a.name, a.index) < (b.name, b.index)
    }));
    for places in tensors.windows(2) {
        let [a, b] = places else { continue };
        if let (Some(a), Some(b)) = (at(tensors, a.begin), at(tensors, b.begin)) {
            if a.name == b.name {
                let kind = ErrorKind::NameRepeated { first: to_u64(a.index) };
                return Err(PlanError::of(kind, b.index));
            }
        }
    }
    Ok(())
}

/// Puts places that are in the order of names in the order of dtypes, the largest first.
fn by_dtype(tensors: &mut [PlanTensor<'_>]) {
    let first = tensors.first().map(|tensor| tensor.dtype);
    if tensors.iter().all(|tensor| Some(tensor.dtype) == first) {
        return;
    }
    for rank in 0..tensors.len() {
        let place = tensors.get(rank).map(|tensor| tensor.begin);
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(tensor) = place.and_then(|place| tensors.get_mut(place)) {
            tensor.rank = to_u32(rank);
        }
    }
    sort::sort(&mut Places(tensors, |a: &PlanTensor<'_>, b: &PlanTensor<'_>| {
        (b.dtype, a.rank) < (a.dtype, b.rank)
    }));
}

/// Moves each tensor to where its place in the list says.
fn follow_places(tensors: &mut [PlanTensor<'_>]) {
    /// A place that is filled for good: no list is so long.
    const FILLED: u64 = u64::MAX;
    let place = |tensor: &PlanTensor<'_>| match tensor.begin {
        FILLED => None,
        place => usize::try_from(place).ok(),
    };
    sort::follow(tensors, place, |tensor, moved| *tensor = PlanTensor { begin: FILLED, ..moved });
}

/// Gives each tensor its offsets, one after another.
fn lay_out(tensors: &mut [PlanTensor<'_>], limits: &Limits) -> Result<u64, PlanError> {
    let mut begin: u64 = 0;
    for tensor in tensors {
        let of = |kind| PlanError::of(kind, tensor.index);
        let end = begin.checked_add(tensor.end).ok_or(of(ErrorKind::FileTooLarge))?;
        if end > limits.integer {
            return Err(of(ErrorKind::IntegerTooLarge { value: end, limit: limits.integer }));
        }
        (tensor.begin, tensor.end) = (begin, end);
        begin = end;
    }
    Ok(begin)
}

/// Places, by an order of the tensors there.
struct Places<'s, 't, F>(&'s mut [PlanTensor<'t>], F);

impl<'t, F: Fn(&PlanTensor<'t>, &PlanTensor<'t>) -> bool> Sequence for Places<'_, 't, F> {
    type Element = u64;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<u64> {
        self.0.get(at).map(|tensor| tensor.begin)
    }

    #[inline]
    fn set(&mut self, at: usize, place: u64) {
        if let Some(tensor) = self.0.get_mut(at) {
            tensor.begin = place;
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
