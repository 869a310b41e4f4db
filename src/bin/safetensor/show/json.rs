//! The library's types as JSON. Names are decoded and escaped again; numbers are exact.

use serde::ser::{SerializeMap as _, Serializer};
use serde::Serialize;

use safetensors_zero::{Metadata, Shape, Text};

/// A string from a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'m>(pub(crate) Text<'m>);

impl Serialize for Name<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_str() {
            Some(plain) => serializer.serialize_str(plain),
            None => serializer.collect_str(&self.0),
        }
    }
}

/// A shape, as an array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dimensions<'m>(pub(crate) Shape<'m>);

impl Serialize for Dimensions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0)
    }
}

/// Metadata, as an object in header order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairs<'m>(pub(crate) Metadata<'m>);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0 {
            map.serialize_entry(&Name(key), &Name(value))?;
        }
        map.end()
    }
}

/// An array whose elements are produced while it is written.
#[derive(Debug)]
pub(crate) struct List<F>(pub(crate) F);

impl<I: Iterator<Item: Serialize>, F: Fn() -> I> Serialize for List<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}
