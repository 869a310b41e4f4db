//! The model is in the processor's flash. It is used in place: the weights are slices of it.

#![no_std]
#![no_main]

use cortex_m_rt::entry;
use cortex_m_semihosting::debug::EXIT_SUCCESS;
use firmware::board::{ok, print_stack, stop};
use firmware::listen;
use firmware::silero::weights::Resident;
use firmware::silero::Network;
use safetensors_zero::{Limits, SafeTensors, TensorSlot};

const FILE: &[u8] = include_bytes!(env!("MODEL"));

/// The number of padding bytes before the file that align its data to four bytes. Aligning the file
/// is not enough, because the format allows a header of any length.
const BEFORE: usize = {
    let [a, b, c, d, ..] = *FILE else { panic!("no header") };
    // Only the length modulo four matters, so the lower half of the u64 is enough.
    let header = u32::from_le_bytes([a, b, c, d]);
    (4 - (8 + header as usize) % 4) % 4
};

#[repr(C, align(4))]
struct Aligned<const BEFORE: usize, const LEN: usize> {
    before: [u8; BEFORE],
    file: [u8; LEN],
}

static MODEL: Aligned<BEFORE, { FILE.len() }> =
    Aligned { before: [0; BEFORE], file: *include_bytes!(env!("MODEL")) };

#[entry]
fn main() -> ! {
    static mut SLOTS: [TensorSlot; 15] = [TensorSlot::EMPTY; 15];
    static mut NETWORK: Network = Network::fresh();

    let model = ok(SafeTensors::parse_with(&MODEL.file, SLOTS, &Limits::TIGHT));
    let mut weights = ok(Resident::open(&model));
    ok(listen(NETWORK, &mut weights));
    print_stack();
    stop(EXIT_SUCCESS)
}
