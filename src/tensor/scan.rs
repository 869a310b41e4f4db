//! Reading a header without slots: one entry at a time in header order, in constant memory.

use crate::base::convert::to_usize;
use crate::base::error::{Error, ErrorKind, FRAME_BYTES};
use crate::header::entry::Entry;
use crate::header::frame::{Header, Parts};
use crate::header::metadata::Metadata;
use crate::header::walk::{Item, Walk};
use crate::json::text::Text;
use crate::table::info::TensorInfo;
use crate::tensor::view::TensorView;

/// An iterator over a header's tensors in header order, for devices without memory for slots.
///
/// Each entry is checked on its own. Checks between entries are limited to those that need constant
/// memory; [`Scan::finish`] returns their result. A scan does not check whether names, or keys of
/// `__metadata__`, are distinct, because that needs memory. A [`Table`](crate::Table) always does.
/// [`Header::find`] checks that the name it looks for is unique.
///
/// ```
/// use safetensors_zero::{Header, Limits};
///
/// # let file = include_bytes!("../../examples/animals.safetensors");
/// let (header, data) = Header::of_file(file, &Limits::default())?;
/// let mut scan = header.scan();
/// for info in &mut scan {
///     let info = info?;
///     println!("{} {} {}", info.name, info.dtype, info.shape);
/// }
/// assert!(scan.finish()?.chain_checked());
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scan<'h, 'a> {
    walk: Walk<'h, 'a>,
    header: Parts<'h, 'a>,
    state: State,
    chain: Chain,
    scanned: Scanned<'a>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Running,
    Ended,
    Failed(Error),
}

/// The results of a scan to the end of a header.
#[derive(Debug, Clone, Copy)]
pub struct Scanned<'a> {
    tensors: usize,
    metadata: Option<Metadata<'a>>,
    /// Whether no entry so far is listed after a tensor with later data.
    in_order: bool,
}

impl<'a> Scanned<'a> {
    /// Returns the number of tensors.
    #[must_use]
    pub fn tensors(&self) -> usize {
        self.tensors
    }

    /// Returns the file's metadata, or `None` if it is absent or null.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        self.metadata
    }

    /// Returns `true` if the tensors are known to cover the data region without holes or overlaps.
    ///
    /// That is known if they are listed in data order, as most writers do. Otherwise it is only
    /// known that they are within the data region and that their sizes add up to its size.
    #[must_use]
    pub fn chain_checked(&self) -> bool {
        self.in_order
    }
}

/// The state of the chain of offsets, in constant memory.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    /// Start and end of the previous tensor's data.
    previous: (u64, u64),
    broken: Option<Broken>,
}

/// A chain in which a tensor does not begin where the previous one ends.
#[derive(Debug, Clone, Copy)]
struct Broken {
    /// The error for the first break, which applies if the tensors turn out to be in data order.
    error: Error,
    /// The sum of all sizes.
    total: u64,
    largest_end: u64,
}

impl<'h, 'a> Scan<'h, 'a> {
    fn new(header: Parts<'h, 'a>) -> Self {
        Scan {
            walk: Walk::new(header),
            header,
            state: State::Running,
            chain: Chain::default(),
            scanned: Scanned { tensors: 0, metadata: None, in_order: true },
        }
    }

