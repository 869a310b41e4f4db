//! Promise: no public function of the core can panic, whatever its arguments are.
//!
//! A pointer to each function leaves this program by `black_box`, so the compiler has to keep all of
//! its paths. `tests/public_api/list.py` checks that none is missing. Generic functions are called by
//! `main.rs` too; here they have one instance.

#![no_std]
#![no_main]

mod judge;

use core::fmt::{Debug, Display};
use core::hash::{Hash, Hasher};
use core::hint::black_box;
use core::ops::{
    ControlFlow, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};
use core::str::FromStr;

use safetensors_zero::slice::{Runs, SliceIter};
use safetensors_zero::{
    dequant, encode, stats, Chars, Count, Dimensions, Dtype, DtypeSet, EndOfSource, Error,
    ErrorInFile, ErrorKind, Expected, Field, Foreign, Frame, Header, Index, IndexIter, IndexLimits,
    JsonType, Key, Limits, Metadata, MetadataIter, ParseDtypeError, Plan, PlanError, PlanOptions,
    PlanTensor, ReadError, Reader, SafeTensors, Scan, Scanned, Shape, ShardName, ShardNameFault,
    Slice, SliceReader, SliceView, Source, StringKind, Table, TableIter, TensorIndexer, TensorInfo,
    TensorReader, TensorSlot, TensorView, TensorsIter, Text,
};

/// A source that is not in memory, as far as the compiler knows.
struct Flash;

impl Source for Flash {
    type Error = u8;

    fn len(&self) -> Result<u64, u8> {
        black_box(Ok(1 << 40))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), u8> {
        black_box((offset, buffer));
        black_box(Ok(()))
    }
}

/// Lets a pointer to a function escape.
macro_rules! keep {
    ($function:expr) => {
        black_box($function as *const ());
    };
}

/// A hasher that does nothing.
struct Sink;

impl Hasher for Sink {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        black_box(bytes);
    }
}

type Each = fn(&[u8]) -> ControlFlow<()>;

