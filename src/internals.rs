//! Functions for this crate's own tests and benches. Not part of the public API; no stability
//! guarantees.

use crate::base::limits::Limits;
use crate::header::frame::Header;
use crate::header::walk::{Item, Walk};

pub use crate::table::name_index::bucket_of_name;

/// Walks over a file's header twice, once with the fast path where it applies and once with the
/// tokenizer alone, and compares the results of every step.
///
/// Returns the number of members that took the fast path, `Err` if the walks disagree, or `None` if
/// [`Header::of_file`] fails.
pub fn walk_both_ways(file: &[u8], limits: &Limits) -> Option<Result<usize, ()>> {
    let (header, _) = Header::of_file(file, limits).ok()?;
    let mut fast = Walk::new(header.parts());
    let mut by_token = Walk::new(header.parts());
    let mut count: usize = 0;
    loop {
        let mut before = fast.clone();
        count = count.saturating_add(usize::from(before.next_fast().is_some()));
        let agree = match (fast.next(), by_token.next_by_token()) {
            (Ok(Some(Item::Tensor(a))), Ok(Some(Item::Tensor(b)))) => a == b,
            (Ok(Some(Item::Metadata(a))), Ok(Some(Item::Metadata(b)))) => {
                a.map(|a| a.place()) == b.map(|b| b.place())
            }
            (Ok(None), Ok(None)) => return Some(Ok(count)),
            (Err(a), Err(b)) => return Some(if a == b { Ok(count) } else { Err(()) }),
            _ => false,
        };
        if !agree {
            return Some(Err(()));
        }
    }
}
