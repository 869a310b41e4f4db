//! Parses any bytes as a file. See `whole` for the checks.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/support/paths.rs"]
mod paths;
#[path = "../../tests/support/reference.rs"]
mod reference;
mod whole;

fuzz_target!(init: whole::let_the_reference_panic(), |file: &[u8]| {
    whole::check(file);
});
