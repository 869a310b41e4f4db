//! Promise: no input makes the library panic, and the core needs neither `std` nor an allocator.
//!
//! The linker checks this: the panic handler calls `a_path_that_panics_is_left`, an undefined
//! function, so the program links only if the optimiser removed every panic. It also fails to link
//! if a dependency needs `std` or an allocator. On bare metal its size is measured as well.
//!
//! Run `cargo build --release --manifest-path tests/no_panic/Cargo.toml`, also with
//! `--target thumbv7em-none-eabihf`, each with and without `CARGO_PROFILE_RELEASE_OPT_LEVEL=s`.

#![no_std]
#![no_main]

mod judge;

use core::fmt::Write;
use core::hint::black_box;

use safetensors_zero::{
    dequant, encode, Dtype, Error, Frame, Header, Index, IndexLimits, Limits, Order, Plan, PlanOptions,
    PlanTensor, ReadError, Reader, SafeTensors, Shape, Source, Table, TensorIndexer, TensorSlot,
    TensorView,
};

/// Discards text but counts its length.
struct Sink(usize);

impl Write for Sink {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        self.0 = self.0.wrapping_add(s.len());
        Ok(())
    }
}

/// Uses a file in memory in every way, with bytes and numbers hidden from the compiler.
fn file(
    file: &[u8],
    limits: &Limits,
    slots: &mut [TensorSlot],
    name: &str,
) -> Result<usize, Error> {
    let mut sink = Sink(0);
    let count = SafeTensors::count(file, limits)?;
    let tensors = SafeTensors::parse_with(file, slots, limits)?;
    let _ = write!(sink, "{tensors:?} {count:?} {:?}", tensors.table().alignment());
    if let Some(metadata) = tensors.metadata() {
        for (key, value) in metadata {
            let mut buffer = [0; 64];
            let _ = write!(sink, "{key} {value:?} {}", key.copy_to(&mut buffer)?);
        }
        let _ = black_box(metadata.get(name));
    }
    for (name, view) in &tensors {
        let _ = write!(sink, "{name} {name:?} {} {}", view.dtype(), view.shape());
    }
    tensor(&tensors.tensor(name)?)?;
    Ok(sink.0)
}

fn tensor(view: &TensorView<'_>) -> Result<(), Error> {
    let mut out = [0.0; 100];
    let len = black_box(out.len());
    if let Some(out) = out.get_mut(..len) {
        view.dequant_into(out)?;
        view.dequant_range(black_box(7), out)?;
        view.dequant_rows(black_box(1)..black_box(3), out)?;
        let indexers: [TensorIndexer; 3] =
            black_box([2.into(), (1..7).into(), TensorIndexer::stepped(.., 3).unwrap_or(1.into())]);
        let slice = view.slice(indexers.get(..black_box(2)).unwrap_or(&[]))?;
        slice.dequant_into(out)?;
        slice.copy_to(black_box(&mut [0; 64]))?;
        for (piece, size) in slice.iter().zip(slice.shape()) {
            black_box((piece, size));
        }
    }
    // The numbers aren't printed: that would test how `core` formats floats.
    black_box(view.stats()?);
    black_box((view.shape().to_array::<3>(), view.shape().rank(), view.alignment()));
    black_box(view.as_slice::<f32>()?);
    black_box(view.as_slice::<u8>()?);
    Ok(())
}

/// Uses a header without its data, and a scan without slots.
fn header(
    prefix: &[u8],
    text: &[u8],
    data: &[u8],
    limits: &Limits,
    name: &str,
) -> Result<(), Error> {
    let frame = Frame::parse(prefix, black_box(1 << 40), limits)?;
    let header = Header::new(text, frame.data_len(), limits)?;
    let mut slots = [TensorSlot::EMPTY; 16];
    let table = Table::parse(&header, &mut slots)?;
    black_box(table.info(name)?);
    let mut scan = header.scan();
    for info in &mut scan {
        black_box(info?.elements());
    }
    black_box(scan.finish()?);
    let found = header.find(name)?;
    black_box(header.view(&found.info, data)?);
    Ok(())
}

/// A source whose contents are hidden from the compiler.
struct Flash<'f>(&'f [u8]);

