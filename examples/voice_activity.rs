//! Finds speech in a recording with Silero's network of 1.2 MB.
//!
//! cargo run --release --example voice_activity -- MODEL PCM
//!
//! MODEL is silero_vad_16k.safetensors from a Python package:
//!
//! pip download --no-deps silero-vad==6.2.3
//! unzip -j silero_vad-6.2.3-*.whl silero_vad/data/silero_vad_16k.safetensors
//!
//! PCM is raw sound: one channel, 16,000 Hz, 16 bits, little-endian, without a header:
//!
//! ffmpeg -i RECORDING -ac 1 -ar 16000 -f s16le PCM
//!
//! Prints a line for every 32 ms: the time, the probability of speech, and a bar. The weights are
//! read from the file as they are needed. At most 512 bytes of them are in memory at a time, and
//! nothing is allocated for them.

#![allow(clippy::restriction, clippy::pedantic, unreachable_pub)]

#[allow(dead_code)]
#[path = "silero/mod.rs"]
mod silero;

use std::fmt::Display;
use std::process::ExitCode;

use safetensors_zero::{Limits, Reader, TensorSlot};
use silero::weights::Streamed;
use silero::{Network, CHUNK};

const USAGE: &str = "usage: voice_activity MODEL PCM";

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("voice_activity: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<(), String> {
    let [model, pcm] = arguments.as_slice() else { return Err(USAGE.into()) };
    let sound = std::fs::read(pcm).map_err(in_file(pcm))?;
    let file = std::fs::File::open(model).map_err(in_file(model))?;

    let (mut header, mut slots) = ([0; 4096], [TensorSlot::EMPTY; 32]);
    let reader = Reader::open(file, &mut header, &mut slots, &Limits::TIGHT);
    let reader = reader.map_err(in_file(model))?;
    let mut weights = Streamed::open(&reader).map_err(in_file(model))?;
    let mut network = Network::fresh();
    for (number, bytes) in sound.chunks_exact(2 * CHUNK).enumerate() {
        let sample = |at: usize| i16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        let chunk = std::array::from_fn(sample);
        let probability = network.hear(&chunk, &mut weights).map_err(in_file(model))?;
        let seconds = (number * CHUNK) as f32 / 16_000.0;
        let bar = "#".repeat((probability * 40.0).round() as usize);
        println!("{seconds:7.2} s {probability:.4} {bar}");
    }
    Ok(())
}

/// Returns a function that puts a file's path before an error's message.
fn in_file<E: Display>(path: &str) -> impl Fn(E) -> String + '_ {
    move |error| format!("{path}: {error}")
}
