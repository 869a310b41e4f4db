//! A flash partition that holds a file, as a source.

use core::cell::RefCell;

use embedded_storage::nor_flash::{NorFlashError, NorFlashErrorKind, ReadNorFlash};
use safetensors_zero::Source;

/// A file in a flash chip.
pub struct Partition<F> {
    flash: RefCell<F>,
    start: u32,
    len: u32,
}

impl<F: ReadNorFlash> Partition<F> {
    /// Creates a partition of the `len` bytes from `start` on.
    pub fn new(flash: F, start: u32, len: u32) -> Partition<F> {
        const { assert!(F::READ_SIZE == 1, "reads must work at any address and length") };
        Partition { flash: RefCell::new(flash), start, len }
    }

    /// Calls `call` with the chip.
    pub fn flash<T>(&self, call: impl FnOnce(&F) -> T) -> T {
        call(&self.flash.borrow())
    }
}

impl<F: ReadNorFlash> Source for Partition<F> {
    type Error = NorFlashErrorKind;

    fn len(&self) -> Result<u64, NorFlashErrorKind> {
        Ok(self.len.into())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        let address = u32::try_from(offset).ok().and_then(|offset| self.start.checked_add(offset));
        let address = address.ok_or(NorFlashErrorKind::OutOfBounds)?;
        self.flash.borrow_mut().read(address, buffer).map_err(|error| error.kind())
    }
}
