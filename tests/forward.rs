//! Promise: a whole network computes the same numbers from this crate's views, and from data read
//! through a source, as another engine computes with another reader.
//!
//! The expected numbers are in tests/golden/silero_vad.json, which names their origin. Fetch the
//! model with `python3 tests/oracle/fetch.py`, then run `cargo test --test forward -- --ignored`.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[path = "../examples/silero/mod.rs"]
mod silero;

use std::path::Path;

use safetensors_zero::{Limits, Reader, SafeTensors, TensorSlot};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use silero::weights::{Resident, Streamed, Weights};
use silero::{Network, CHUNK};

#[derive(Deserialize)]
struct Golden {
    audio_sha256: String,
    probabilities: Vec<f32>,
}

fn read(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The largest difference between the network's probabilities and the other engine's.
fn difference<W: Weights>(mut weights: W) -> f32
where
    W::Error: std::fmt::Debug,
{
    let golden: Golden = serde_json::from_slice(&read("golden/silero_vad.json")).unwrap();
    let sound = read("golden/speech_16k_s16le.pcm");
    let sha256: String = Sha256::digest(&sound).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sha256, golden.audio_sha256);
    let samples: Vec<i16> =
        sound.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    assert_eq!((samples.len(), golden.probabilities.len()), (100 * CHUNK, 100));

    let mut network = Network::fresh();
    let differences =
        samples.chunks_exact(CHUNK).zip(golden.probabilities).map(|(chunk, expected)| {
            let probability = network.hear(chunk.try_into().unwrap(), &mut weights).unwrap();
            (probability - expected).abs()
        });
    differences.fold(0.0, f32::max)
}

#[test]
#[ignore = "needs the model that tests/oracle/fetch.py fetches"]
fn views_give_the_same_probabilities_as_another_engine() {
    let file = read("oracle/files/silero-vad.safetensors");
    // Typed views need the data at an address divisible by 4.
    let (mut buffer, mut slots) = (vec![0; file.len() + 3], [TensorSlot::EMPTY; 15]);
    let header_len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let shift = buffer[8 + header_len..].as_ptr().align_offset(4);
    buffer[shift..][..file.len()].copy_from_slice(&file);
    let tensors = SafeTensors::parse(&buffer[shift..][..file.len()], &mut slots).unwrap();

    let difference = difference(Resident::open(&tensors).unwrap());
    println!("from views: {difference:e}");
    assert!(difference < 1e-5, "{difference}");
}

#[test]
#[ignore = "needs the model that tests/oracle/fetch.py fetches"]
fn streamed_weights_give_the_same_probabilities() {
    let file = read("oracle/files/silero-vad.safetensors");
    let (mut header, mut slots) = ([0; 2048], [TensorSlot::EMPTY; 15]);
    let reader = Reader::open(file.as_slice(), &mut header, &mut slots, &Limits::STRICT).unwrap();

    let difference = difference(Streamed::open(&reader).unwrap());
    println!("through a source: {difference:e}");
    assert!(difference < 1e-5, "{difference}");
}