impl Source for Flash<'_> {
    type Error = u8;

    fn len(&self) -> Result<u64, u8> {
        Ok(black_box(1 << 40))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), u8> {
        for (place, byte) in buffer.iter_mut().zip(self.0) {
            *place = *byte;
        }
        black_box(offset);
        black_box(Ok(()))
    }
}

/// Uses a file that is not in memory in every way.
fn source(flash: &Flash<'_>, limits: &Limits, name: &str) -> Result<(), ReadError<u8>> {
    black_box(Frame::read_from(flash, limits)?);
    let mut text = [0; 256];
    let mut slots = [TensorSlot::EMPTY; 8];
    let reader = Reader::open(flash, &mut text, &mut slots, limits)?;
    let (mut out, mut buffer) = ([0.0; 16], [0; 64]);
    for tensor in reader.tensors() {
        black_box(tensor.stats(&mut buffer)?);
    }
    let tensor = reader.tensor(name)?;
    tensor.dequant_range(black_box(3), &mut out, &mut buffer)?;
    tensor.dequant_rows(black_box(1)..black_box(2), &mut out, &mut buffer)?;
    tensor.read_into_at(black_box(5), &mut buffer)?;
    let slice = tensor.slice(&[black_box(2).into(), black_box(1..3).into()])?;
    slice.dequant_into(&mut out, &mut buffer)?;
    slice.read_into(&mut buffer)
}

/// Plans and writes a file, and encodes numbers.
fn plan(names: [&str; 3], dtype: Dtype) -> Result<usize, Error> {
    let (mut sink, mut out) = (Sink(0), [0; 256]);
    let shape = black_box([2, 3]);
    let mut tensors = names.map(|name| PlanTensor::new(name, dtype, Shape::new(&shape)));
    let mut metadata = [(names[0], names[1]), (names[1], names[2])];
    let mut options = PlanOptions::DEFAULT;
    options.align = black_box(64);
    options.order = black_box(Order::Given);
    match Plan::new(&mut tensors, Some(&mut metadata), &options) {
        Ok(plan) => {
            let _ = plan.write_header(&mut sink);
            sink.0 = sink.0.wrapping_add(plan.copy_to(&mut out)?);
        }
        Err(error) => drop(write!(sink, "{error}")),
    }
    encode::from_f64(dtype, black_box(&[1.0; 7]), out.get_mut(..black_box(14)).unwrap_or_default())?;
    encode::from_f32(dtype, black_box(&[1.0; 7]), out.get_mut(..black_box(14)).unwrap_or_default())?;
    encode::from_i64(dtype, black_box(&[1; 7]), out.get_mut(..black_box(14)).unwrap_or_default())?;
    Ok(sink.0)
}

/// Reads a shard index.
fn index(text: &[u8], name: &str) -> Result<usize, Error> {
    let mut sink = Sink(0);
    let index = Index::parse(text, &black_box(IndexLimits::DEFAULT))?;
    for (tensor, shard) in &index {
        let _ = write!(sink, "{tensor} {shard} {:?}", index.total_size());
    }
    let _ = write!(sink, "{}", index.shard_of(name)?);
    Ok(sink.0)
}

#[no_mangle]
pub extern "C" fn main() -> i32 {
    let mut slots = [TensorSlot::EMPTY; 16];
    let bytes = black_box(b"\x02\0\0\0\0\0\0\0{}".as_slice());
    let name = black_box("name");
    let limits = black_box(Limits::TIGHT);
    let mut sink = Sink(0);
    for result in [
        file(bytes, &limits, &mut slots, name).map(drop),
        header(bytes, black_box(bytes), black_box(bytes), &limits, name),
        dequant::dequant_range(black_box(Dtype::F16), bytes, black_box(1), &mut [0.0; 2]),
        TensorView::new(black_box(Dtype::F4), black_box(&[3, 4]), bytes).map(drop),
        source(&Flash(bytes), &limits, name).or_else(|error| error.invalid().map_or(Ok(()), Err)),
        plan([name, black_box("a"), black_box("b")], black_box(Dtype::F16)).map(drop),
        index(bytes, name).map(drop),
    ] {
        if let Err(error) = result {
            let _ = write!(sink, "{error} {} {}", error.in_file(bytes), error.kind().name());
        }
    }
    i32::from(black_box(sink.0) == 0)
}