    /// Scans the remaining entries, and returns the results for the whole header.
    ///
    /// # Errors
    /// Returns an error if the header is invalid. If iteration has already returned an error, this
    /// returns the same one.
    pub fn finish(mut self) -> Result<Scanned<'a>, Error> {
        match self.state {
            State::Failed(error) => return Err(error),
            State::Running => while self.step()?.is_some() {},
            State::Ended => {}
        }
        Ok(self.scanned)
    }

    #[inline(never)]
    fn step(&mut self) -> Result<Option<Entry<'a>>, Error> {
        self.step_inline()
    }

    /// Returns the next tensor. Inlined into the loop of [`Header::find`], where every nanosecond
    /// counts.
    #[inline(always)]
    fn step_inline(&mut self) -> Result<Option<Entry<'a>>, Error> {
        loop {
            let entry = match self.walk.next_fast() {
                Some(entry) => entry,
                None => match self.walk.next_by_token()? {
                    Some(Item::Tensor(entry)) => entry,
                    Some(Item::Metadata(metadata)) => {
                        self.scanned.metadata = metadata;
                        continue;
                    }
                    None => {
                        self.check_chain()?;
                        return Ok(None);
                    }
                },
            };
            self.link(&entry);
            return Ok(Some(entry));
        }
    }

    /// Adds a tensor to the chain.
    #[inline]
    fn link(&mut self, entry: &Entry<'a>) {
        self.scanned.tensors = self.scanned.tensors.wrapping_add(1);
        let chain = &mut self.chain;
        if chain.broken.is_none() && entry.begin == chain.previous.1 {
            // For an unbroken chain the previous tensor is all the state needed.
            chain.previous = (entry.begin, entry.end);
        } else {
            self.link_broken(entry);
        }
    }

    /// Adds a tensor that breaks the chain, or comes after a break.
    #[cold]
    fn link_broken(&mut self, entry: &Entry<'a>) {
        let (begin, end) = (entry.begin, entry.end);
        let chain = &mut self.chain;
        let previous_end = chain.previous.1;
        if chain.broken.is_none() {
            let kind = if begin > previous_end {
                ErrorKind::Hole { begin: previous_end, end: begin }
            } else {
                ErrorKind::Overlap { begin, previous_end }
            };
            let error = Error::at(kind, to_usize(entry.offsets)).of(entry.name.span());
            chain.broken = Some(Broken { error, total: previous_end, largest_end: previous_end });
        }
        if let Some(broken) = &mut chain.broken {
            broken.total = broken.total.saturating_add(end.saturating_sub(begin));
            broken.largest_end = broken.largest_end.max(end);
        }
        if chain.previous > (begin, end) {
            self.scanned.in_order = false;
        }
        chain.previous = (begin, end);
    }

    /// Checks the chain after the last tensor.
    fn check_chain(&self) -> Result<(), Error> {
        let end = self.chain.previous.1;
        let (needed, total) = match self.chain.broken {
            None => (end, end),
            Some(broken) if self.scanned.in_order => return Err(broken.error),
            Some(broken) => (broken.largest_end, broken.total),
        };
        let available = self.header.data_len;
        let (kind, position) = if needed > available {
            (ErrorKind::DataTruncated { needed, available }, available)
        } else if needed < available {
            (ErrorKind::DataTrailing { needed, available }, needed)
        } else if total != available {
            (ErrorKind::DataMismatch { total, available }, 0)
        } else {
            return Ok(());
        };
        Err(Error::at_byte(kind, self.header.data_start().saturating_add(position)))
    }
}

impl<'a> Iterator for Scan<'_, 'a> {
    type Item = Result<TensorInfo<'a>, Error>;

    /// Returns the next tensor in header order. After an error, returns `None`.
    fn next(&mut self) -> Option<Self::Item> {
        if !matches!(self.state, State::Running) {
            return None;
        }
        match self.step() {
            Ok(Some(entry)) => Some(Ok(TensorInfo::of_entry(self.header.text, &entry))),
            Ok(None) => {
                self.state = State::Ended;
                None
            }
            Err(error) => {
                self.state = State::Failed(error);
                Some(Err(error))
            }
        }
    }
}

/// The tensor found by [`Header::find`], and the results of the scan.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Found<'a> {
    /// The tensor.
    pub info: TensorInfo<'a>,
    /// The results of the scan to the end of the header.
    pub scanned: Scanned<'a>,
}

impl<'a> Header<'a> {
    /// Returns an iterator over the tensors in header order. Uses constant memory.
    #[must_use]
    pub fn scan(&self) -> Scan<'_, 'a> {
        Scan::new(self.parts())
    }

    /// Finds one tensor by name, in constant memory and in time linear in the header. The whole
    /// header is read and checked, as by [`Header::scan`].
    ///
    /// # Errors
    /// Returns an error if the header is invalid; [`DuplicateName`](ErrorKind::DuplicateName) if it
    /// contains this name twice; [`TensorNotFound`](ErrorKind::TensorNotFound).
    pub fn find(&self, name: &str) -> Result<Found<'a>, Error> {
        let mut scan = self.scan();
        let mut found: Option<Entry<'a>> = None;
        while let Some(entry) = scan.step_inline()? {
            let same = if entry.name.escaped {
                Text::in_header(self.text(), entry.name) == *name
            } else {
                entry.name.raw == name.as_bytes()
            };
            if !same {
                continue;
            }
            if let Some(first) = found {
                let first = FRAME_BYTES.saturating_add(u64::from(first.name.start));
                let kind = ErrorKind::DuplicateName { first };
                return Err(Error::at(kind, to_usize(entry.name.start)).of(entry.name.span()));
            }
            found = Some(entry);
        }
        let entry = found.ok_or_else(|| Error::new(ErrorKind::TensorNotFound))?;
        Ok(Found { info: TensorInfo::of_entry(self.text(), &entry), scanned: scan.scanned })
    }

    /// Returns the view of a tensor of this header. `data` is the data region that the header
    /// describes.
    ///
    /// # Errors
    /// [`DataTruncated`](ErrorKind::DataTruncated) if `data` ends before the tensor does.
    pub fn view(&self, info: &TensorInfo<'a>, data: &'a [u8]) -> Result<TensorView<'a>, Error> {
        TensorView::of_info(info, data, self.parts().limits.dequant_elements)
    }
}
