//! A simulated SPI NOR flash chip of 2 MiB that holds the model. Its contents are a file on QEMU's
//! host, read through semihosting, so no byte of it is in the image or has an address.

use cortex_m_semihosting::nr::open;
use cortex_m_semihosting::syscall;
use embedded_storage::nor_flash::{ErrorType, NorFlashErrorKind, ReadNorFlash};

const CAPACITY: u32 = 2 << 20;
/// The model's address in the chip. A real device would read it from a partition table.
pub const FILE_START: u32 = 0x1_0000;
/// The model's length in bytes.
pub const FILE_LEN: u32 = include_bytes!(env!("MODEL")).len() as u32;

/// The chip, which counts its reads.
pub struct Chip {
    handle: usize,
    reads: u32,
    bytes: u64,
}

impl Chip {
    pub fn power_up() -> Chip {
        let name = concat!(env!("MODEL"), "\0");
        // SAFETY: OPEN takes a zero-terminated name, a mode, and the name's length without the
        // zero.
        let handle = unsafe { syscall!(OPEN, name.as_ptr(), open::R_BINARY, name.len() - 1) };
        Chip { handle, reads: 0, bytes: 0 }
    }

    /// Returns the number of reads and of bytes read.
    pub fn traffic(&self) -> (u32, u64) {
        (self.reads, self.bytes)
    }

    /// Reads bytes of the file. They have to be inside it.
    fn read_file(&self, at: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        // SAFETY: the pointer and the length are those of `bytes`, which is writable.
        let missing = unsafe {
            syscall!(SEEK, self.handle, at);
            syscall!(READ, self.handle, bytes.as_mut_ptr(), bytes.len())
        };
        if missing == 0 {
            Ok(())
        } else {
            Err(NorFlashErrorKind::Other)
        }
    }
}

impl ErrorType for Chip {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for Chip {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        let within = (offset as usize).checked_add(bytes.len());
        if within.is_none_or(|end| end > self.capacity()) {
            return Err(NorFlashErrorKind::OutOfBounds);
        }
        self.reads += 1;
        self.bytes += bytes.len() as u64;
        // Erased NOR flash reads as ones.
        bytes.fill(0xff);
        let before = FILE_START.saturating_sub(offset) as usize;
        let at = offset.saturating_sub(FILE_START);
        let left = FILE_LEN.saturating_sub(at) as usize;
        let in_file = bytes.get_mut(before..).unwrap_or_default();
        let len = left.min(in_file.len());
        self.read_file(at, &mut in_file[..len])
    }

    fn capacity(&self) -> usize {
        CAPACITY as usize
    }
}
