//! Builds headers that are nearly valid: mostly contiguous offsets, duplicate names, dtypes and
//! shapes that nearly fit, in many spellings. See `whole` for the checks.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use safetensors_zero::Dtype;

#[path = "../../tests/support/file.rs"]
#[allow(dead_code)]
mod file;
#[path = "../../tests/support/paths.rs"]
mod paths;
#[path = "../../tests/support/reference.rs"]
mod reference;
mod whole;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    members: Vec<Member<'a>>,
    /// White space between tokens.
    space: Space,
    /// Shuffles the members.
    order: Vec<u8>,
    /// The difference between the data's length and the one that the entries need.
    data_delta: Option<i8>,
    /// Text after the header's object.
    tail: &'a str,
}

#[derive(Debug, Arbitrary)]
enum Member<'a> {
    Tensor(Tensor<'a>),
    Metadata(Vec<(Name<'a>, &'a str)>),
    NullMetadata,
    /// Any text.
    Text(&'a str),
}

#[derive(Debug, Arbitrary)]
struct Tensor<'a> {
    name: Name<'a>,
    dtype: u8,
    shape: Vec<Dimension>,
    offsets: Offsets,
    /// Rotates the keys, to choose the first.
    first_key: u8,
    unknown: Option<(Name<'a>, Value<'a>)>,
}

#[derive(Debug, Arbitrary)]
enum Name<'a> {
    Number(u8),
    Escaped(u8),
    Text(&'a str),
    Special(u8),
}

#[derive(Debug, Arbitrary)]
enum Dimension {
    Small(u8),
    Large(u64),
}

#[derive(Debug, Arbitrary)]
enum Offsets {
    /// Directly after the previous tensor.
    Next,
    Moved(i8, i8),
    Raw(u64, u64),
}

#[derive(Debug, Arbitrary)]
enum Value<'a> {
    Nested(u8),
    String(&'a str),
    Number(f64),
    Text(&'a str),
}

#[derive(Debug, Arbitrary)]
enum Space {
    None,
    Spaces,
    Lines,
}

const SPECIAL: [&str; 6] = ["__metadata__", "dtype", "shape", "data_offsets", "", "a\u{0}\"\\"];

fn name(name: &Name<'_>) -> String {
    match name {
        Name::Number(number) => format!("\"{}\"", number % 8),
        Name::Escaped(number) => format!("\"\\u{:04x}\"", u32::from(b'0') + u32::from(number % 8)),
        Name::Text(text) => serde_json::to_string(text).unwrap(),
        Name::Special(at) => {
            serde_json::to_string(SPECIAL[usize::from(*at) % SPECIAL.len()]).unwrap()
        }
    }
}

fn value(value: &Value<'_>) -> String {
    match value {
        Value::Nested(depth) => {
            let depth = usize::from(*depth);
            format!("{}{}", "[".repeat(depth), "]".repeat(depth))
        }
        Value::String(text) => serde_json::to_string(text).unwrap(),
        Value::Number(number) => format!("{number:e}"),
        Value::Text(text) => (*text).to_owned(),
    }
}

/// Returns an entry, and the offset where the next tensor should begin.
fn tensor(tensor: &Tensor<'_>, begin: u64, space: &str) -> (String, u64) {
    let dtype = Dtype::ALL[usize::from(tensor.dtype) % Dtype::ALL.len()];
    let shape: Vec<u64> = tensor
        .shape
        .iter()
        .map(|dimension| match dimension {
            Dimension::Small(size) => u64::from(size % 6),
            Dimension::Large(size) => *size,
        })
        .collect();
    let elements = shape.iter().fold(1_u64, |product, size| product.saturating_mul(*size));
    let bytes = (u128::from(elements) * dtype.bitsize() as u128 / 8) as u64;
    let end = begin.saturating_add(bytes);
    let (from, to) = match tensor.offsets {
        Offsets::Next => (begin, end),
        Offsets::Moved(a, b) => {
            (begin.saturating_add_signed(a.into()), end.saturating_add_signed(b.into()))
        }
        Offsets::Raw(from, to) => (from, to),
    };
    let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
    let mut members = vec![
        format!("\"dtype\":{space}\"{dtype}\""),
        format!("\"shape\":[{}]", shape.join(&format!(",{space}"))),
        format!("\"data_offsets\"{space}:[{from},{to}]"),
    ];
    if let Some((key, unknown)) = &tensor.unknown {
        members.push(format!("{}:{}", name(key), value(unknown)));
    }
    let first = usize::from(tensor.first_key) % members.len();
    members.rotate_left(first);
    let members = members.join(&format!("{space},{space}"));
    (format!("{}{space}:{{{members}{space}}}", name(&tensor.name)), end)
}

fn build(input: &Input<'_>) -> Vec<u8> {
    let space = match input.space {
        Space::None => "",
        Space::Spaces => " ",
        Space::Lines => "\r\n\t",
    };
    let mut end = 0;
    let mut members: Vec<String> = input
        .members
        .iter()
        .map(|member| match member {
            Member::Tensor(spec) => {
                let (text, next) = tensor(spec, end, space);
                end = next;
                text
            }
            Member::Metadata(pairs) => {
                let pairs: Vec<String> = pairs
                    .iter()
                    .map(|(key, value)| {
                        format!("{}:{}", name(key), serde_json::to_string(value).unwrap())
                    })
                    .collect();
                format!("\"__metadata__\":{{{}}}", pairs.join(","))
            }
            Member::NullMetadata => "\"__metadata__\":null".to_owned(),
            Member::Text(text) => (*text).to_owned(),
        })
        .collect();
    for (i, j) in input.order.iter().enumerate().take(members.len()) {
        let j = usize::from(*j) % members.len();
        members.swap(i, j);
    }
    let header = format!("{space}{{{}}}{}", members.join(&format!(",{space}")), input.tail);
    let end = end.min(1 << 16).saturating_add_signed(input.data_delta.unwrap_or(0).into());
    file::zeros(header, end as usize)
}

fuzz_target!(init: whole::let_the_reference_panic(), |input: Input<'_>| {
    whole::check(&build(&input));
});
