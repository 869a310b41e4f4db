//! Writes any tensors and metadata with any options. Every way of writing produces the same file,
//! and it reads back equal. A refused plan has the fault that the error reports.

#![no_main]

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use safetensors_zero::{
    serialize_with, Dtype, ErrorKind, Limits, Order, OwnedPlan, PlanBuilder, PlanOptions,
    SafeTensors, Shape, StreamWriter, View,
};

#[derive(Debug, Arbitrary)]
struct Tensor {
    name: String,
    dtype: u8,
    shape: Vec<u16>,
    fill: u8,
}

#[derive(Debug, Arbitrary)]
struct Input {
    tensors: Vec<Tensor>,
    metadata: Option<BTreeMap<String, String>>,
    align: u8,
    given: bool,
    strict: u8,
    pieces: Vec<u8>,
}

struct Ready {
    dtype: Dtype,
    shape: Vec<u64>,
    data: Vec<u8>,
}

impl View for Ready {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> Shape<'_> {
        Shape::wide(&self.shape)
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.data)
    }
}

/// Returns a tensor with its data, or `None` if it would be large.
fn ready(tensor: &Tensor) -> Option<Ready> {
    let dtype = Dtype::ALL[usize::from(tensor.dtype) % Dtype::ALL.len()];
    let shape: Vec<u64> = tensor.shape.iter().map(|d| u64::from(*d)).collect();
    let elements = shape.iter().try_fold(1_u64, |product, d| product.checked_mul(*d));
    let elements = if shape.contains(&0) { Some(0) } else { elements };
    let bits = elements?.checked_mul(dtype.bitsize() as u64).filter(|bits| *bits < 1 << 16)?;
    let len = usize::try_from(bits / 8).ok()?;
    Some(Ready {
        dtype,
        shape,
        data: (0..len).map(|i| tensor.fill.wrapping_add(i as u8)).collect(),
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(bytes)) else { return };
    let Some(views) = input
        .tensors
        .iter()
        .map(|tensor| Some((tensor.name.as_str(), ready(tensor)?)))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let mut options = PlanOptions::default();
    options.align = 1 << (input.align % 13);
    options.order = if input.given { Order::Given } else { Order::ByDtype };
    options.limits =
        [Limits::DEFAULT, Limits::STRICT, Limits::TIGHT][usize::from(input.strict % 3)];
    let borrowed = || views.iter().map(|(name, ready)| (*name, ready));
    let file = match serialize_with(borrowed(), input.metadata.clone(), &options) {
        Ok(file) => file,
        Err(error) => return refused(error.refusal().expect("a refusal"), &views),
    };

    let tensors = SafeTensors::deserialize_with(&file, &options.limits).expect("a valid file");
    assert_eq!(tensors.len(), views.len());
    assert_eq!((file.len() - tensors.data().len()) as u64 % options.align, 0);
    for (name, ready) in &views {
        let view = tensors.tensor(name).unwrap();
        assert_eq!((view.dtype(), view.shape()), (ready.dtype, ready.shape()));
        assert_eq!(view.data(), ready.data);
    }
    let metadata = tensors.metadata().map(|metadata| {
        metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    });
    assert_eq!(metadata, input.metadata);

    let mut builder = PlanBuilder::with_options(options);
    for (name, ready) in &views {
        builder.tensor(*name, ready.dtype, ready.shape.iter().copied());
    }
    builder.all_metadata(input.metadata);
    let plan = builder.plan().unwrap();
    assert_eq!(plan.file_len(), file.len() as u64);
    assert_eq!(streamed(plan, &tensors, &input.pieces), file);
});

/// Checks that the reason for a refusal applies to one of the views.
fn refused(kind: ErrorKind, views: &[(&str, Ready)]) {
    let names: HashSet<&str> = views.iter().map(|(name, _)| *name).collect();
    let repeated = names.len() < views.len();
    match kind {
        ErrorKind::NameRepeated { .. } => assert!(repeated),
        ErrorKind::ReservedName => assert!(names.contains("__metadata__")),
        ErrorKind::PartialByte { dtype, .. } => assert!(dtype.bitsize() < 8),
        ErrorKind::DtypeNotAccepted { .. }
        | ErrorKind::RankTooLarge { .. }
        | ErrorKind::StringTooLong { .. } => {}
        other => panic!("{other:?}"),
    }
}

/// Writes the file as a stream, with its data in pieces.
fn streamed(plan: OwnedPlan, tensors: &SafeTensors<'_, '_>, pieces: &[u8]) -> Vec<u8> {
    let mut writer = StreamWriter::new(Vec::new(), plan).unwrap();
    let mut pieces = pieces.iter().cycle();
    for (name, view) in tensors {
        let name = name.to_string();
        let mut rest = view.data();
        while !rest.is_empty() {
            let len = pieces.next().map_or(rest.len(), |piece| usize::from(*piece) + 1);
            let (piece, after) = rest.split_at(len.min(rest.len()));
            writer.tensor(&name).unwrap().write_bytes(piece).unwrap();
            rest = after;
        }
    }
    writer.finish().unwrap()
}
