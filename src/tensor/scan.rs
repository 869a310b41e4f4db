//! Reading a header without slots: entry by entry in the header's order, in constant memory.

use crate::base::convert::to_usize;
use crate::base::error::{Error, ErrorKind, FRAME_BYTES};
use crate::header::entry::Entry;
use crate::header::frame::{Header, Parts};
use crate::header::metadata::Metadata;
use crate::header::walk::{Item, Walk};
use crate::json::text::Text;
use crate::table::info::TensorInfo;
use crate::tensor::view::TensorView;

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
    header: Parts<'h, 'a>,
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
    /// Begin and end of the tensor before.
    previous: (u64, u64),
    broken: Option<Broken>,
}

/// A chain of tensors that do not follow each other.
#[derive(Debug, Clone, Copy)]
struct Broken {
    /// The first break, which is an error if the tensors turn out to be in order.
    error: Error,
    /// Sum of all sizes.
    total: u64,
    largest_end: u64,
}

impl<'h, 'a> Scan<'h, 'a> {
    fn new(header: Parts<'h, 'a>) -> Self {
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
        match self.state {
            State::Failed(error) => return Err(error),
            State::Going => while self.step()?.is_some() {},
            State::Ended => {}
        }
        Ok(self.scanned)
    }

    #[inline(never)]
    fn step(&mut self) -> Result<Option<Entry<'a>>, Error> {
        self.step_here()
    }

    /// The next tensor; in the caller's own loop, where every nanosecond counts.
    #[inline(always)]
    fn step_here(&mut self) -> Result<Option<Entry<'a>>, Error> {
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

    /// Notes one more tensor.
    #[inline]
    fn link(&mut self, entry: &Entry<'a>) {
        self.scanned.tensors = self.scanned.tensors.wrapping_add(1);
        let chain = &mut self.chain;
        if chain.broken.is_none() && entry.begin == chain.previous.1 {
            // Nothing but the one before it has to be known of an unbroken chain.
            chain.previous = (entry.begin, entry.end);
        } else {
            self.link_broken(entry);
        }
    }

    /// Notes a tensor that does not begin where the one before it ends, or comes after such a one.
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
        if chain.previous > (begin, end) && self.scanned.out_of_order.is_none() {
            let byte = FRAME_BYTES.saturating_add(u64::from(entry.name.start));
            self.scanned.out_of_order = Some(byte);
        }
        chain.previous = (begin, end);
    }

    /// What is known of the chain once all tensors have been seen.
    fn check_chain(&self) -> Result<(), Error> {
        let end = self.chain.previous.1;
        let (needed, total) = match self.chain.broken {
            None => (end, end),
            Some(broken) if self.scanned.out_of_order.is_none() => return Err(broken.error),
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
        Scan::new(self.parts())
    }

    /// Finds one tensor by name, in constant memory and in time linear in the header, all of which
    /// is read and checked as by [`Header::scan`].
    ///
    /// # Errors
    /// What is wrong with the header; [`DuplicateName`](ErrorKind::DuplicateName) if this name
    /// stands there twice; [`TensorNotFound`](ErrorKind::TensorNotFound).
    pub fn find(&self, name: &str) -> Result<Found<'a>, Error> {
        let mut scan = self.scan();
        let mut found: Option<Entry<'a>> = None;
        while let Some(entry) = scan.step_here()? {
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

    /// The view of a tensor of this header, given the data region that the header describes.
    ///
    /// # Errors
    /// [`DataTruncated`](ErrorKind::DataTruncated) if the data given ends before the tensor does.
    pub fn view(&self, info: &TensorInfo<'a>, data: &'a [u8]) -> Result<TensorView<'a>, Error> {
        TensorView::of_info(info, data, self.parts().limits.dequant_elements)
    }
}
