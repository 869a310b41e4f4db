//! Promise: an error message is one plain sentence that says what is wrong, where, and in which
//! tensor. Its kind and the numbers in it are stable.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use safetensors_zero::{
    Dtype, Error, ErrorKind, Frame, Header, Limits, SafeTensors, TensorSlot, TensorView,
};
use support::file::{self, u8_entry};

fn parse(file: &[u8], limits: &Limits) -> Error {
    let mut slots = [TensorSlot::EMPTY; 8];
    SafeTensors::parse_with(file, &mut slots, limits).unwrap_err()
}

/// Returns the error message for a file.
fn says(file: &[u8], limits: &Limits) -> String {
    parse(file, limits).in_file(file).to_string()
}

/// Returns the error message for a file whose entry `t` has these fields.
fn entry(fields: &str) -> String {
    let file = file::zeros(format!(r#"{{"t":{{{fields}}}}}"#), 4);
    says(&file, &Limits::DEFAULT)
}

#[test]
fn frame_and_header_text_messages() {
    let cases: [(&[u8], &str); 12] = [
        (b"", "the file has 0 bytes, too few for the 8-byte header length (byte 0)"),
        (b"\x01\0\0", "the file has 3 bytes, too few for the 8-byte header length (byte 0)"),
        (b"\0\0\0\0\0\0\0\0", "the header length is 0 (byte 0)"),
        (b"\x01\xe1\xf5\x05\0\0\0\0{}", "the header length is 100000001, above the limit of 100000000 (byte 0)"),
        (b"\x09\0\0\0\0\0\0\0{\"a\":", "the file is truncated: it has 5 of 9 header bytes (byte 0)"),
        (b"version https://git-lfs.github.com/spec/v1", "not a safetensors file: it looks like a Git LFS pointer; fetch the file with `git lfs pull` (byte 0)"),
        (b"\x05\0\0\0\0\0\0\0{\"\xff\"}", "the JSON text is not valid UTF-8 (byte 10)"),
        (b"\x02\0\0\0\0\0\0\0[]", "expected `{` at the start of the header, found `[` (byte 8)"),
        (b"\x05\0\0\0\0\0\0\0\xef\xbb\xbf{}", "expected `{` at the start of the header, found 0xef, as in a byte order mark (byte 8)"),
        (b"\x03\0\0\0\0\0\0\0{}\0", "the header is padded with NUL bytes instead of spaces (byte 10)"),
        (b"\x03\0\0\0\0\0\0\0{}}", "found `}` after the end of the JSON object (byte 10)"),
        (b"\x02\0\0\0\0\0\0\0{}1234", "the data has 4 bytes, but the last tensor ends at byte 0 (byte 10)"),
    ];
    for (file, sentence) in cases {
        assert_eq!(says(file, &Limits::DEFAULT), sentence);
    }
    let strict = |header: &str| says(&file::file(header, &[]), &Limits::STRICT);
    assert_eq!(
        strict(" {}"),
        "expected `{` at the start of the header, found white space (byte 8)"
    );
    assert_eq!(
        strict("{}\t"),
        "the header is padded with the byte 0x09 instead of spaces (byte 10)"
    );
    assert_eq!(
        strict(r#"{"__metadata__":null}"#),
        "the metadata must be an object, not null (byte 24)"
    );
    // A zip archive large enough that its first 8 bytes are a possible header length.
    let mut zip = b"PK\x03\x04\0\0\0\0not JSON".to_vec();
    zip.resize(0x0403_4b50 + 8, 0);
    let sentence =
        "not a safetensors file: it looks like a zip archive, such as a PyTorch file (byte 0)";
    assert_eq!(says(&zip, &Limits::DEFAULT), sentence);
}

#[test]
fn json_messages() {
    let cases = [
        ("", "tensor \"t\": the entry has no `dtype` (byte 13)"),
        (r#""dtype":"U8","#, "tensor \"t\": expected a key in quotes, found `}` (byte 27)"),
        (r#""dtype" "U8""#, "tensor \"t\": expected `:`, found `\"` (byte 22)"),
        (r#""dtype":"U8" 1"#, "tensor \"t\": expected `,` or `}`, found `1` (byte 27)"),
        (r#""shape":[1 2]"#, "tensor \"t\": expected `,` or `]`, found `2` (byte 25)"),
        (r#""x":"\q""#, "tensor \"t\": invalid escape in a string (byte 19)"),
        (r#""x":"\ud800""#, "tensor \"t\": unpaired surrogate in a string (byte 19)"),
        (r#""x":"\u00g0""#, "tensor \"t\": expected four hexadecimal digits, found `g` (byte 23)"),
        ("\"x\":\"a\nb\"", "tensor \"t\": found the byte 0x0a unescaped in a string (byte 20)"),
        (r#""x":tru"#, "tensor \"t\": expected `true`, `false` or `null`, found `t` (byte 18)"),
        (r#""x":01"#, "tensor \"t\": invalid JSON number (byte 18)"),
        (r#""x":1e999"#, "tensor \"t\": number out of range for a 64-bit float (byte 18)"),
        (r#""x":#"#, "tensor \"t\": expected a value, found `#` (byte 18)"),
    ];
    for (fields, sentence) in cases {
        assert_eq!(entry(fields), sentence);
    }
    let cut = |header: &str| says(&file::file(header, &[]), &Limits::DEFAULT);
    assert_eq!(cut("{"), "expected a key in quotes, found the end of the JSON text (byte 9)");
    assert_eq!(
        cut("{\"a"),
        "expected the quote that ends a string, found the end of the JSON text (byte 11)"
    );
    assert_eq!(cut("  "), "expected `{`, found the end of the JSON text (byte 10)");
    assert_eq!(
        cut("{\"a\":{\"shape\":[1."),
        "tensor \"a\": expected a digit, found the end of the JSON text (byte 25)"
    );
    let deep = format!(r#""x":{}"#, "[".repeat(200));
    assert_eq!(entry(&deep), "tensor \"t\": values are nested deeper than 128 levels (byte 144)");
}

#[test]
fn entry_messages() {
    let cases = [
        (r#""dtype":"F32","shape":[1]"#, "tensor \"t\": the entry has no `data_offsets` (byte 13)"),
        (r#""dtype":"F32","dtype":"F32""#, "tensor \"t\": the entry has `dtype` twice (byte 29)"),
        (r#""dtype":17"#, "tensor \"t\": dtype must be a string, not a number (byte 22)"),
        (r#""shape":null"#, "tensor \"t\": shape must be an array, not null (byte 22)"),
        (
            r#""shape":[true]"#,
            "tensor \"t\": a dimension must be a number, not true or false (byte 23)",
        ),
        (
            r#""shape":[-1]"#,
            "tensor \"t\": a dimension must be a natural number in plain digits (byte 23)",
        ),
        (
            r#""shape":[18446744073709551616]"#,
            "tensor \"t\": a dimension is above 18446744073709551615 (byte 23)",
        ),
        (
            r#""shape":[4294967296,4294967296]"#,
            "tensor \"t\": the shape's size does not fit in 64 bits (byte 22)",
        ),
        (
            r#""data_offsets":{}"#,
            "tensor \"t\": data_offsets must be an array, not an object (byte 29)",
        ),
        (
            r#""data_offsets":[0,1.5]"#,
            "tensor \"t\": an offset must be a natural number in plain digits (byte 32)",
        ),
        (
            r#""data_offsets":[0]"#,
            "tensor \"t\": data_offsets must hold two numbers, begin and end (byte 29)",
        ),
        (
            r#""data_offsets":[4,0]"#,
            "tensor \"t\": data_offsets 4..0 end before they begin (byte 29)",
        ),
        (r#""dtype":"float32""#, "tensor \"t\": unknown dtype: \"float32\" (byte 23)"),
        (
            r#""dtype":"F4","shape":[3],"data_offsets":[0,2]"#,
            "tensor \"t\": 3 elements of F4 do not fill whole bytes (byte 35)",
        ),
        (
            r#""dtype":"F32","shape":[2],"data_offsets":[0,4]"#,
            "tensor \"t\": data_offsets 0..4 hold 4 bytes, but 2 elements of F32 need 8 (byte 55)",
        ),
    ];
    for (fields, sentence) in cases {
        assert_eq!(entry(fields), sentence);
    }
    let not_object = file::file(r#"{"t":["F32"]}"#, &[]);
    assert_eq!(
        says(&not_object, &Limits::DEFAULT),
        "tensor \"t\": the entry must be an object, not an array (byte 13)"
    );
    let with_strides = file::file(r#"{"t":{"strides":[1]}}"#, &[]);
    assert_eq!(
        says(&with_strides, &Limits::STRICT),
        "tensor \"t\": the entry has an unknown key: \"strides\" (byte 15)"
    );
}

#[test]
fn messages_about_several_entries() {
    let header = |members: &[String], len| file::zeros(format!("{{{}}}", members.join(",")), len);
    let (a, b) = (u8_entry("a", 0, 4), u8_entry("b", 4, 4));
    let cases = [
        (header(&[a.clone(), u8_entry("b", 6, 2)], 8), "tensor \"b\": bytes 4..6 of the data, just before it, belong to no tensor (byte 106)"),
        (header(&[a.clone(), u8_entry("b", 2, 6)], 8), "tensor \"b\": its data begins at byte 2, but the previous tensor ends at byte 4 (byte 106)"),
        (header(&[a.clone(), b.clone()], 7), "the file is truncated: it has 7 of 8 data bytes (byte 120)"),
        (header(&[a.clone(), b.clone()], 9), "the data has 9 bytes, but the last tensor ends at byte 8 (byte 121)"),
        (header(&[a.clone(), u8_entry(r"\u0061", 4, 4)], 8), "tensor \"a\": duplicate name, first used at byte 10 (byte 62)"),
        (header(&[r#""__metadata__":{},"__metadata__":{}"#.to_owned()], 0), "the header has __metadata__ twice (byte 28)"),
        (header(&[r#""__metadata__":{"k":"","\u006b":""}"#.to_owned()], 0), "duplicate key in __metadata__, first used at byte 26: \"k\" (byte 33)"),
        (header(&[r#""__metadata__":{"k":1}"#.to_owned()], 0), "a __metadata__ value must be a string, not a number (byte 29)"),
        (header(&[r#""__metadata__":7"#.to_owned()], 0), "__metadata__ must be an object, not a number (byte 24)"),
    ];
    for (file, sentence) in cases {
        assert_eq!(says(&file, &Limits::DEFAULT), sentence);
    }
    // Without slots, a scan of unordered entries can't say which one is wrong.
    let shuffled = header(&[b, u8_entry("c", 5, 3), a], 8);
    let (header, _) = Header::of_file(&shuffled, &Limits::DEFAULT).unwrap();
    let error = header.scan().finish().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tensors need 11 bytes in total, but the data has 8 (byte 165)"
    );
}

#[test]
fn limit_messages() {
    let say = |change: fn(&mut Limits), header: &str| {
        let mut limits = Limits::DEFAULT;
        change(&mut limits);
        says(&file::zeros(header, 4), &limits)
    };
    let t = format!("{{{}}}", u8_entry("t", 0, 4));
    assert_eq!(say(|l| l.tensors = 0, &t), "tensor \"t\": there are more than 0 tensors (byte 10)");
    assert_eq!(
        say(|l| l.rank = 0, &t),
        "tensor \"t\": the shape has more than 0 dimensions (byte 36)"
    );
    assert_eq!(
        say(|l| l.integer = 3, &t),
        "tensor \"t\": the number 4 is above the limit of 3 (byte 35)"
    );
    assert_eq!(
        say(|l| l.dtypes = safetensors_zero::DtypeSet::EMPTY, &t),
        "tensor \"t\": the dtype U8 is not accepted (byte 23)"
    );
    assert_eq!(
        say(|l| l.name_bytes = 0, &t),
        "tensor \"t\": the tensor's name has 1 bytes, above the limit of 0 (byte 10)"
    );
    let metadata = r#"{"__metadata__":{"key":"value"}}"#;
    assert_eq!(
        say(|l| l.metadata_entries = 0, metadata),
        "__metadata__ has more than 0 keys (byte 25)"
    );
    assert_eq!(
        say(|l| l.string_bytes = 2, metadata),
        "a key or property has 3 bytes, above the limit of 2 (byte 26)"
    );
    assert_eq!(
        say(|l| l.metadata_value_bytes = 4, metadata),
        "a __metadata__ value has 5 bytes, above the limit of 4 (byte 32)"
    );
}

#[test]
fn call_messages() {
    let file = file::zeros(format!("{{{}}}", u8_entry("t", 0, 6)), 6);
    let too_few = SafeTensors::parse(&file, &mut []).unwrap_err();
    assert_eq!(too_few.to_string(), "the header needs 1 slots, but 0 were given");
    let mut slots = [TensorSlot::EMPTY; 1];
    let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
    let missing = tensors.tensor("u").unwrap_err();
    assert_eq!(missing.to_string(), "no tensor has this name");
    assert_eq!((missing.byte(), missing.tensor()), (None, None));

    let view = TensorView::new(Dtype::U8, &[2, 3], &[0; 6]).unwrap();
    let mut out = [0.0; 7];
    let says = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert_eq!(says(view.dequant_into(&mut out)), "the buffer's length is 7, but 6 is needed");
    assert_eq!(says(view.dequant_range(1, &mut out[..6])), "the range 1..7 is not within 0..6");
    assert_eq!(says(view.dequant_rows(1..3, &mut out[..6])), "the range 1..3 is not within 0..2");
    assert_eq!(
        says(view.dequant_rows(0..1, &mut out)),
        "the buffer's length is 7, but 3 is needed"
    );
    let slice = |indexers: &[safetensors_zero::TensorIndexer]| {
        view.slice(indexers).unwrap_err().to_string()
    };
    assert_eq!(slice(&[2.into()]), "2 is out of range for dimension 0 of size 2");
    assert_eq!(slice(&[0.into(), (0..4).into()]), "4 is out of range for dimension 1 of size 3");
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = (2..1).into();
    assert_eq!(slice(&[reversed]), "the range 2..1 of dimension 0 ends before it starts");
    assert_eq!(slice(&[0.into(); 3]), "3 indexers were given, but at most 2 fit");
    assert_eq!(slice(&[0.into(); 17]), "17 indexers were given, but at most 16 fit");

    let f4 = TensorView::new(Dtype::F4, &[2, 6], &[0; 6]).unwrap();
    let partial = f4.slice(&[0.into(), 1.into()]).unwrap_err();
    assert_eq!(partial.to_string(), "the slice of F4 elements begins or ends inside a byte");
    let complex = TensorView::new(Dtype::C64, &[1], &[0; 8]).unwrap();
    assert_eq!(says(complex.dequant_into(&mut out[..1])), "C64 elements have no f32 value");
    assert_eq!(complex.stats().unwrap_err().kind(), ErrorKind::NoF32 { dtype: Dtype::C64 });
    let scalar = TensorView::new(Dtype::U8, &[], &[0]).unwrap();
    assert_eq!(says(scalar.dequant_rows(0..1, &mut out)), "a scalar has no rows");
    let wrong = f4.as_slice::<f32>().unwrap_err();
    assert_eq!(wrong.to_string(), "the elements are F4, not F32");

    // One of the first two bytes has an odd address.
    let bytes = [0; 9];
    let odd = usize::from(bytes.as_ptr().align_offset(2) == 0);
    let misaligned = TensorView::new(Dtype::F32, &[2], &bytes[odd..odd + 8]).unwrap();
    let error = misaligned.as_slice::<f32>().unwrap_err();
    if cfg!(target_endian = "big") {
        assert_eq!(error.to_string(), "the data is little-endian, but this machine is big-endian");
    } else {
        let remainder = bytes[odd..].as_ptr() as usize % 4;
        assert_eq!(error.kind(), ErrorKind::Misaligned { align: 4, remainder });
        assert_eq!(
            error.to_string(),
            format!("the data begins {remainder} bytes past a multiple of 4, the type's alignment")
        );
    }
}

#[test]
fn names_in_messages_are_escaped_and_shortened() {
    let hostile = "a\\n\\u001b[2J\\u202e\\u0000\u{200b}'\\\"\\\\";
    let file = file::file(format!(r#"{{"{hostile}":0}}"#), &[]);
    let sentence = says(&file, &Limits::DEFAULT);
    let name = r#""a\n\u{1b}[2J\u{202e}\0\u{200b}'\"\\""#;
    let rest = "the entry must be an object, not a number";
    assert_eq!(sentence.split(" (byte").next(), Some(&*format!("tensor {name}: {rest}")));

    let long = "é".repeat(50_000);
    let file = file::file(format!(r#"{{"{long}":0}}"#), &[]);
    let shown = format!("tensor \"{}…\": {rest} (byte 100012)", "é".repeat(120));
    assert_eq!(says(&file, &Limits::DEFAULT), shown);
}

#[test]
fn messages_tolerate_bytes_of_another_file() {
    let file = file::file(r#"{"name":0}"#, &[]);
    let error = parse(&file, &Limits::DEFAULT);
    assert_eq!(error.tensor(), Some(10..14));
    let nameless = "the entry must be an object, not a number (byte 16)";
    assert_eq!(error.in_header(&file[8..]).to_string(), format!("tensor \"name\": {nameless}"));
    for other in [b"".as_slice(), b"1234567", b"123456789\"\xff\xff\xff\"", &[b'"'; 40], &[0; 9]] {
        let sentence = error.in_file(other).to_string();
        assert!(sentence.ends_with(nameless), "{sentence}");
    }
    assert_eq!(error.in_file(&file).error(), error);
}

#[test]
fn errors_without_the_whole_file() {
    let limits = Limits::DEFAULT;
    let error = Frame::parse(b"<!DOCTYP", 5000, &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a safetensors file: it looks like a web page (HTML or XML) (byte 0)"
    );
    let error = Frame::parse(&[2, 0, 0, 0], 4, &limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooShort { len: 4 });
    let error = Header::new(b"", 0, &limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HeaderEmpty);
}
