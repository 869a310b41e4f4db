//! A simulated SPI NOR flash chip of 2 MiB, with the model in it. Its memory is a file of the machine
//! that runs QEMU, read through semihosting: not a byte of it is in the image, or has an address.

use cortex_m_semihosting::nr::open;
use cortex_m_semihosting::syscall;
use embedded_storage::nor_flash::{ErrorType, NorFlashErrorKind, ReadNorFlash};

const CAPACITY: u32 = 2 << 20;
/// Where in the chip the model is, and its bytes: what a table of partitions would say.
pub const FILE_START: u32 = 0x1_0000;
pub const FILE_LEN: u32 = include_bytes!(env!("MODEL")).len() as u32;

/// The chip.
pub struct Chip {
    handle: usize,
    reads: u32,
    bytes: u64,
}

impl Chip {
    pub fn power_up() -> Chip {
        let name = concat!(env!("MODEL"), "\0");
        // SAFETY: the arguments are as the call wants them: a name that ends in a zero, how to open,
        // and the name's length.
        let handle = unsafe { syscall!(OPEN, name.as_ptr(), open::R_BINARY, name.len() - 1) };
        Chip { handle, reads: 0, bytes: 0 }
    }

    /// How many reads there were, and of how many bytes.
    pub fn traffic(&self) -> (u32, u64) {
        (self.reads, self.bytes)
    }

    /// Reads bytes that are in the file.
    fn read_file(&self, at: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        // SAFETY: `bytes` is memory that may be written, of this length.
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
        // What was never written is ones.
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
