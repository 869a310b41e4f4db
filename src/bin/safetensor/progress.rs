//! A progress bar, on a terminal only and for long work only.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt;

/// Work that takes less than this many bytes is done before anybody could look.
const LONG: u64 = 64 << 20;

/// How far some work has come.
#[derive(Debug)]
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Begins work on this many bytes.
    pub(crate) fn new(bytes: u64) -> Progress {
        if bytes < LONG || !io::stderr().is_terminal() {
            return Progress(None);
        }
        let bar = ProgressBar::new(bytes);
        let template = "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(Some(bar))
    }

    /// This many more bytes are done.
    pub(crate) fn add(&self, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes);
        }
    }

    /// What the library is to tell of one of its calls: its part of the work adds to this.
    pub(crate) fn of_call(&self) -> impl FnMut(safetensors_zero::Progress) -> ControlFlow<()> + '_ {
        let mut before = 0;
        move |told| {
            self.add(told.done.saturating_sub(before));
            before = told.done;
            if interrupt::asked() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }

    /// Prints something without the bar in between.
    pub(crate) fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
