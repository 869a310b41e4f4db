//! Promise: every bound in `Limits` is exact: a file at the bound is accepted, and one beyond it is
//! rejected. Every rule rejects exactly the files that break it.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use safetensors_zero::{
    Dtype, DtypeSet, ErrorKind, Limits, SafeTensors, StringKind, TensorSlot, TensorView,
};
use support::{file, paths};

fn kind(file: &[u8], limits: &Limits) -> Option<ErrorKind> {
    paths::read(file, limits).err().map(|error| error.kind())
}

/// Returns the preset with a change applied.
fn with(mut limits: Limits, change: impl FnOnce(&mut Limits)) -> Limits {
    change(&mut limits);
    limits
}

/// A file whose header has these members, without data.
fn members(members: &[String]) -> Vec<u8> {
    file::file(format!("{{{}}}", members.join(",")), &[])
}

fn empty(name: &str) -> String {
    format!(r#""{name}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#)
}

fn metadata(entries: impl Iterator<Item = (String, String)>) -> String {
    let entries: Vec<String> = entries.map(|(k, v)| format!(r#""{k}":"{v}""#)).collect();
    format!(r#""__metadata__":{{{}}}"#, entries.join(","))
}

/// Checks both sides of a bound. `make(0)` returns a file at the bound, `make(1)` one beyond it.
fn bound(limits: &Limits, make: impl Fn(usize) -> Vec<u8>, beyond: ErrorKind) {
    assert_eq!(kind(&make(0), limits), None, "at the bound of {beyond:?}");
    assert_eq!(kind(&make(1), limits), Some(beyond));
}

const PRESETS: [Limits; 3] = [Limits::DEFAULT, Limits::STRICT, Limits::TIGHT];

/// Case `run-header-132mb`: a header like that of a published model, with 1.29 million tensors. It
/// exceeds the default limit, so the limit has to be raised.
#[test]
#[cfg(all(feature = "alloc", target_pointer_width = "64"))]
fn a_132_mb_header_parses_with_a_raised_limit() {
    use std::fmt::Write;
    const LEN: u64 = 132_095_296;
    let mut header = String::with_capacity(LEN as usize);
    header.push('{');
    for i in 0..1_290_000 {
        let comma = if i == 0 { "" } else { "," };
        let end = i + 1;
        let _ = write!(
            header,
            r#"{comma}"model.layers.{i:08}.mlp.experts.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{end}]}}"#
        );
    }
    header.push('}');
    assert!((100_000_000..LEN).contains(&(header.len() as u64)));
    header.push_str(&" ".repeat(LEN as usize - header.len()));
    let read = |limits: &Limits| {
        let header = safetensors_zero::Header::new(header.as_bytes(), 1_290_000, limits)?;
        let table = safetensors_zero::Table::parse_owned(&header)?;
        Ok::<_, safetensors_zero::Error>((
            table.len(),
            table.info("model.layers.01234567.mlp.experts.weight")?.data_offsets,
        ))
    };
    let limit = Limits::DEFAULT.header_bytes;
    let error = read(&Limits::DEFAULT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HeaderTooLarge { len: LEN, limit });
    let raised = with(Limits::DEFAULT, |limits| limits.header_bytes = LEN);
    assert_eq!(read(&raised), Ok((1_290_000, (1_234_567, 1_234_568))));
}

#[test]
fn header_size_is_limited() {
    for preset in PRESETS {
        // Only TIGHT's own limit is small enough to test with real headers.
        let small = with(preset, |limits| limits.header_bytes = 300);
        for limits in [small, Limits::TIGHT] {
            let limit = limits.header_bytes;
            bound(
                &limits,
                |more| file::file("{}".to_owned() + &" ".repeat(limit as usize + more - 2), &[]),
                ErrorKind::HeaderTooLarge { len: limit + 1, limit },
            );
        }
    }
    // Positions have to fit in 32 bits, however high the limit is.
    let mut all = Limits::DEFAULT;
    all.header_bytes = u64::MAX;
    let huge = u64::from(u32::MAX).to_le_bytes();
    // This includes positions in the file, which are 8 higher than those in the header.
    let limit = u64::from(u32::MAX) - 9;
    let expected = ErrorKind::HeaderTooLarge { len: limit + 9, limit };
    assert_eq!(kind(&huge, &all), Some(expected));
}

#[test]
fn the_default_header_limit_is_100_million_bytes() {
    let frame = |len: u64| {
        let file_len = len + 8;
        safetensors_zero::Frame::parse(&len.to_le_bytes(), file_len, &Limits::DEFAULT)
    };
    assert_eq!(frame(100_000_000).map(|frame| frame.header_len()), Ok(100_000_000));
    let kind = frame(100_000_001).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::HeaderTooLarge { len: 100_000_001, limit: 100_000_000 });
}

#[test]
fn depth_is_limited() {
    for (mut limits, depth) in [(Limits::DEFAULT, 128), (Limits::STRICT, 128), (Limits::TIGHT, 8)] {
        assert_eq!(limits.depth, depth);
        limits.unknown_keys = true;
        for (open, close) in [("[", "]"), (r#"{"k":"#, "}")] {
            let nested = |more: usize| {
                let levels = usize::from(depth) - 2 + more;
                let value = open.repeat(levels) + "0" + &close.repeat(levels);
                let entry = format!(r#""x":{value},"dtype":"U8","shape":[0],"data_offsets":[0,0]"#);
                members(&[format!(r#""t":{{{entry}}}"#)])
            };
            bound(&limits, nested, ErrorKind::TooDeep { limit: depth });
        }
    }
}

#[test]
fn tensor_count_is_limited() {
    let make = |limit: u32| {
        move |more: usize| {
            let tensors: Vec<String> =
                (0..limit as usize + more).map(|i| empty(&i.to_string())).collect();
            members(&tensors)
        }
    };
    for preset in PRESETS {
        for tensors in [0, 1, 7] {
            let limits = with(preset, |limits| limits.tensors = tensors);
            bound(&limits, make(tensors), ErrorKind::TooManyTensors { limit: tensors });
        }
    }
    let limit = Limits::TIGHT.tensors;
    assert_eq!(limit, 50_000);
    bound(&Limits::TIGHT, make(limit), ErrorKind::TooManyTensors { limit });
}

#[test]
fn metadata_entries_are_limited() {
    let make = |limit: u32| {
        move |more: usize| {
            let entries = (0..limit as usize + more).map(|i| (i.to_string(), String::new()));
            members(&[metadata(entries)])
        }
    };
    for preset in PRESETS {
        for metadata_entries in [0, 1, 7] {
            let limits = with(preset, |limits| limits.metadata_entries = metadata_entries);
            let limit = metadata_entries;
            bound(&limits, make(limit), ErrorKind::TooManyMetadataEntries { limit });
        }
    }
    let limit = Limits::TIGHT.metadata_entries;
    assert_eq!(limit, 50_000);
    bound(&Limits::TIGHT, make(limit), ErrorKind::TooManyMetadataEntries { limit });
}

#[test]
fn string_lengths_are_limited() {
    let too_long =
        |what, limit: u32| ErrorKind::StringTooLong { what, len: u64::from(limit) + 1, limit };
    // A string's length counts its decoded bytes, however its characters are spelled.
    for (spelling, bytes) in [("n", 1), (r"\u006e", 1), (r"\n", 1), ("é", 2), (r"\u00e9", 2)] {
        let string = move |limit: u32, more: usize| {
            let len = limit as usize + more;
            spelling.repeat(len / bytes) + &"x".repeat(len % bytes)
        };
        for (preset, limits) in [
            (
                false,
                with(Limits::DEFAULT, |limits| {
                    limits.name_bytes = 20;
                    limits.string_bytes = 30;
                    limits.metadata_value_bytes = 40;
                }),
            ),
            (true, Limits::TIGHT),
        ] {
            if preset {
                assert_eq!((limits.name_bytes, limits.string_bytes), (1024, 1024));
                assert_eq!(limits.metadata_value_bytes, 65_536);
            }
            let name = |more| members(&[empty(&string(limits.name_bytes, more))]);
            bound(&limits, name, too_long(StringKind::Name, limits.name_bytes));
            let key = |more| {
                let pair = (string(limits.string_bytes, more), String::new());
                members(&[metadata([pair].into_iter())])
            };
            bound(&limits, key, too_long(StringKind::Property, limits.string_bytes));
            let value = |more| {
                let pair = (String::new(), string(limits.metadata_value_bytes, more));
                members(&[metadata([pair].into_iter())])
            };
            let expected = too_long(StringKind::MetadataValue, limits.metadata_value_bytes);
            bound(&limits, value, expected);

            let limits = with(limits, |limits| limits.unknown_keys = true);
            let expected = too_long(StringKind::Property, limits.string_bytes);
            for place in [r#""STR":0"#, r#""x":"STR""#, r#""x":["STR"]"#, r#""x":{"STR":0}"#] {
                let unknown = |more| {
                    let member = place.replace("STR", &string(limits.string_bytes, more));
                    let rest = r#""dtype":"U8","shape":[0],"data_offsets":[0,0]"#;
                    members(&[format!(r#""t":{{{member},{rest}}}"#)])
                };
                bound(&limits, unknown, expected);
            }
        }
    }
    // The limit for property strings applies to dtypes too, before they are looked up.
    let limits = with(Limits::DEFAULT, |limits| limits.string_bytes = 12);
    let dtype = |len: usize| {
        let dtype = "U".repeat(len);
        members(&[format!(r#""t":{{"dtype":"{dtype}","shape":[0],"data_offsets":[0,0]}}"#)])
    };
    assert_eq!(kind(&dtype(12), &limits), Some(ErrorKind::UnknownDtype));
    assert_eq!(kind(&dtype(13), &limits), Some(too_long(StringKind::Property, 12)));
}

#[test]
fn rank_is_limited() {
    let make = |limit: u32| {
        move |more: usize| {
            let shape = vec!["1"; limit as usize + more].join(",");
            file::zeros(
                format!(r#"{{"t":{{"dtype":"U8","shape":[{shape}],"data_offsets":[0,1]}}}}"#),
                1,
            )
        }
    };
    assert_eq!((Limits::STRICT.rank, Limits::TIGHT.rank), (64, 16));
    for limits in [Limits::STRICT, Limits::TIGHT, with(Limits::DEFAULT, |limits| limits.rank = 0)] {
        let limit = limits.rank;
        bound(&limits, make(limit), ErrorKind::RankTooLarge { limit });
    }
    assert_eq!(kind(&make(100_000)(0), &Limits::DEFAULT), None);
}

#[test]
fn integers_are_limited() {
    let sized = |len: u64| {
        let header =
            format!(r#"{{"t":{{"dtype":"U8","shape":[{len}],"data_offsets":[0,{len}]}}}}"#);
        file::file(header, &[])
    };
    for preset in [Limits::STRICT, Limits::TIGHT] {
        let limits = with(preset, |limits| limits.dtypes = DtypeSet::ALL);
        let limit = limits.integer;
        assert_eq!(limit, (1 << 48) - 1);
        // The missing data is detected after the numbers are checked.
        let truncated = ErrorKind::DataTruncated { needed: limit, available: 0 };
        assert_eq!(kind(&sized(limit), &limits), Some(truncated));
        let too_large = ErrorKind::IntegerTooLarge { value: limit + 1, limit };
        assert_eq!(kind(&sized(limit + 1), &limits), Some(too_large));
        // The limit applies to dimensions and to offsets separately.
        let f4 = format!(
            r#"{{"t":{{"dtype":"F4","shape":[{}],"data_offsets":[0,{}]}}}}"#,
            1_u64 << 48,
            1_u64 << 47
        );
        assert_eq!(kind(&file::file(f4, &[]), &limits), Some(too_large));
        let offset =
            format!(r#"{{"t":{{"dtype":"U8","shape":[0],"data_offsets":[{0},{0}]}}}}"#, limit + 1);
        assert_eq!(kind(&file::file(offset, &[]), &limits), Some(too_large));
    }
    let empty = |dimension: u64| {
        let header =
            format!(r#"{{"t":{{"dtype":"U8","shape":[0,{dimension}],"data_offsets":[0,0]}}}}"#);
        file::file(header, &[])
    };
    for limits in [Limits::STRICT, Limits::TIGHT] {
        let limit = limits.empty_dimension;
        assert_eq!(limit, (1 << 63) - 1);
        assert_eq!(kind(&empty(limit), &limits), None);
        let too_large = ErrorKind::IntegerTooLarge { value: limit + 1, limit };
        assert_eq!(kind(&empty(limit + 1), &limits), Some(too_large));
    }
    assert_eq!(kind(&empty(u64::MAX), &Limits::DEFAULT), None);
    let most = ErrorKind::DataTruncated { needed: u64::MAX, available: 0 };
    assert_eq!(kind(&sized(u64::MAX), &Limits::DEFAULT), Some(most));
}

#[test]
fn dtypes_are_limited() {
    for dtype in Dtype::ALL {
        let file = file::zeros(
            format!(
                r#"{{"t":{{"dtype":"{dtype}","shape":[8],"data_offsets":[0,{}]}}}}"#,
                dtype.bitsize()
            ),
            dtype.bitsize(),
        );
        assert_eq!(kind(&file, &Limits::DEFAULT), None);
        assert_eq!(kind(&file, &Limits::STRICT), None);
        let small =
            dtype.bitsize() < 8 || (dtype.bitsize() == 8 && dtype.as_str().starts_with('F'));
        let rejected = small.then_some(ErrorKind::DtypeNotAccepted { dtype });
        assert_eq!(kind(&file, &Limits::TIGHT), rejected);
        let allowed =
            with(Limits::TIGHT, |limits| limits.dtypes = Limits::TIGHT.dtypes.with(dtype));
        assert_eq!(kind(&file, &allowed), None);
        let none = with(Limits::DEFAULT, |limits| limits.dtypes = DtypeSet::EMPTY);
        assert_eq!(kind(&file, &none), Some(ErrorKind::DtypeNotAccepted { dtype }));
    }
}

#[test]
fn elements_per_call_are_limited() {
    assert_eq!(Limits::TIGHT.dequant_elements, 134_217_728);
    let file = file::zeros(format!("{{{}}}", file::u8_entry("t", 0, 10)), 10);
    let limits = with(Limits::TIGHT, |limits| limits.dequant_elements = 4);
    let mut slots = [TensorSlot::EMPTY; 1];
    let tensors = SafeTensors::parse_with(&file, &mut slots, &limits).unwrap();
    let rejected = |count| Err(ErrorKind::TooManyElements { count, limit: 4 });
    let calls = |view: TensorView<'_>| {
        let mut out = [1.0; 10];
        let kind = |result: Result<(), safetensors_zero::Error>| result.map_err(|e| e.kind());
        assert_eq!(kind(view.dequant_range(0, &mut out[..4])), Ok(()));
        assert_eq!(kind(view.dequant_rows(3..7, &mut out[..4])), Ok(()));
        assert_eq!(kind(view.dequant_range(0, &mut out[..5])), rejected(5));
        assert_eq!(kind(view.dequant_rows(3..8, &mut out[..5])), rejected(5));
        assert_eq!(kind(view.dequant_into(&mut out)), rejected(10));
        let slice = view.slice(&[(2..7).into()]).unwrap();
        assert_eq!(kind(slice.dequant_into(&mut out[..5])), rejected(5));
        assert_eq!(out[4..], [1.0; 6]);
    };
    calls(tensors.tensor("t").unwrap());
    calls(tensors.iter().next().unwrap().1);
    let (header, data) = safetensors_zero::Header::of_file(&file, &limits).unwrap();
    calls(header.view(&header.find("t").unwrap().info, data).unwrap());
}

#[test]
fn each_rule_can_be_relaxed() {
    let entry = empty("t");
    let around = |before: &str, after: &str| file::file(format!("{before}{{{entry}}}{after}"), &[]);
    let unknown =
        file::file(r#"{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":[1]}}"#, &[]);
    let null = file::file(r#"{"__metadata__":null}"#, &[]);
    type Case = (Vec<u8>, ErrorKind, fn(&mut Limits));
    let cases: [Case; 6] = [
        (around(" ", ""), ErrorKind::LeadingWhitespace, |limits| limits.leading_whitespace = true),
        (around("\n\t", ""), ErrorKind::LeadingWhitespace, |limits| {
            limits.leading_whitespace = true
        }),
        (around("", " \n"), ErrorKind::Padding { found: b'\n' }, |limits| {
            limits.any_padding = true
        }),
        (around("", "\t "), ErrorKind::Padding { found: b'\t' }, |limits| {
            limits.any_padding = true
        }),
        (unknown, ErrorKind::UnknownKey, |limits| limits.unknown_keys = true),
        (null, ErrorKind::NullMetadata, |limits| limits.null_metadata = true),
    ];
    for (file, rejected, allow) in cases {
        assert_eq!(kind(&file, &Limits::DEFAULT), None);
        for preset in [Limits::STRICT, Limits::TIGHT] {
            assert_eq!(kind(&file, &preset), Some(rejected));
            let mut one_rule_off = preset;
            allow(&mut one_rule_off);
            assert_eq!(kind(&file, &one_rule_off), None);
        }
    }
    for preset in PRESETS {
        assert_eq!(kind(&around("", "    "), &preset), None);
        assert_eq!(kind(&around("", " \0"), &preset), Some(ErrorKind::NulPadding));
    }
    assert_eq!(Limits::default(), Limits::DEFAULT);
}
