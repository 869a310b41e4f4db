//! Any bytes as a file: every way of reading it has to agree, what is accepted has to be valid
//! through and through, what strict rules accept the default has to accept too, and where the
//! reference differs it has to be for one of the reasons that are known.

#![no_main]

use libfuzzer_sys::fuzz_target;
use safetensors_zero::Limits;

#[path = "../../tests/support/paths.rs"]
mod paths;
#[path = "../../tests/support/reference.rs"]
mod reference;

fuzz_target!(|file: &[u8]| {
    let default = paths::read(file, &Limits::DEFAULT);
    let strict = paths::read(file, &Limits::STRICT);
    let tight = paths::read(file, &Limits::TIGHT);
    assert!(default.is_ok() || strict.is_err());
    assert!(strict.is_ok() || tight.is_err());
    if let Err(error) = reference::compare(file, default) {
        panic!("{error}");
    }
});
