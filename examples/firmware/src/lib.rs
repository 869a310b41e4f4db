//! Code that both images share: the network, the sound, and the board.

#![no_std]

pub mod board;
pub mod chip;
pub mod partition;
#[path = "../../silero/mod.rs"]
pub mod silero;

use cortex_m_semihosting::hprintln;

use silero::weights::Weights;
use silero::{Network, CHUNK};

static SOUND: &[u8] = include_bytes!("../../../tests/golden/speech_16k_s16le.pcm");

/// Runs the network on the sound and prints the probability for each chunk.
pub fn listen<W: Weights>(network: &mut Network, weights: &mut W) -> Result<(), W::Error> {
    for bytes in SOUND.chunks_exact(2 * CHUNK) {
        let sample = |at: usize| i16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        let probability = network.hear(&core::array::from_fn(sample), weights)?;
        // Printed as integers because `core`'s float formatting takes 20 KB of flash.
        let millionths = (probability * 1e6 + 0.5) as u32;
        hprintln!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    }
    Ok(())
}
