//! Reads a file in every way the library offers and checks that the results agree.

use std::cell::Cell;

use safetensors_zero::{
    Dtype, EndOfSource, Error, ErrorKind, Frame, Header, Limits, Reader, SafeTensors, Scanned,
    Source, Table, TensorInfo, TensorSlot,
};

/// The contents of a valid file, owned. Tensors are in data order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub data_start: u64,
    pub metadata: Option<Vec<(String, String)>>,
    pub tensors: Vec<Tensor>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    pub data_offsets: (u64, u64),
}

impl Tensor {
    pub fn of(info: &TensorInfo<'_>) -> Tensor {
        Tensor {
            name: info.name.to_string(),
            dtype: info.dtype,
            shape: info.shape.iter().collect(),
            data_offsets: info.data_offsets,
        }
    }
}

pub fn content(table: &Table<'_, '_>) -> Content {
    let metadata = table.metadata().map(|metadata| {
        let pairs: Vec<_> = metadata.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        assert_eq!(pairs.len(), metadata.len());
        // Each look-up takes time linear in the metadata.
        for (key, value) in pairs.iter().take(100) {
            assert_eq!(metadata.get(key).expect("a key that iteration gave"), value.as_str());
        }
        pairs
    });
    let tensors: Vec<_> = table.iter().map(|info| Tensor::of(&info)).collect();
    assert_eq!(tensors.len(), table.len());
    Content { data_start: table.data_start(), metadata, tensors }
}

/// Reads a file in every way, and returns the common result.
///
/// Panics if two ways disagree, or if a file is accepted that isn't valid in every respect.
pub fn read(file: &[u8], limits: &Limits) -> Result<Content, Error> {
    let count = SafeTensors::count(file, limits);
    // If counting failed, 1024 slots are enough to reach the same error.
    let needed = count.map_or(1024, |count| count.slots());
    let mut slots = vec![TensorSlot::EMPTY; needed];
    let parsed = SafeTensors::parse_with(file, &mut slots, limits);
    let result = parsed.as_ref().map(|tensors| content(tensors.table())).map_err(|error| *error);
    if let Ok(tensors) = &parsed {
        check_valid(file, tensors);
        assert_eq!(count.expect("a count of a valid file").tensors, tensors.len());
    } else if let Err(error) = count {
        assert_eq!(result, Err(error), "count and parse");
    }

    fewer_slots(file, limits, needed, &result);
    owned(file, limits, &result);
    header_only(file, limits, &result);
    reader(file, limits, needed, &result);
    scan(file, limits, &result);
    result
}

/// Checks that one slot too few is an error with the number, and that extra slots change nothing.
fn fewer_slots(file: &[u8], limits: &Limits, needed: usize, expected: &Result<Content, Error>) {
    let mut more = vec![TensorSlot::EMPTY; needed + 3];
    let parsed = SafeTensors::parse_with(file, &mut more, limits);
    assert_eq!(parsed.map(|tensors| content(tensors.table())), *expected, "more slots");
    if needed > 0 && expected.is_ok() {
        let mut fewer = vec![TensorSlot::EMPTY; needed - 1];
        let error = SafeTensors::parse_with(file, &mut fewer, limits).unwrap_err();
        let (needed, given) = (needed as u64, needed as u64 - 1);
        assert_eq!(error.kind(), ErrorKind::TooFewSlots { needed, given });
    }
}

#[cfg(feature = "alloc")]
fn owned(file: &[u8], limits: &Limits, expected: &Result<Content, Error>) {
    let parsed = SafeTensors::deserialize_with(file, limits);
    assert_eq!(parsed.map(|tensors| content(tensors.table())), *expected, "owned");
}

#[cfg(not(feature = "alloc"))]
fn owned(_: &[u8], _: &Limits, _: &Result<Content, Error>) {}

fn header_only(file: &[u8], limits: &Limits, expected: &Result<Content, Error>) {
    let read = || -> Result<Content, Error> {
        let frame = Frame::parse(&file[..file.len().min(8)], file.len() as u64, limits)?;
        let range = frame.header_range();
        let text = &file[range.start as usize..range.end as usize];
        let header = Header::new(text, frame.data_len(), limits)?;
        let needed = header.count().map_or(1024, |count| count.slots());
        let mut slots = vec![TensorSlot::EMPTY; needed];
        let table = Table::parse(&header, &mut slots)?;
        assert_eq!(frame.data_start(), table.data_start());
        Ok(content(&table))
    };
    match (read(), expected) {
        // Eight bytes aren't always enough to recognise which foreign format a file has.
        (Err(frame), Err(whole)) if is_foreign(&frame) || is_foreign(whole) => {
            assert_eq!((frame.byte(), whole.byte()), (Some(0), Some(0)));
        }
        (found, expected) => assert_eq!(found, *expected, "header only"),
    }
}

