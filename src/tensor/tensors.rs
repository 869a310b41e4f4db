//! A whole file in memory: its table and its data.

use core::fmt;

use crate::base::error::Error;
use crate::base::limits::Limits;
use crate::header::frame::{Header, Parts};
use crate::header::metadata::Metadata;
use crate::json::text::Text;
use crate::table::slot::TensorSlot;
use crate::table::table::{Count, Table, TableIter};
use crate::tensor::view::TensorView;

/// The tensors of a file that is in memory: read, mapped, or in flash.
///
/// `'a` is the file's bytes, which views borrow; `'s` is the slots, which nothing else does
/// (`'static` where the table owns them).
///
/// Once it is made, nothing that it tells can turn out to be wrong: every tensor has the size of its
/// dtype and shape, and together they cover the data without hole or overlap.
#[derive(Clone)]
pub struct SafeTensors<'a, 's> {
    table: Table<'a, 's>,
    data: &'a [u8],
}

impl<'a, 's> SafeTensors<'a, 's> {
    /// Reads and checks the header of a file, with [`Limits::default`], keeping what it needs in the
    /// slots. See [`Table::parse`] for how many, and for the cost.
    ///
    /// # Errors
    /// What is wrong with the file, or [`TooFewSlots`](crate::ErrorKind::TooFewSlots).
    pub fn parse(file: &'a [u8], slots: &'s mut [TensorSlot]) -> Result<Self, Error> {
        Self::parse_with(file, slots, &Limits::DEFAULT)
    }

    /// As [`SafeTensors::parse`], with limits of the caller's choice.
    ///
    /// # Errors
    /// As [`SafeTensors::parse`].
    pub fn parse_with(
        file: &'a [u8],
        slots: &'s mut [TensorSlot],
        limits: &Limits,
    ) -> Result<Self, Error> {
        let (header, data) = Parts::of_file(file, limits)?;
        Ok(SafeTensors { table: Table::of_parts(header, slots)?, data })
    }

    /// The tensors of a table and the data region that it was checked against.
    #[cfg(feature = "mmap")]
    pub(crate) fn of_table(table: Table<'a, 's>, data: &'a [u8]) -> Self {
        SafeTensors { table, data }
    }

    /// The tensor with this name, however the name is spelled in the header. For the cost see
    /// [`Table::info`].
    ///
    /// # Errors
    /// [`TensorNotFound`](crate::ErrorKind::TensorNotFound).
    #[inline]
    pub fn tensor(&self, name: &str) -> Result<TensorView<'a>, Error> {
        let info = self.table.info(name)?;
        TensorView::of_info(&info, self.data, self.table.facts().dequant_elements)
    }

    /// Names and tensors in the order of their data.
    #[must_use]
    pub fn iter(&self) -> TensorsIter<'a, '_> {
        TensorsIter {
            table: self.table.iter(),
            data: self.data,
            dequant_elements: self.table.facts().dequant_elements,
        }
    }

    /// The names in the order of their data.
    pub fn names(&self) -> impl ExactSizeIterator<Item = Text<'a>> + '_ {
        self.table.names()
    }

    /// How many tensors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The file's metadata. `None` if there is none, or if it is null.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        self.table.metadata()
    }

    /// The table, which tells of the tensors without their data.
    #[must_use]
    pub fn table(&self) -> &Table<'a, 's> {
        &self.table
    }

    /// The data region.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}

impl SafeTensors<'_, '_> {
    /// Counts the tensors and metadata keys of a file, and so the slots it needs. See
    /// [`Header::count`].
    ///
    /// # Errors
    /// What is wrong with the file, as far as it can be told without slots.
    pub fn count(file: &[u8], limits: &Limits) -> Result<Count, Error> {
        Header::of_file(file, limits)?.0.count()
    }
}

#[cfg(feature = "alloc")]
impl<'a> SafeTensors<'a, 'static> {
    /// As [`SafeTensors::parse`], with slots of its own. See [`Table::parse_owned`] for how much
    /// that allocates.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn deserialize(file: &'a [u8]) -> Result<Self, Error> {
        Self::deserialize_with(file, &Limits::DEFAULT)
    }

    /// As [`SafeTensors::deserialize`], with limits of the caller's choice.
    ///
    /// # Errors
    /// What is wrong with the file.
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

/// The names and tensors of [`SafeTensors`], in the order of their data.
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
        // The table was checked against these data, so this is never an error.
        let view = TensorView::of_info(&info, self.data, self.dequant_elements).ok()?;
        Some((info.name, view))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.table.size_hint()
    }
}

impl ExactSizeIterator for TensorsIter<'_, '_> {}
