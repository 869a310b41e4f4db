//! A shard index that owns its text. It finds a tensor's shard by hash and rejects duplicate names.

use core::fmt::{self, Write as _};

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::base::convert::{to_u32, to_usize};
use crate::base::error::{Error, ErrorKind, NameSpan};
use crate::base::limits::IndexLimits;
use crate::json::text::{Str, Text};
use crate::read::index::{self, Facts, ShardName, TotalSize};
use crate::table::name_index::{self, Clash};
use crate::table::slot::{TensorSlot, NIL};

/// The `weight_map` of a shard index, which maps each tensor to its shard.
///
/// ```
/// use safetensors_zero::{IndexLimits, WeightMap};
///
/// let text = br#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;
/// let map = WeightMap::parse(text.to_vec(), &IndexLimits::default())?;
/// assert_eq!(map.shard_of("b"), Some(1));
/// assert_eq!(map.shards()[1], "model-2.safetensors");
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
#[derive(Clone)]
pub struct WeightMap {
    text: Box<str>,
    /// The tensors in the index's order. `begin` is the number of the shard.
    slots: Box<[TensorSlot]>,
    names: name_index::Index,
    shards: Vec<String>,
    total_size: TotalSize,
}

impl WeightMap {
    /// Parses and checks an index.
    ///
    /// Keeps the text without copying it, and allocates 40 bytes per tensor. Takes time linear in
    /// the text, or n log n if names were chosen to collide or if neighbouring tensors are in
    /// different shards.
    ///
    /// # Errors
    /// Same as [`Index::parse`](crate::Index::parse); [`DuplicateName`](ErrorKind::DuplicateName)
    /// if a tensor is listed twice; [`TooManyShards`](ErrorKind::TooManyShards) if there are more
    /// shards than the limit.
    pub fn parse(text: Vec<u8>, limits: &IndexLimits) -> Result<WeightMap, Error> {
        Self::parse_or_return(text, limits).map_err(|(error, _)| error)
    }

    /// Like [`WeightMap::parse`], but an error includes the text, so that messages can quote it.
    pub(crate) fn parse_or_return(
        text: Vec<u8>,
        limits: &IndexLimits,
    ) -> Result<WeightMap, (Error, Vec<u8>)> {
        match fill(&text, limits) {
            Ok((facts, slots, shards, names)) => {
                // `fill` has checked that the text is UTF-8.
                let text = String::from_utf8(text).unwrap_or_default().into_boxed_str();
                let (slots, total_size) = (slots.into_boxed_slice(), facts.total_size);
                Ok(WeightMap { text, slots, names, shards, total_size })
            }
            Err(error) => Err((error, text)),
        }
    }

    /// Returns the number of the tensor's shard, its position in [`shards`](Self::shards), or
    /// `None` if the index does not list the tensor. The index can spell the name with escapes.
    ///
    /// Takes time linear in the name.
    #[must_use]
    pub fn shard_of(&self, tensor: &str) -> Option<usize> {
        name_index::find(&self.text, &self.slots, self.names, tensor).map(shard)
    }

    /// Returns the tensors in the index's order, each with the number of its shard.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Text<'_>, usize)> {
        self.slots.iter().map(|slot| (name_index::name(&self.text, slot), shard(slot)))
    }

    /// Returns the number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the names of the shards, in the order of their first mention in the index. Each is a
    /// path below the index's folder; see [`ShardName`].
    #[must_use]
    pub fn shards(&self) -> &[String] {
        &self.shards
    }

    /// Returns the model's size in bytes according to the index.
    #[must_use]
    pub fn total_size(&self) -> TotalSize {
        self.total_size
    }
}

impl fmt::Debug for WeightMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeightMap")
            .field("tensors", &self.len())
            .field("shards", &self.shards.len())
            .field("total_size", &self.total_size)
            .finish_non_exhaustive()
    }
}

fn shard(slot: &TensorSlot) -> usize {
    usize::try_from(slot.begin).unwrap_or(usize::MAX)
}

type Filled = (Facts, Vec<TensorSlot>, Vec<String>, name_index::Index);

fn fill(text: &[u8], limits: &IndexLimits) -> Result<Filled, Error> {
    let text = index::checked(text, limits)?;
    let mut filling = Filling::default();
    let facts = index::walk(text, limits, |tensor, name| filling.push(tensor, name, limits))
        .map_err(Error::without_frame)?;
    filling.slots.shrink_to_fit();
    match name_index::build(text, &mut filling.slots) {
        Ok(names) => Ok((facts, filling.slots, filling.shards, names)),
        Err(clash) => Err(duplicate(&filling.slots, clash)),
    }
}

/// The parts of a map while its text is read.
#[derive(Default)]
struct Filling<'a> {
    slots: Vec<TensorSlot>,
    shards: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// The shard of the previous tensor: its spelling in the text and its number.
    previous: Option<(&'a str, u32)>,
    /// A buffer for the decoded name of a shard.
    name: String,
}

impl<'a> Filling<'a> {
    fn push(
        &mut self,
        tensor: Str<'a>,
        shard: ShardName<'a>,
        limits: &IndexLimits,
    ) -> Result<(), Error> {
        let spelling = shard.as_text().raw();
        let number = match self.previous {
            Some((previous, number)) if previous == spelling => number,
            _ => self.number(shard, limits).ok_or_else(|| {
                let kind = ErrorKind::TooManyShards { limit: limits.shards };
                Error::at(kind, to_usize(tensor.start)).of(tensor.span())
            })?,
        };
        self.previous = Some((spelling, number));
        let hash = name_index::hash(tensor);
        self.slots.push(TensorSlot {
            begin: u64::from(number),
            name: tensor.start,
            name_len: to_u32(tensor.raw.len()),
            head: NIL,
            next: hash,
            tag: name_index::tag(hash),
            escaped: tensor.escaped,
            ..TensorSlot::EMPTY
        });
        Ok(())
    }

    /// Returns the number of a shard, adding it if it is new, or `None` if there are too many.
    fn number(&mut self, shard: ShardName<'a>, limits: &IndexLimits) -> Option<u32> {
        self.name.clear();
        // Writing to a `String` never fails.
        let _ = write!(self.name, "{shard}");
        if let Some(number) = self.numbers.get(&self.name) {
            return Some(*number);
        }
        let number = to_u32(self.shards.len());
        if number == limits.shards {
            return None;
        }
        self.shards.push(self.name.clone());
        self.numbers.insert(self.name.clone(), number);
        Some(number)
    }
}

/// Returns the error for a duplicate name, positioned at its second use.
#[cold]
fn duplicate(slots: &[TensorSlot], clash: Clash) -> Error {
    let (first, second) = clash.in_header_order(slots);
    let span = NameSpan { start: second.name, len: second.name_len };
    let kind = ErrorKind::DuplicateName { first: u64::from(first.name) };
    Error::at(kind, to_usize(second.name)).of(span).without_frame()
}