/// Opens the file as a source and checks that only its header is read.
fn reader(file: &[u8], limits: &Limits, needed: usize, expected: &Result<Content, Error>) {
    let mut text = vec![0; file.len().saturating_sub(8)];
    let mut slots = vec![TensorSlot::EMPTY; needed];
    let source = Counted { bytes: file, read: Cell::new(0) };
    let opened = Reader::open(&source, &mut text, &mut slots, limits);
    if let Ok(reader) = &opened {
        assert_eq!(source.read.get(), reader.table().data_start(), "bytes read");
    }
    let found = match &opened {
        Ok(reader) => Ok(content(reader.table())),
        Err(error) => Err(error.invalid().expect("the source never fails")),
    };
    assert_eq!(found, *expected, "reader");
}

/// A source that counts the bytes read from it.
pub struct Counted<'b> {
    pub bytes: &'b [u8],
    pub read: Cell<u64>,
}

impl Source for Counted<'_> {
    type Error = EndOfSource;

    fn len(&self) -> Result<u64, EndOfSource> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), EndOfSource> {
        self.read.set(self.read.get() + buffer.len() as u64);
        self.bytes.read_exact_at(offset, buffer)
    }
}

fn is_foreign(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Foreign { .. })
}

fn scan(file: &[u8], limits: &Limits, expected: &Result<Content, Error>) {
    let scanned: Result<(Vec<Tensor>, Scanned<'_>), Error> = (|| {
        let (header, data) = Header::of_file(file, limits)?;
        let mut scan = header.scan();
        let mut tensors = Vec::new();
        for info in &mut scan {
            tensors.push(Tensor::of(&info?));
        }
        let scanned = scan.finish()?;
        for tensor in &tensors {
            // Each look-up scans the header, so names are only looked up in small files.
            if tensors.len() > 50 {
                break;
            }
            match header.find(&tensor.name) {
                Ok(found) => {
                    assert_eq!(Tensor::of(&found.info), *tensor);
                    header.view(&found.info, data).expect("a view of a found tensor");
                }
                Err(error) => assert!(matches!(error.kind(), ErrorKind::DuplicateName { .. })),
            }
        }
        Ok((tensors, scanned))
    })();
    match (scanned, expected) {
        (Ok((mut tensors, scanned)), Ok(content)) => {
            assert_eq!(scanned.tensors(), tensors.len());
            let listed = tensors.clone();
            tensors.sort_by_key(|tensor| tensor.data_offsets);
            let mut expected = content.tensors.clone();
            let in_order =
                listed.windows(2).all(|pair| pair[0].data_offsets <= pair[1].data_offsets);
            assert_eq!(scanned.chain_checked(), in_order);
            if !in_order {
                // The order of tensors without bytes is unspecified.
                let key = |tensor: &Tensor| (tensor.data_offsets, tensor.name.clone());
                tensors.sort_by_key(key);
                expected.sort_by_key(key);
            }
            assert_eq!(tensors, expected, "scan");
        }
        (Err(scanned), Err(error)) => {
            use ErrorKind as K;
            // When tensors are out of order, a scan can't say where their chain breaks.
            let vague = matches!(
                scanned.kind(),
                K::DataTruncated { .. } | K::DataTrailing { .. } | K::DataMismatch { .. }
            );
            let precise = matches!(error.kind(), K::Hole { .. } | K::Overlap { .. });
            if !(vague && precise || names_clash(error)) {
                assert_eq!(scanned, *error, "scan");
            }
        }
        (Ok((_, scanned)), Err(error)) => {
            let chain = matches!(error.kind(), ErrorKind::Hole { .. } | ErrorKind::Overlap { .. });
            assert!(
                names_clash(error) || (chain && !scanned.chain_checked()),
                "scan missed {error}"
            );
        }
        (Err(scanned), Ok(_)) => panic!("only the scan fails: {scanned}"),
    }
}

/// Checks whether an error is about duplicates, which a scan in constant memory can miss.
fn names_clash(error: &Error) -> bool {
    use ErrorKind as K;
    matches!(error.kind(), K::DuplicateName { .. } | K::DuplicateMetadataKey { .. })
}

/// Checks that everything in a parsed file is consistent.
fn check_valid(file: &[u8], tensors: &SafeTensors<'_, '_>) {
    let data = tensors.data();
    assert_eq!(file.len() as u64, tensors.table().data_start() + data.len() as u64);
    let mut end = 0;
    let mut names = std::collections::HashSet::new();
    for (info, (name, view)) in tensors.table().iter().zip(tensors) {
        assert_eq!(info.data_offsets.0, end);
        end = info.data_offsets.1;
        let elements = info.shape.iter().map(u128::from).fold(1_u128, |product, dimension| {
            if product == 0 || dimension == 0 {
                0
            } else {
                product.saturating_mul(dimension)
            }
        });
        assert_eq!(u128::from(info.elements()), elements);
        assert_eq!(u128::from(info.byte_len()) * 8, elements * info.dtype.bitsize() as u128);
        assert_eq!(view.data(), &data[info.data_offsets.0 as usize..end as usize]);
        assert_eq!((name, view.dtype(), view.shape()), (info.name, info.dtype, info.shape));
        assert!(names.insert(name.to_string()), "duplicate name {name:?}");
        assert_eq!(tensors.tensor(&name.to_string()), Ok(view), "{name:?}");
    }
    assert_eq!(end, data.len() as u64);
    let missing = tensors.tensor("no such name");
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::TensorNotFound);
}
