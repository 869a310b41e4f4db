//! Promise: a whole network computes of this crate's views, and of what it reads through a source,
//! the numbers that another engine computes of another reader's.
//!
//! The numbers are in tests/golden/silero_vad.json, which says where they come from. The model is
//! fetched by `python3 tests/oracle/fetch.py`, then `cargo test --test forward -- --ignored`.

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

/// How far the network's probabilities are from those of the other engine, at most.
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
fn the_network_computes_what_another_engine_does() {
    let file = read("oracle/files/silero-vad.safetensors");
    // Views need the data at an address that is a multiple of four.
    let (mut room, mut slots) = (vec![0; file.len() + 3], [TensorSlot::EMPTY; 15]);
    let header_len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let shift = room[8 + header_len..].as_ptr().align_offset(4);
    room[shift..][..file.len()].copy_from_slice(&file);
    let tensors = SafeTensors::parse(&room[shift..][..file.len()], &mut slots).unwrap();

    let difference = difference(Resident::open(&tensors).unwrap());
    println!("of views: {difference:e}");
    assert!(difference < 1e-5, "{difference}");
}

#[test]
#[ignore = "needs the model that tests/oracle/fetch.py fetches"]
fn so_it_does_with_512_bytes_of_weights_in_memory() {
    let file = read("oracle/files/silero-vad.safetensors");
    let (mut header, mut slots) = ([0; 2048], [TensorSlot::EMPTY; 15]);
    let reader = Reader::open(file.as_slice(), &mut header, &mut slots, &Limits::STRICT).unwrap();

    let difference = difference(Streamed::open(&reader).unwrap());
    println!("through a source: {difference:e}");
    assert!(difference < 1e-5, "{difference}");
}
