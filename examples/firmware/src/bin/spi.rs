//! The model is in a flash chip behind a bus, outside the processor's address space. Memory holds
//! its header and the 512 bytes of weights that are in use.

#![no_std]
#![no_main]

use cortex_m_rt::entry;
use cortex_m_semihosting::debug::EXIT_SUCCESS;
use cortex_m_semihosting::hprintln;
use firmware::board::{ok, print_stack, stop};
use firmware::chip::{Chip, FILE_LEN, FILE_START};
use firmware::listen;
use firmware::partition::Partition;
use firmware::silero::weights::Streamed;
use firmware::silero::Network;
use safetensors_zero::{Limits, Reader, TensorSlot};

#[entry]
fn main() -> ! {
    static mut HEADER: [u8; 1536] = [0; 1536];
    static mut SLOTS: [TensorSlot; 15] = [TensorSlot::EMPTY; 15];
    static mut NETWORK: Network = Network::fresh();

    let chip = Chip::power_up();
    let source = Partition::new(chip, FILE_START, FILE_LEN);
    let reader = ok(Reader::open(source, HEADER, SLOTS, &Limits::TIGHT));
    let mut weights = ok(Streamed::open(&reader));
    ok(listen(NETWORK, &mut weights));
    print_stack();
    let (reads, bytes) = reader.source().flash(Chip::traffic);
    hprintln!("chip: {} bytes in {} reads", bytes, reads);
    stop(EXIT_SUCCESS)
}
