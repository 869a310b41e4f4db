//! A whole file in memory: table and data.

use core::fmt;

use crate::base::error::Error;
use crate::base::limits::Limits;
use crate::header::frame::{Header, Parts};
use crate::header::metadata::Metadata;
use crate::json::text::Text;
use crate::table::slot::TensorSlot;
use crate::table::table::{Count, Table, TableIter};
use crate::tensor::view::TensorView;

/// The tensors of a file in memory: read, mapped, or in flash.
///
/// `'a` is the lifetime of the file's bytes, which views borrow. `'s` is the lifetime of the slots,
/// which views do not borrow; it is `'static` if the table owns them.
///
/// A value of this type is fully validated. The size of every tensor matches its dtype and shape,
/// and together they cover the data without holes or overlaps.
#[derive(Clone)]
pub struct SafeTensors<'a, 's> {
    table: Table<'a, 's>,
    data: &'a [u8],
}

impl<'a, 's> SafeTensors<'a, 's> {
    /// Parses and checks the header of a file with [`Limits::default`], and fills the slots. See
    /// [`Table::parse`] for the number of slots and the cost.
    ///
    /// # Errors
    /// Returns an error if the file is invalid, or
    /// [`TooFewSlots`](crate::ErrorKind::TooFewSlots).
    pub fn parse(file: &'a [u8], slots: &'s mut [TensorSlot]) -> Result<Self, Error> {
        Self::parse_with(file, slots, &Limits::DEFAULT)
    }

    /// Like [`SafeTensors::parse`], but with the given limits.
    ///
    /// # Errors
    /// Same as [`SafeTensors::parse`].
    pub fn parse_with(
        file: &'a [u8],
        slots: &'s mut [TensorSlot],
        limits: &Limits,
    ) -> Result<Self, Error> {
        let (header, data) = Parts::of_file(file, limits)?;
        Ok(SafeTensors { table: Table::of_parts(header, slots)?, data })
    }

    /// Combines a table with the data region that it was checked against.
    #[cfg(feature = "mmap")]
    pub(crate) fn of_table(table: Table<'a, 's>, data: &'a [u8]) -> Self {
        SafeTensors { table, data }
    }

    /// Returns the tensor with this name. The header can spell the name with escapes. For the cost
    /// see [`Table::info`].
    ///
    /// # Errors
    /// [`TensorNotFound`](crate::ErrorKind::TensorNotFound).
    #[inline]
    pub fn tensor(&self, name: &str) -> Result<TensorView<'a>, Error> {
        let info = self.table.info(name)?;
        TensorView::of_info(&info, self.data, self.table.facts().dequant_elements)
    }

    /// Returns the tensor with this name, or `None` if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<TensorView<'a>> {
        self.tensor(name).ok()
    }

    /// Returns `true` if a tensor has this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.table.contains(name)
    }

    /// Returns an iterator over names and tensors in data order.
    #[must_use]
    pub fn iter(&self) -> TensorsIter<'a, '_> {
        TensorsIter {
            table: self.table.iter(),
            data: self.data,
            dequant_elements: self.table.facts().dequant_elements,
        }
    }

    /// Returns an iterator over the names in data order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = Text<'a>> + '_ {
        self.table.names()
    }

    /// Returns the number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns `true` if there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the file's metadata, or `None` if it is absent or null.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        self.table.metadata()
    }

    /// Returns the table, which describes the tensors without their data.
    #[must_use]
    pub fn table(&self) -> &Table<'a, 's> {
        &self.table
    }

    /// Returns the data region.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}

impl SafeTensors<'_, '_> {
    /// Counts the tensors and metadata keys of a file, which gives the number of slots needed. See
    /// [`Header::count`].
    ///
    /// # Errors
    /// Returns an error if the file is invalid, as far as that can be checked without slots.
    pub fn count(file: &[u8], limits: &Limits) -> Result<Count, Error> {
        Header::of_file(file, limits)?.0.count()
    }
}

#[cfg(feature = "alloc")]
impl<'a> SafeTensors<'a, 'static> {
    /// Like [`SafeTensors::parse`], but allocates the slots. See [`Table::parse_owned`] for the
    /// amount of memory.
    ///
    /// # Errors
    /// Returns an error if the file is invalid.
    pub fn deserialize(file: &'a [u8]) -> Result<Self, Error> {
        Self::deserialize_with(file, &Limits::DEFAULT)
    }

    /// Like [`SafeTensors::deserialize`], but with the given limits.
    ///
    /// # Errors
    /// Same as [`SafeTensors::deserialize`].
    pub fn deserialize_with(file: &'a [u8], limits: &Limits) -> Result<Self, Error> {
        let (header, data) = Header::of_file(file, limits)?;
        Ok(SafeTensors { table: Table::parse_owned(&header)?, data })
    }
}

impl fmt::Debug for SafeTensors<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SafeTensors").field(&self.table).finish()
    }
}

impl<'a, 't> IntoIterator for &'t SafeTensors<'a, '_> {
    type Item = (Text<'a>, TensorView<'a>);
    type IntoIter = TensorsIter<'a, 't>;

    fn into_iter(self) -> TensorsIter<'a, 't> {
        self.iter()
    }
}

/// An iterator over the names and tensors of [`SafeTensors`], in data order.
#[derive(Debug, Clone)]
pub struct TensorsIter<'a, 't> {
    table: TableIter<'a, 't>,
    data: &'a [u8],
    dequant_elements: u64,
}

impl<'a> Iterator for TensorsIter<'a, '_> {
    type Item = (Text<'a>, TensorView<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let info = self.table.next()?;
        // The table was checked against this data, so this never fails.
        let view = TensorView::of_info(&info, self.data, self.dequant_elements).ok()?;
        Some((info.name, view))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.table.size_hint()
    }
}

impl ExactSizeIterator for TensorsIter<'_, '_> {}
