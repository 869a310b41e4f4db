//! The tensors of a model that match a pattern, in a chosen order.

use crate::files::glob;
use crate::files::input::{Entry, Model};

/// The order of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Order {
    Name,
    /// Largest first
    Size,
    /// By position in the file
    Offset,
}

/// A list of tensors that can be iterated more than once.
#[derive(Debug)]
pub(crate) struct Listing<'m> {
    model: &'m Model,
    pattern: Option<Vec<char>>,
    /// The matching tensors. `None` in data order, which needs no list.
    sorted: Option<Vec<Entry<'m>>>,
}

impl<'m> Listing<'m> {
    pub(crate) fn new(model: &'m Model, pattern: Option<&str>, order: Order) -> Listing<'m> {
        let pattern = pattern.map(|pattern| pattern.chars().collect());
        let mut listing = Listing { model, pattern, sorted: None };
        let mut entries = match order {
            Order::Offset => return listing,
            Order::Name | Order::Size => listing.matching().collect::<Vec<_>>(),
        };
        if order == Order::Name {
            entries.sort_by_cached_key(|entry| entry.info.name.to_cow());
        } else {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.info.byte_len()));
        }
        listing.sorted = Some(entries);
        listing
    }

    pub(crate) fn model(&self) -> &'m Model {
        self.model
    }

    pub(crate) fn entries(&self) -> Box<dyn Iterator<Item = Entry<'m>> + '_> {
        match &self.sorted {
            Some(entries) => Box::new(entries.iter().copied()),
            None => Box::new(self.matching()),
        }
    }

    /// The matching tensors in data order.
    fn matching(&self) -> impl Iterator<Item = Entry<'m>> + '_ {
        self.model.entries().filter(|entry| match &self.pattern {
            Some(pattern) => glob::matches(pattern, entry.info.name.chars()),
            None => true,
        })
    }
}
