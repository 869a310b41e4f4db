//! A table that owns its header, for callers that don't keep the bytes it came from.

use core::fmt;

use alloc::boxed::Box;
use alloc::string::String;

use crate::base::error::Error;
use crate::base::limits::Limits;
use crate::header::frame::Header;
use crate::table::slot::TensorSlot;
use crate::table::table::{self, Facts, Table};

/// A [`Table`] that owns its header and its slots, for example if a server sent only the header.
///
/// ```
/// use safetensors_zero::{Limits, OwnedTable};
///
/// let header = br#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
/// let owned = OwnedTable::parse(header.to_vec(), 8, &Limits::default())?;
/// assert_eq!(owned.table().info("a")?.shape, [2]);
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
#[derive(Clone)]
pub struct OwnedTable {
    header: Box<str>,
    slots: Box<[TensorSlot]>,
    facts: Facts,
}

impl OwnedTable {
    /// Parses and checks a header's text (without the 8 bytes before it), for a file whose data
    /// region has `data_len` bytes.
    ///
    /// Keeps the text without copying it. For other allocations see [`Table::parse_owned`].
    ///
    /// # Errors
    /// Returns an error if the header is invalid.
    pub fn parse(
        text: alloc::vec::Vec<u8>,
        data_len: u64,
        limits: &Limits,
    ) -> Result<OwnedTable, Error> {
        Self::parse_or_return(text, data_len, limits).map_err(|(error, _)| error)
    }

    /// Like [`OwnedTable::parse`], but an error also returns the text, so that its message can name
    /// the tensor.
    pub(crate) fn parse_or_return(
        text: alloc::vec::Vec<u8>,
        data_len: u64,
        limits: &Limits,
    ) -> Result<OwnedTable, (Error, alloc::vec::Vec<u8>)> {
        let filled = Header::new(&text, data_len, limits)
            .and_then(|header| table::fill_owned(header.parts()));
        match filled {
            Ok((slots, facts)) => {
                // `Header::new` has checked that the text is UTF-8.
                let header = String::from_utf8(text).unwrap_or_default();
                let (header, slots) = (header.into_boxed_str(), slots.into_boxed_slice());
                Ok(OwnedTable { header, slots, facts })
            }
            Err(error) => Err((error, text)),
        }
    }

    /// Returns the header's text, including its padding.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Returns the table. Takes constant time.
    #[must_use]
    pub fn table(&self) -> Table<'_, '_> {
        Table::of_filled(&self.header, &self.slots, self.facts)
    }
}

impl fmt::Debug for OwnedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}
