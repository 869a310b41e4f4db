//! Reading a header without slots: entry by entry in the header's order, in constant memory.

use crate::convert::{to_u32, to_usize};
use crate::error::{Error, ErrorKind, NameSpan, FRAME_BYTES};
use crate::header::Header;
use crate::info::TensorInfo;
use crate::metadata::Metadata;
use crate::view::TensorView;
use crate::walk::{Entry, Item, Walk};

/// A walk over a header's tensors in the header's order, for devices that cannot spare slots.
///
/// Each entry is checked on its own. What can be checked between entries in constant memory is:
/// [`Scan::finish`] tells what that was. That names differ from each other takes memory, and so
/// does it for the keys of `__metadata__`: a scan never checks it, a [`Table`](crate::Table) always
/// does. [`Header::find`] checks it for the one name it looks for.
///
/// ```
/// use safetensors_zero::{Header, Limits};
///
/// # let file = include_bytes!("../examples/animals.safetensors");
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
    header: &'h Header<'a>,
    state: State,
    chain: Chain,
    scanned: Scanned<'a>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Going,
    Ended,
    Failed(Error),
}

/// What a scan to the end of a header found.
#[derive(Debug, Clone, Copy)]
pub struct Scanned<'a> {
    tensors: usize,
    metadata: Option<Metadata<'a>>,
    /// The byte of the first entry that is out of order.
    out_of_order: Option<u64>,
}

impl<'a> Scanned<'a> {
    /// How many tensors there are.
    #[must_use]
    pub fn tensors(&self) -> usize {
        self.tensors
    }

    /// The file's metadata. `None` if there is none, or if it is null.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        self.metadata
    }

    /// Whether it is known that the tensors cover the data region without hole or overlap. That is
    /// so where they are listed in the order of their data, as most writers list them. Where not,
    /// it is known only that they are within it and that their sizes together are its size.
    #[must_use]
    pub fn chain_checked(&self) -> bool {
        self.out_of_order.is_none()
    }

    /// The byte of the file at which the first tensor stands that is listed after one whose data
    /// come later.
    #[must_use]
    pub fn out_of_order(&self) -> Option<u64> {
        self.out_of_order
    }
}

/// What of the chain of tensors can be told without remembering them.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    previous: (u64, u64),
    /// Sum of all sizes.
    total: u64,
    largest_end: u64,
    /// The first break of the chain, which is an error if the tensors turn out to be in order.
    broken: Option<Error>,
}

impl<'h, 'a> Scan<'h, 'a> {
    fn new(header: &'h Header<'a>) -> Self {
        Scan {
            walk: Walk::new(header),
            header,
            state: State::Going,
            chain: Chain::default(),
            scanned: Scanned { tensors: 0, metadata: None, out_of_order: None },
        }
    }

    /// Scans what is left, and tells what is known of the whole.
    ///
    /// # Errors
    /// What is wrong with the header; the same again if iteration has told it already.
    pub fn finish(mut self) -> Result<Scanned<'a>, Error> {
        for info in self.by_ref() {
            info?;
        }
        match self.state {
            State::Failed(error) => Err(error),
            State::Going | State::Ended => Ok(self.scanned),
        }
    }

    fn step(&mut self) -> Result<Option<Entry<'a>>, Error> {
        loop {
            match self.walk.next()? {
                Some(Item::Metadata(metadata)) => self.scanned.metadata = metadata,
                Some(Item::Tensor(entry)) => {
                    self.link(&entry);
                    return Ok(Some(entry));
                }
                None => {
                    self.check_chain()?;
                    return Ok(None);
                }
            }
        }
    }

    /// Notes one more tensor.
    fn link(&mut self, entry: &Entry<'a>) {
        let (begin, end) = (entry.begin, entry.end);
        let previous_end = self.chain.previous.1;
        if self.chain.previous > (begin, end) && self.scanned.out_of_order.is_none() {
            let byte = FRAME_BYTES.saturating_add(u64::from(entry.name.start));
            self.scanned.out_of_order = Some(byte);
        }
        if begin != previous_end && self.chain.broken.is_none() {
            let kind = if begin > previous_end {
                ErrorKind::Hole { begin: previous_end, end: begin }
            } else {
                ErrorKind::Overlap { begin, previous_end }
            };
            let span = NameSpan { start: entry.name.start, len: to_u32(entry.name.raw.len()) };
            self.chain.broken = Some(Error::at(kind, to_usize(entry.offsets)).of(span));
        }
        self.chain.previous = (begin, end);
        self.chain.total = self.chain.total.saturating_add(end.saturating_sub(begin));
        self.chain.largest_end = self.chain.largest_end.max(end);
        self.scanned.tensors = self.scanned.tensors.saturating_add(1);
    }

    /// What is known of the chain once all tensors have been seen.
    fn check_chain(&self) -> Result<(), Error> {
        if let (Some(broken), None) = (self.chain.broken, self.scanned.out_of_order) {
            return Err(broken);
        }
        let available = self.header.data_len;
        let needed = self.chain.largest_end;
        let total = self.chain.total;
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

    /// The next tensor in the header's order. After an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if !matches!(self.state, State::Going) {
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

/// The tensor that [`Header::find`] found, and what it learned of the header on its way.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Found<'a> {
    /// The tensor.
    pub info: TensorInfo<'a>,
    /// What the scan to the header's end found.
    pub scanned: Scanned<'a>,
}

impl<'a> Header<'a> {
    /// Walks over the tensors in the header's order, in constant memory.
    #[must_use]
    pub fn scan(&self) -> Scan<'_, 'a> {
        Scan::new(self)
    }

    /// Finds one tensor by name, in constant memory and in time linear in the header, all of which
    /// is read and checked as by [`Header::scan`].
    ///
    /// # Errors
    /// What is wrong with the header; [`DuplicateName`](ErrorKind::DuplicateName) if this name
    /// stands there twice; [`TensorNotFound`](ErrorKind::TensorNotFound).
    pub fn find(&self, name: &str) -> Result<Found<'a>, Error> {
        let mut scan = self.scan();
        let mut found: Option<(TensorInfo<'a>, Entry<'a>)> = None;
        while let Some(entry) = scan.step()? {
            let info = TensorInfo::of_entry(self.text, &entry);
            if info.name != *name {
                continue;
            }
            if let Some((_, first)) = found {
                let first = FRAME_BYTES.saturating_add(u64::from(first.name.start));
                let span = NameSpan { start: entry.name.start, len: to_u32(entry.name.raw.len()) };
                let kind = ErrorKind::DuplicateName { first };
                return Err(Error::at(kind, to_usize(entry.name.start)).of(span));
            }
            found = Some((info, entry));
        }
        match found {
            Some((info, _)) => Ok(Found { info, scanned: scan.scanned }),
            None => Err(Error::new(ErrorKind::TensorNotFound)),
        }
    }

    /// The view of a tensor of this header, given the data region that the header describes.
    ///
    /// # Errors
    /// [`DataTruncated`](ErrorKind::DataTruncated) if the data given ends before the tensor does.
    pub fn view(&self, info: &TensorInfo<'a>, data: &'a [u8]) -> Result<TensorView<'a>, Error> {
        TensorView::of_info(info, data, self.limits.dequant_elements)
    }
}
