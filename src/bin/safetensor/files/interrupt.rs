//! Ctrl-C while a file is being written: the work stops at the next piece of data, and the
//! unfinished file is removed.

use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code after Ctrl-C, as shells report it.
pub(crate) const EXIT_CODE: u8 = 130;

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on, the first Ctrl-C only asks the program to end. The second ends it at once.
pub(crate) fn watch() {
    // Fails if the handler is already set, which is ignored.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE.into());
        }
    });
}

/// Whether the user has asked the program to end.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
