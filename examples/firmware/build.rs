//! Finds the model and passes the memory layout to the linker.

use std::path::Path;

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let model = Path::new(&here).join("../../tests/oracle/files/silero-vad.safetensors");
    println!("cargo:rerun-if-changed={}", model.display());
    let Ok(model) = model.canonicalize() else {
        panic!("no model: run python3 tests/oracle/fetch.py silero-vad");
    };
    println!("cargo:rustc-env=MODEL={}", model.display());
    println!("cargo:rerun-if-changed=memory.x");
    println!("cargo:rustc-link-search={here}");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
}