fn keep_all() {
    keep!(DtypeSet::contains as fn(_, _) -> _);
    keep!(DtypeSet::difference as fn(_, _) -> _);
    keep!(DtypeSet::of as fn(_) -> _);
    keep!(DtypeSet::with as fn(_, _) -> _);
    keep!(Count::slots as fn(_) -> _);
    keep!(Dtype::as_str as fn(_) -> _);
    keep!(Dtype::bitsize as fn(_) -> _);
    keep!(Dtype::has_f32 as fn(_) -> _);
    keep!(Error::byte as fn(_) -> _);
    keep!(Error::kind as fn(_) -> _);
    keep!(Error::tensor as fn(_) -> _);
    keep!(ErrorInFile::error as fn(_) -> _);
    keep!(ErrorInFile::tensor as fn(_) -> _);
    keep!(ErrorKind::name as fn(_) -> _);
    keep!(Frame::data_len as fn(_) -> _);
    keep!(Frame::data_start as fn(_) -> _);
    keep!(Frame::header_len as fn(_) -> _);
    keep!(Frame::header_range as fn(_) -> _);
    keep!(Frame::parse as fn(_, _, _) -> _);
    keep!(Header::count as fn(_) -> _);
    keep!(Header::data_len as fn(_) -> _);
    keep!(Header::data_start as fn(_) -> _);
    keep!(Header::find as fn(_, _) -> _);
    keep!(Header::new as fn(_, _, _) -> _);
    keep!(Header::of_file as fn(_, _) -> _);
    keep!(Header::scan as fn(_) -> _);
    keep!(Header::text as fn(_) -> _);
    keep!(Header::view as fn(_, _, _) -> _);
    keep!(Index::is_empty as fn(_) -> _);
    keep!(Index::iter as fn(_) -> _);
    keep!(Index::len as fn(_) -> _);
    keep!(Index::parse as fn(_, _) -> _);
    keep!(Index::shard_of as fn(_, _) -> _);
    keep!(Index::total_size as fn(_) -> _);
    keep!(Metadata::get as fn(_, _) -> _);
    keep!(Metadata::is_empty as fn(_) -> _);
    keep!(Metadata::iter as fn(_) -> _);
    keep!(Metadata::len as fn(_) -> _);
    keep!(Plan::copy_to as fn(_, _) -> _);
    keep!(Plan::data_len as fn(_) -> _);
    keep!(Plan::data_start as fn(_) -> _);
    keep!(Plan::file_len as fn(_) -> _);
    keep!(Plan::frame as fn(_) -> _);
    keep!(Plan::header_len as fn(_) -> _);
    keep!(Plan::metadata as fn(_) -> _);
    keep!(Plan::new as fn(_, _, _) -> _);
    keep!(Plan::tensors as fn(_) -> _);
    keep!(Plan::write_header as fn(_, _) -> _);
    keep!(PlanError::kind as fn(_) -> _);
    keep!(PlanError::tensor as fn(_) -> _);
    keep!(PlanTensor::byte_len as fn(_) -> _);
    keep!(PlanTensor::data_offsets as fn(_) -> _);
    keep!(PlanTensor::dtype as fn(_) -> _);
    keep!(PlanTensor::index as fn(_) -> _);
    keep!(PlanTensor::name as fn(_) -> _);
    keep!(PlanTensor::new as fn(_, _, _) -> _);
    keep!(PlanTensor::shape as fn(_) -> _);
    keep!(ReadError::<u8>::invalid as fn(_) -> _);
    keep!(Reader::<Flash>::open as fn(_, _, _, _) -> _);
    keep!(Reader::<Flash>::source as fn(_) -> _);
    keep!(Reader::<Flash>::table as fn(_) -> _);
    keep!(Reader::<Flash>::tensor as fn(_, _) -> _);
    keep!(Reader::<Flash>::tensors as fn(_) -> _);
    keep!(SafeTensors::count as fn(_, _) -> _);
    keep!(SafeTensors::data as fn(_) -> _);
    keep!(SafeTensors::is_empty as fn(_) -> _);
    keep!(SafeTensors::iter as fn(_) -> _);
    keep!(SafeTensors::len as fn(_) -> _);
    keep!(SafeTensors::metadata as fn(_) -> _);
    keep!(SafeTensors::names as fn(_) -> _);
    keep!(SafeTensors::parse as fn(_, _) -> _);
    keep!(SafeTensors::parse_with as fn(_, _, _) -> _);
    keep!(SafeTensors::table as fn(_) -> _);
    keep!(SafeTensors::tensor as fn(_, _) -> _);
    keep!(Scan::finish as fn(_) -> _);
    keep!(Scanned::chain_checked as fn(_) -> _);
    keep!(Scanned::metadata as fn(_) -> _);
    keep!(Scanned::tensors as fn(_) -> _);
    keep!(Shape::elements as fn(_) -> _);
    keep!(Shape::iter as fn(_) -> _);
    keep!(Shape::new as fn(_) -> _);
    keep!(Shape::rank as fn(_) -> _);
    keep!(Shape::wide as fn(_) -> _);
    keep!(ShardName::chars as fn(_) -> _);
    keep!(Slice::byte_len as fn(_) -> _);
    keep!(Slice::dtype as fn(_) -> _);
    keep!(Slice::elements as fn(_) -> _);
    keep!(Slice::new as fn(_, _, _) -> _);
    keep!(Slice::runs as fn(_) -> _);
    keep!(Slice::shape as fn(_) -> _);
    keep!(SliceReader::<Flash>::byte_len as fn(_) -> _);
    keep!(SliceReader::<Flash>::dequant_into as fn(_, _, _) -> _);
    keep!(SliceReader::<Flash>::elements as fn(_) -> _);
    keep!(SliceReader::<Flash>::read_into as fn(_, _) -> _);
    keep!(SliceReader::<Flash>::shape as fn(_) -> _);
    keep!(SliceView::byte_len as fn(_) -> _);
    keep!(SliceView::copy_to as fn(_, _) -> _);
    keep!(SliceView::dequant_into as fn(_, _) -> _);
    keep!(SliceView::elements as fn(_) -> _);
    keep!(SliceView::iter as fn(_) -> _);
    keep!(SliceView::shape as fn(_) -> _);
    keep!(Table::alignment as fn(_) -> _);
    keep!(Table::data_len as fn(_) -> _);
    keep!(Table::data_start as fn(_) -> _);
    keep!(Table::header as fn(_) -> _);
    keep!(Table::info as fn(_, _) -> _);
    keep!(Table::is_empty as fn(_) -> _);
    keep!(Table::iter as fn(_) -> _);
    keep!(Table::len as fn(_) -> _);
    keep!(Table::metadata as fn(_) -> _);
    keep!(Table::names as fn(_) -> _);
    keep!(Table::nth as fn(_, _) -> _);
    keep!(Table::parse as fn(_, _) -> _);
    keep!(TensorInfo::byte_len as fn(_) -> _);
    keep!(TensorInfo::elements as fn(_) -> _);
    keep!(TensorReader::<Flash>::byte_len as fn(_) -> _);
    keep!(TensorReader::<Flash>::dequant_into as fn(_, _, _) -> _);
    keep!(TensorReader::<Flash>::dequant_range as fn(_, _, _, _) -> _);
    keep!(TensorReader::<Flash>::dequant_rows as fn(_, _, _, _) -> _);
    keep!(TensorReader::<Flash>::dtype as fn(_) -> _);
    keep!(TensorReader::<Flash>::elements as fn(_) -> _);
    keep!(TensorReader::<Flash>::file_range as fn(_) -> _);
    keep!(TensorReader::<Flash>::info as fn(_) -> _);
    keep!(TensorReader::<Flash>::name as fn(_) -> _);
    keep!(TensorReader::<Flash>::new as fn(_, _, _) -> _);
    keep!(TensorReader::<Flash>::read_into as fn(_, _) -> _);
    keep!(TensorReader::<Flash>::read_into_at as fn(_, _, _) -> _);
    keep!(TensorReader::<Flash>::row_len as fn(_) -> _);
    keep!(TensorReader::<Flash>::shape as fn(_) -> _);
    keep!(TensorReader::<Flash>::slice as fn(_, _) -> _);
    keep!(TensorReader::<Flash>::stats as fn(_, _) -> _);
    keep!(TensorView::alignment as fn(_) -> _);
    keep!(TensorView::data as fn(_) -> _);
    keep!(TensorView::dequant_into as fn(_, _) -> _);
    keep!(TensorView::dequant_range as fn(_, _, _) -> _);
    keep!(TensorView::dequant_rows as fn(_, _, _) -> _);
    keep!(TensorView::dtype as fn(_) -> _);
    keep!(TensorView::elements as fn(_) -> _);
    keep!(TensorView::name as fn(_) -> _);
    keep!(TensorView::new as fn(_, _, _) -> _);
    keep!(TensorView::row_len as fn(_) -> _);
    keep!(TensorView::shape as fn(_) -> _);
    keep!(TensorView::slice as fn(_, _) -> _);
    keep!(TensorView::stats as fn(_) -> _);
    keep!(Text::as_str as fn(_) -> _);
    keep!(Text::chars as fn(_) -> _);
    keep!(Text::is_empty as fn(_) -> _);
    keep!(Text::len as fn(_) -> _);
    keep!(Text::raw as fn(_) -> _);
    keep!(dequant::dequant_into as fn(_, _, _) -> _);
    keep!(dequant::dequant_range as fn(_, _, _, _) -> _);
    keep!(encode::from_f32 as fn(_, _, _) -> _);
    keep!(encode::from_f64 as fn(_, _, _) -> _);
    keep!(encode::from_i64 as fn(_, _, _) -> _);
    keep!(stats::Accumulator::finish as fn(_) -> _);
    keep!(stats::Accumulator::new as fn(_) -> _);
    keep!(stats::Accumulator::push as fn(_, _) -> _);
    keep!(Shape::get as fn(_, _) -> _);
    keep!(TensorView::byte_len as fn(_) -> _);
    keep!(<Shape as PartialEq<&[usize; 3]>>::eq as fn(_, _) -> _);
    keep!(Table::get as fn(_, _) -> _);
    keep!(Table::contains as fn(_, _) -> _);
    keep!(SafeTensors::get as fn(_, _) -> _);
    keep!(SafeTensors::contains as fn(_, _) -> _);
    keep!(Error::in_file as fn(_, _) -> _);
    keep!(Error::in_header as fn(_, _) -> _);
    keep!(Frame::read_from::<Flash> as fn(_, _) -> _);
    keep!(Header::read_from::<Flash> as fn(_, _, _) -> _);
    keep!(Shape::to_array::<3> as fn(_) -> _);
    keep!(TensorIndexer::stepped as fn(Range<u64>, _) -> _);
    keep!(TensorReader::<Flash>::read_pieces::<()> as fn(_, _, Each) -> _);
    keep!(SliceReader::<Flash>::read_pieces::<()> as fn(_, _, Each) -> _);
    keep!(TensorView::as_slice::<f32> as fn(_) -> _);
    keep!(Text::copy_to as fn(_, _) -> _);
}

