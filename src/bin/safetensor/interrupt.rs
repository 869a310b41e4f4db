//! Ctrl-C while a file is being written: the work stops at the next piece, and what it has made so far
//! is removed.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C does not end the program, but asks it to end.
pub(crate) fn watch() {
    // Fails only where it was set before, which no verb does.
    let _ = ctrlc::set_handler(|| ASKED.store(true, Ordering::Relaxed));
}

/// Whether the user wants the program to end.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
