//! What holds of every file: every way of reading it agrees, what is accepted is valid through and
//! through, what strict rules accept the default accepts too, the fast path through the header says
//! what the tokenizer says, and where the reference differs it is for one of the reasons that are
//! known.

use safetensors_zero::internals::walk_both_ways;
use safetensors_zero::Limits;

use crate::{paths, reference};

/// Keeps a panic of the reference, which is a known difference, from ending the run.
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