fn keep_all_of_traits() {
    keep!(<&SliceView as IntoIterator>::into_iter as fn(_) -> _);
    keep!(<&SafeTensors as IntoIterator>::into_iter as fn(_) -> _);
    keep!(<&Table as IntoIterator>::into_iter as fn(_) -> _);
    keep!(<&Index as IntoIterator>::into_iter as fn(_) -> _);
    keep!(<&Metadata as IntoIterator>::into_iter as fn(_) -> _);
    keep!(<&Shape as IntoIterator>::into_iter as fn(_) -> _);
    keep!(<Chars as Iterator>::next as fn(_) -> _);
    keep!(<Dimensions as Debug>::fmt as fn(_, _) -> _);
    keep!(<Dimensions as Iterator>::next as fn(_) -> _);
    keep!(<Dtype as Display>::fmt as fn(_, _) -> _);
    keep!(<Dtype as FromStr>::from_str as fn(_) -> _);
    keep!(<EndOfSource as Display>::fmt as fn(_, _) -> _);
    keep!(<Error as Display>::fmt as fn(_, _) -> _);
    keep!(<ErrorInFile as Display>::fmt as fn(_, _) -> _);
    keep!(<ErrorKind as Display>::fmt as fn(_, _) -> _);
    keep!(<Expected as Display>::fmt as fn(_, _) -> _);
    keep!(<Field as Display>::fmt as fn(_, _) -> _);
    keep!(<Foreign as Display>::fmt as fn(_, _) -> _);
    keep!(<Index as Debug>::fmt as fn(_, _) -> _);
    keep!(<IndexIter as Iterator>::next as fn(_) -> _);
    keep!(<IndexIter as Iterator>::size_hint as fn(_) -> _);
    keep!(<IndexLimits as Default>::default as fn() -> _);
    keep!(<JsonType as Display>::fmt as fn(_, _) -> _);
    keep!(<Key as Display>::fmt as fn(_, _) -> _);
    keep!(<Limits as Default>::default as fn() -> _);
    keep!(<Metadata as Debug>::fmt as fn(_, _) -> _);
    keep!(<Metadata as IntoIterator>::into_iter as fn(_) -> _);
    keep!(<MetadataIter as Iterator>::next as fn(_) -> _);
    keep!(<MetadataIter as Iterator>::size_hint as fn(_) -> _);
    keep!(<ParseDtypeError as Display>::fmt as fn(_, _) -> _);
    keep!(<PlanError as Display>::fmt as fn(_, _) -> _);
    keep!(<PlanError as From<ErrorKind>>::from as fn(_) -> _);
    keep!(<PlanOptions as Default>::default as fn() -> _);
    keep!(<ReadError<u8> as Display>::fmt as fn(_, _) -> _);
    keep!(<ReadError<EndOfSource> as core::error::Error>::source as fn(_) -> _);
    keep!(<ReadError<u8> as From<Error>>::from as fn(_) -> _);
    keep!(<Runs as Iterator>::next as fn(_) -> _);
    keep!(<SafeTensors as Debug>::fmt as fn(_, _) -> _);
    keep!(<Scan as Iterator>::next as fn(_) -> _);
    keep!(<Shape as Debug>::fmt as fn(_, _) -> _);
    keep!(<Shape as Display>::fmt as fn(_, _) -> _);
    keep!(<Shape as PartialEq<&[usize]>>::eq as fn(_, _) -> _);
    keep!(<Shape as PartialEq<[usize; 3]>>::eq as fn(_, _) -> _);
    keep!(<Shape as PartialEq<[usize]>>::eq as fn(_, _) -> _);
    keep!(<Shape as PartialEq>::eq as fn(_, _) -> _);
    keep!(<Shape as IntoIterator>::into_iter as fn(_) -> _);
    keep!(<ShardName as Display>::fmt as fn(_, _) -> _);
    keep!(<ShardNameFault as Display>::fmt as fn(_, _) -> _);
    keep!(<SliceIter as Iterator>::next as fn(_) -> _);
    keep!(<SliceView as Debug>::fmt as fn(_, _) -> _);
    keep!(<StringKind as Display>::fmt as fn(_, _) -> _);
    keep!(<Table as Debug>::fmt as fn(_, _) -> _);
    keep!(<TableIter as DoubleEndedIterator>::next_back as fn(_) -> _);
    keep!(<TableIter as Iterator>::next as fn(_) -> _);
    keep!(<TableIter as Iterator>::size_hint as fn(_) -> _);
    keep!(<TensorIndexer as From<Range<u64>>>::from as fn(_) -> _);
    keep!(<TensorIndexer as From<RangeFrom<u64>>>::from as fn(_) -> _);
    keep!(<TensorIndexer as From<RangeFull>>::from as fn(_) -> _);
    keep!(<TensorIndexer as From<RangeInclusive<u64>>>::from as fn(_) -> _);
    keep!(<TensorIndexer as From<RangeTo<u64>>>::from as fn(_) -> _);
    keep!(<TensorIndexer as From<RangeToInclusive<u64>>>::from as fn(_) -> _);
    keep!(<TensorIndexer as From<u64>>::from as fn(_) -> _);
    keep!(<TensorSlot as Default>::default as fn() -> _);
    keep!(<TensorView as Debug>::fmt as fn(_, _) -> _);
    keep!(<TensorsIter as Iterator>::next as fn(_) -> _);
    keep!(<TensorsIter as Iterator>::size_hint as fn(_) -> _);
    keep!(<Text as Debug>::fmt as fn(_, _) -> _);
    keep!(<Text as Display>::fmt as fn(_, _) -> _);
    keep!(<Text as Hash>::hash::<Sink> as fn(_, _) -> _);
    keep!(<Text as Ord>::cmp as fn(_, _) -> _);
    keep!(<Text as PartialEq<&str>>::eq as fn(_, _) -> _);
    keep!(<Text as PartialEq<str>>::eq as fn(_, _) -> _);
    keep!(<Text as PartialEq>::eq as fn(_, _) -> _);
    keep!(<Text as PartialOrd>::partial_cmp as fn(_, _) -> _);
}

#[no_mangle]
pub extern "C" fn main() -> i32 {
    keep_all();
    keep_all_of_traits();
    0
}
