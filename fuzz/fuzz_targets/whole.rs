//! Checks that hold for every file:
//! - All ways of reading it agree, and an accepted file is valid in every respect.
//! - Stricter limits accept no more than looser ones.
//! - The header's fast path agrees with the tokenizer.
//! - Differences from the reference crate are intended ones.

use safetensors_zero::internals::walk_both_ways;
use safetensors_zero::Limits;

use crate::{paths, reference};

/// Keeps panics of the reference crate from ending the run, because they are a known difference.
pub fn let_the_reference_panic() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map_or("", |location| location.file());
        if !file.contains("safetensors-0") {
            hook(info);
        }
    }));
}

pub fn check(file: &[u8]) {
    let default = paths::read(file, &Limits::DEFAULT);
    let strict = paths::read(file, &Limits::STRICT);
    let tight = paths::read(file, &Limits::TIGHT);
    assert!(strict.is_err() || strict == default);
    assert!(tight.is_err() || tight == strict);
    for limits in [Limits::DEFAULT, Limits::STRICT, Limits::TIGHT] {
        assert_ne!(walk_both_ways(file, &limits), Some(Err(())));
    }
    if let Err(error) = reference::compare(file, default) {
        panic!("{error}");
    }
}
