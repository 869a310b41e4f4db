//! A tensor's shape, of any rank, read back from the header.

use core::fmt;

use crate::base::convert::{to_u64, to_usize};

/// The dimensions of a tensor, outermost first.
///
/// A shape borrows the header's text, or the caller's slice, and reads the dimensions from there
/// each time. It takes no memory, and the rank is not bounded. Iteration and [`Shape::rank`] take
/// time linear in the rank.
///
/// ```
/// use safetensors_zero::{SafeTensors, TensorSlot};
///
/// let file = include_bytes!("../../examples/animals.safetensors");
/// let mut slots = [TensorSlot::EMPTY; 8];
/// let tensors = SafeTensors::parse(file, &mut slots)?;
/// let shape = tensors.tensor("embedding.weight")?.shape();
/// assert_eq!(shape, [10, 8]);
/// assert_eq!(shape.to_array(), Some([10_usize, 8]));
/// assert_eq!(shape.to_string(), "[10, 8]");
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Shape<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    /// The text after the `[` of a shape that the walk over the header has checked.
    Header(&'a [u8]),
    Slice(&'a [usize]),
    Wide(&'a [u64]),
}

impl<'a> Shape<'a> {
    /// Creates the shape whose `[` is at this position of a valid header.
    #[inline]
    pub(crate) fn in_header(header: &'a str, position: u32) -> Self {
        match header.as_bytes().get(to_usize(position)..) {
            Some([_, dimensions @ ..]) => Shape(Source::Header(dimensions)),
            _ => Shape(Source::Slice(&[])),
        }
    }

    /// Creates a shape from its dimensions.
    #[must_use]
    pub fn new(dimensions: &'a [usize]) -> Self {
        Shape(Source::Slice(dimensions))
    }

    /// Like [`Shape::new`], for dimensions that might not fit in a `usize`.
    #[must_use]
    pub fn wide(dimensions: &'a [u64]) -> Self {
        Shape(Source::Wide(dimensions))
    }

    /// Returns an iterator over the dimensions, outermost first. They are `u64` on every machine,
    /// so that headers of models that do not fit in memory can be read.
    #[must_use]
    pub fn iter(&self) -> Dimensions<'a> {
        Dimensions(self.0)
    }

    /// Returns the size of a dimension, or `None` if there are not so many. The first is 0. Takes
    /// time linear in `index` for a shape in a header.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.iter().nth(index)
    }

    /// Returns the number of dimensions. A scalar has none.
    #[must_use]
    pub fn rank(&self) -> usize {
        match self.0 {
            Source::Header(_) => self.iter().fold(0, |rank, _| usize::saturating_add(rank, 1)),
            Source::Slice(dimensions) => dimensions.len(),
            Source::Wide(dimensions) => dimensions.len(),
        }
    }

    /// Returns the dimensions as an array, or `None` if there are not exactly `N` or one does not
    /// fit in a `usize`.
    #[must_use]
    pub fn to_array<const N: usize>(&self) -> Option<[usize; N]> {
        let mut array = [0; N];
        let mut dimensions = self.iter();
        for place in &mut array {
            *place = usize::try_from(dimensions.next()?).ok()?;
        }
        dimensions.next().is_none().then_some(array)
    }

    /// Copies the dimensions to a vector. On targets whose `usize` is narrower than 64 bits, a
    /// dimension that does not fit becomes `usize::MAX`; [`Shape::iter`] returns the exact one.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<usize> {
        self.iter().map(|dimension| usize::try_from(dimension).unwrap_or(usize::MAX)).collect()
    }

    /// Returns the product of the dimensions: 1 for a scalar, 0 if any dimension is 0, and `None`
    /// if it does not fit in 64 bits, which is never the case for a parsed tensor.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        let mut product = Product::default();
        self.iter().for_each(|dimension| product.push(dimension));
        product.get()
    }
}

/// A product of dimensions. It is 0 if any dimension is 0, however large the others are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product {
    /// The product of the nonzero dimensions, modulo 2^64.
    value: u64,
    overflow: bool,
    zero: bool,
}

impl Default for Product {
    fn default() -> Self {
        Product { value: 1, overflow: false, zero: false }
    }
}

impl Product {
    #[inline]
    pub(crate) fn push(&mut self, dimension: u64) {
        if dimension == 0 {
            self.zero = true;
        } else {
            let (value, overflow) = self.value.overflowing_mul(dimension);
            self.value = value;
            self.overflow |= overflow;
        }
    }

    /// Returns the product, or `None` if it does not fit in 64 bits.
    #[inline]
    pub(crate) fn get(&self) -> Option<u64> {
        if self.zero {
            return Some(0);
        }
        (!self.overflow).then_some(self.value)
    }
}

