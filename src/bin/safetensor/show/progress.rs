//! A progress bar, shown only on a terminal and only for long work.

use std::io::{self, IsTerminal as _};
use std::ops::{ControlFlow, Range};

use indicatif::{ProgressBar, ProgressStyle};
use safetensors_zero::Dtype;

use crate::files::failure::Failure;
use crate::files::interrupt;
use crate::files::values;

/// Work on fewer bytes than this shows no bar.
const LONG: u64 = 64 << 20;

/// The progress of some work, and the place where Ctrl-C stops it.
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

    /// Adds bytes that are done.
    pub(crate) fn add(&self, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes);
        }
    }

    /// Calls `each` with successive pieces of some elements, until Ctrl-C. The bytes of each piece
    /// are added for each of the dtypes: those of the tensors that `each` reads.
    pub(crate) fn for_each_piece(
        &self,
        elements: Range<u64>,
        dtypes: &[Dtype],
        mut each: impl FnMut(Range<u64>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for piece in values::pieces(elements) {
            if interrupt::asked() {
                return Err(Failure::Interrupted);
            }
            each(piece.clone())?;
            for dtype in dtypes {
                let bytes = values::byte_range(*dtype, &piece);
                self.add(bytes.end - bytes.start);
            }
        }
        Ok(())
    }

    /// The callback for one of the library's calls, whose work is a part of this work.
    pub(crate) fn for_call(
        &self,
    ) -> impl FnMut(safetensors_zero::Progress) -> ControlFlow<()> + '_ {
        let mut before = 0;
        move |call| {
            self.add(call.done.saturating_sub(before));
            before = call.done;
            if interrupt::asked() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }

    /// Hides the bar while something is printed.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
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