/// An iterator over the dimensions of a [`Shape`].
#[derive(Clone)]
pub struct Dimensions<'a>(Source<'a>);

impl Iterator for Dimensions<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match &mut self.0 {
            Source::Header(text) => next_number(text),
            Source::Slice(dimensions) => {
                let (first, rest) = dimensions.split_first()?;
                *dimensions = rest;
                Some(to_u64(*first))
            }
            Source::Wide(dimensions) => {
                let (first, rest) = dimensions.split_first()?;
                *dimensions = rest;
                Some(*first)
            }
        }
    }
}

/// Takes the next number of an array of natural numbers, and everything before it.
#[inline]
fn next_number(text: &mut &[u8]) -> Option<u64> {
    loop {
        match *text {
            [b'0'..=b'9', ..] => break,
            [b']', ..] | [] => return None,
            [_, rest @ ..] => *text = rest,
        }
    }
    let mut value: u64 = 0;
    while let [digit @ b'0'..=b'9', rest @ ..] = *text {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit & 0x0f));
        *text = rest;
    }
    Some(value)
}

impl<'a> IntoIterator for Shape<'a> {
    type Item = u64;
    type IntoIter = Dimensions<'a>;

    fn into_iter(self) -> Dimensions<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Shape<'a> {
    type Item = u64;
    type IntoIter = Dimensions<'a>;

    fn into_iter(self) -> Dimensions<'a> {
        self.iter()
    }
}

impl PartialEq for Shape<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Shape<'_> {}

impl PartialEq<[usize]> for Shape<'_> {
    fn eq(&self, other: &[usize]) -> bool {
        *self == Shape::new(other)
    }
}

impl PartialEq<&[usize]> for Shape<'_> {
    fn eq(&self, other: &&[usize]) -> bool {
        *self == Shape::new(other)
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape<'_> {
    fn eq(&self, other: &[usize; N]) -> bool {
        *self == Shape::new(other)
    }
}

impl<const N: usize> PartialEq<&[usize; N]> for Shape<'_> {
    fn eq(&self, other: &&[usize; N]) -> bool {
        *self == Shape::new(*other)
    }
}

#[cfg(feature = "alloc")]
impl PartialEq<alloc::vec::Vec<usize>> for Shape<'_> {
    fn eq(&self, other: &alloc::vec::Vec<usize>) -> bool {
        *self == Shape::new(other)
    }
}

/// Same as [`Shape::to_vec`].
#[cfg(feature = "alloc")]
impl From<Shape<'_>> for alloc::vec::Vec<usize> {
    fn from(shape: Shape<'_>) -> Self {
        shape.to_vec()
    }
}

impl fmt::Display for Shape<'_> {
    /// Writes the shape as `[2, 3]`, or `[]` for a scalar.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        let mut separator = "";
        for dimension in self {
            write!(f, "{separator}{dimension}")?;
            separator = ", ";
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Dimensions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dimensions").field(&Shape(self.0)).finish()
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling() {
        let cases: [(&str, &[u64]); 5] = [
            ("[]", &[]),
            ("[ ]", &[]),
            ("[7]", &[7]),
            ("[\n 1 ,\t18446744073709551615\r, 0 ]", &[1, u64::MAX, 0]),
            ("[1,2,3],\"data_offsets\":[4,5]", &[1, 2, 3]),
        ];
        for (text, dimensions) in cases {
            let shape = Shape::in_header(text, 0);
            assert!(shape.iter().eq(dimensions.iter().copied()), "{text}");
            assert_eq!(shape.rank(), dimensions.len());
        }
    }

    #[test]
    fn product_does_not_depend_on_order() {
        let elements = |text| Shape::in_header(text, 0).elements();
        assert_eq!(elements("[]"), Some(1));
        assert_eq!(elements("[4294967296,4294967295]"), Some(0xffff_ffff_0000_0000));
        assert_eq!(elements("[4294967296,4294967296]"), None);
        assert_eq!(elements("[18446744073709551615,2,0]"), Some(0));
        assert_eq!(elements("[0,18446744073709551615,2]"), Some(0));
    }

    #[test]
    fn converts_only_to_arrays_of_its_rank() {
        let shape = Shape::in_header("[2,3]", 0);
        assert_eq!(shape.to_array(), Some([2, 3]));
        assert_eq!(shape.to_array::<1>(), None);
        assert_eq!(shape.to_array::<3>(), None);
        assert_eq!(Shape::new(&[2, 3]), shape);
        assert_ne!(Shape::new(&[2]), shape);
    }
}
