//! Files for `selftest`: valid ones, and one for each way in which a header can be malformed.

use super::Refused::{self, Always, ByStrict, Never};

/// A file, and which rules must refuse it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) what: &'static str,
    pub(super) file: Vec<u8>,
    pub(super) refused: Refused,
}

/// Returns all cases, valid files first.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    valid(&mut cases);
    frames(&mut cases);
    texts(&mut cases);
    strings(&mut cases);
    entries(&mut cases);
    numbers(&mut cases);
    sizes(&mut cases);
    metadata(&mut cases);
    chains(&mut cases);
    cases
}

/// Builds a file from a header and some bytes of data.
fn file(header: &[u8], data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.resize(file.len() + data, 0);
    file
}

/// Adds a case with this header.
fn text(cases: &mut Vec<Case>, refused: Refused, what: &'static str, header: &str, data: usize) {
    cases.push(Case { what, file: file(header.as_bytes(), data), refused });
}

fn raw(cases: &mut Vec<Case>, refused: Refused, what: &'static str, file: Vec<u8>) {
    cases.push(Case { what, file, refused });
}

/// An entry with one byte of data.
const A: &str = r#""a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#;

fn u8_entry(name: &str, shape: &str, begin: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"U8","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
}

fn object(members: &[&str]) -> String {
    format!("{{{}}}", members.join(","))
}

fn valid(cases: &mut Vec<Case>) {
    let mut case = |what, header: &str, data| text(cases, Never, what, header, data);
    case(
        "an ordinary file",
        r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]}}    "#,
        20,
    );
    case("no tensors", "{}", 0);
    case("a scalar", &object(&[&u8_entry("a", "[]", 0, 1)]), 1);
    case("an empty tensor", &object(&[&u8_entry("a", "[0]", 0, 0)]), 0);
    let (b, a) = (u8_entry("b", "[1]", 1, 2), u8_entry("a", "[1]", 0, 1));
    case("entries in a different order from their data", &object(&[&b, &a]), 2);
    case("an empty name", &object(&[&u8_entry("", "[1]", 0, 1)]), 1);
    case(
        "names with NUL and terminal escapes",
        &object(&[&u8_entry("\\u0000", "[1]", 0, 1), &u8_entry("\\u001b[2J", "[1]", 1, 2)]),
        2,
    );
    case("a name like a path", &object(&[&u8_entry("../../etc/passwd", "[1]", 0, 1)]), 1);
    case(
        "a header and data that are not aligned",
        r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}} "#,
        5,
    );
    case(
        "an empty tensor whose dimensions overflow before the 0",
        &object(&[&u8_entry("a", "[140737488355328,140737488355328,0]", 0, 0)]),
        0,
    );
    case(
        "empty tensors at the start and the end",
        &object(&[
            &u8_entry("a", "[0]", 0, 0),
            A.replace("\"a\"", "\"b\"").as_str(),
            &u8_entry("c", "[0]", 1, 1),
        ]),
        1,
    );
    case("metadata without keys", &object(&[r#""__metadata__":{}"#, A]), 1);
    case(
        "an F4 tensor that fills its bytes",
        r#"{"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}}"#,
        3,
    );
}

fn frames(cases: &mut Vec<Case>) {
    let mut case = |kind, what, file: &[u8]| raw(cases, Always(kind), what, file.to_vec());
    case("file_too_short", "no bytes", b"");
    case("file_too_short", "seven bytes", b"\x02\0\0\0\0\0\0");
    case("header_empty", "a header of length 0", b"\0\0\0\0\0\0\0\0{}");
    case("header_too_large", "a header of 2^64 - 1 bytes", b"\xff\xff\xff\xff\xff\xff\xff\xff{}");
    case("header_too_large", "a header of 100,000,001 bytes", b"\x01\xe1\xf5\x05\0\0\0\0{}");
    case(
        "header_too_large",
        "a length that is right in its lower 32 bits",
        b"\x02\0\0\0\x01\0\0\0{}",
    );
    case("header_too_large", "a length in big-endian order", b"\0\0\0\0\0\0\0\x02{}");
    case("header_truncated", "a header one byte longer than the file", b"\x03\0\0\0\0\0\0\0{}");
    case("header_truncated", "a length that counts itself", b"\x0a\0\0\0\0\0\0\0{}");
    let foreign: [(&str, &[u8]); 5] = [
        ("a zip archive, as written by PyTorch", b"PK\x03\x04\x14\0\0\0\x08\0archive/data.pkl"),
        ("a gzip stream", b"\x1f\x8b\x08\0\0\0\0\0\0\x03abcdefgh"),
        ("a pickle", b"\x80\x02}q\0X\x01\0\0\0aq\x01K\x01s."),
        ("a web page", b"<!DOCTYPE html><html><body>404</body></html>"),
        (
            "a Git LFS pointer",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        ),
    ];
    for (what, bytes) in foreign {
        case("foreign", what, bytes);
    }
}

fn texts(cases: &mut Vec<Case>) {
    let valid = object(&[A]);
    let mut case = |refused, what, header: String| {
        raw(cases, refused, what, file(header.as_bytes(), 1));
    };
    case(Always("header_start"), "a byte-order mark", format!("\u{feff}{valid}"));
    case(Always("header_start"), "a header that is an array", format!("[{valid}]"));
    case(ByStrict("leading_whitespace"), "white space before the header", format!(" {valid}"));
    case(ByStrict("padding"), "padding with tabs", format!("{valid}\t\t"));
    case(Always("nul_padding"), "padding with NUL bytes", format!("{valid}\0\0"));
    case(Always("after_header"), "a second object after the header", format!("{valid}{{}}"));
    case(Always("unexpected_end"), "a header without its end", format!("{{{A}"));
    case(Always("unexpected_byte"), "a comma after the last entry", format!("{{{A},}}"));
    case(Always("unexpected_byte"), "a name in single quotes", valid.replace("\"a\"", "'a'"));
    case(Always("unexpected_byte"), "a comment", valid.replace(":{", ":/**/{"));
}

fn strings(cases: &mut Vec<Case>) {
    let mut case = |kind, what, name: &[u8]| {
        let entry = br#":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
        raw(cases, Always(kind), what, file(&[b"{\"", name, b"\"", entry].concat(), 1));
    };
    case("invalid_utf8", "a name that is not UTF-8", b"\xff");
    case("invalid_utf8", "an overlong encoding", b"\xc0\xaf");
    case("invalid_utf8", "a surrogate in UTF-8", b"\xed\xa0\x80");
    case("invalid_utf8", "a character above U+10FFFF", b"\xf4\x90\x80\x80");
    case("control_character", "a line feed in a name", b"a\nb");
    case("invalid_escape", "an escape that is not JSON", b"\\x41");
    case("unexpected_byte", "an escape with three digits", b"\\u041");
    case("lone_surrogate", "half of a surrogate pair", b"\\ud800");
    case("lone_surrogate", "a surrogate pair in reverse", b"\\udc00\\ud800");
}

/// Returns the header of one entry with a part replaced.
fn replaced(from: &str, to: &str) -> String {
    object(&[A]).replace(from, to)
}

fn entries(cases: &mut Vec<Case>) {
    let mut case = |refused, what, header: String| text(cases, refused, what, &header, 1);
    case(Always("wrong_type"), "an entry that is an array", r#"{"a":["U8",[1],[0,1]]}"#.into());
    case(Always("wrong_type"), "an entry that is a string", r#"{"a":"U8"}"#.into());
    case(Always("wrong_type"), "an entry that is null", r#"{"a":null}"#.into());
    case(Always("wrong_type"), "a dtype that is an object", replaced(r#""U8""#, r#"{"U8":null}"#));
    case(Always("wrong_type"), "a shape that is a number", replaced("[1]", "1"));
    case(Always("wrong_type"), "a shape of strings", replaced("[1]", r#"["1"]"#));
    case(
        Always("wrong_type"),
        "offsets that are an object",
        replaced("[0,1]", r#"{"begin":0,"end":1}"#),
    );
    case(Always("missing_key"), "no dtype", replaced(r#""dtype":"U8","#, ""));
    case(Always("missing_key"), "no shape", replaced(r#""shape":[1],"#, ""));
    case(Always("missing_key"), "no data_offsets", replaced(r#","data_offsets":[0,1]"#, ""));
    case(Always("duplicate_key"), "two dtypes", replaced(r#""dtype""#, r#""dtype":"U8","dtype""#));
    case(
        Always("duplicate_key"),
        "two shapes, one escaped",
        replaced(r#""shape""#, r#""sh\u0061pe":[1],"shape""#),
    );
    case(
        Always("duplicate_key"),
        "two data_offsets",
        replaced(r#""data_offsets""#, r#""data_offsets":[0,1],"data_offsets""#),
    );
    case(Always("unknown_dtype"), "a dtype in lower case", replaced("U8", "u8"));
    case(Always("unknown_dtype"), "an unknown dtype", replaced("U8", "C128"));
    case(Always("unknown_dtype"), "a dtype as spelled by PyTorch", replaced("U8", "torch.uint8"));
    let with = |value: &str| replaced(r#""dtype""#, &format!(r#""extra":{value},"dtype""#));
    case(ByStrict("unknown_key"), "an unknown key in an entry", with("[1,{}]"));
    case(
        Always("too_deep"),
        "arrays nested 200 levels",
        with(&("[".repeat(200) + &"]".repeat(200))),
    );
    case(Always("number_range"), "a number beyond 64-bit floats", with("1e999"));
    case(Always("unexpected_byte"), "brackets that do not match", with("[}"));
    case(Always("unexpected_byte"), "a literal that is not JSON", with("nul"));
}

fn numbers(cases: &mut Vec<Case>) {
    let mut shape = |refused, what, dimension: &str| {
        text(cases, refused, what, &replaced("[1]", &format!("[{dimension}]")), 1);
    };
    shape(Always("not_natural"), "a dimension of -1", "-1");
    shape(Always("not_natural"), "a dimension of -0", "-0");
    shape(Always("not_natural"), "a dimension of 1.0", "1.0");
    shape(Always("not_natural"), "a dimension of 1e0", "1e0");
    shape(Always("invalid_number"), "a dimension of 01", "01");
    shape(Always("unexpected_byte"), "a dimension of +1", "+1");
    shape(Always("unexpected_byte"), "a dimension in hexadecimal", "0x1");
    shape(Always("integer_overflow"), "a dimension of 2^64", "18446744073709551616");
    shape(Always("rank_too_large").strictly(), "65 dimensions", &["1"; 65].join(","));
    let mut offsets = |kind, what, numbers: &str| {
        text(cases, Always(kind), what, &replaced("[0,1]", numbers), 1);
    };
    offsets("offset_count", "one offset", "[1]");
    offsets("offset_count", "no offset", "[]");
    offsets("offset_count", "three offsets", "[0,1,1]");
    offsets("offsets_reversed", "an end before its start", "[1,0]");
    offsets("not_natural", "an offset of -1", "[-1,0]");
    offsets("integer_overflow", "an offset of 2^64 + 1", "[0,18446744073709551617]");
}

impl Refused {
    /// The same, but by the strict rules only.
    fn strictly(self) -> Refused {
        match self {
            Always(kind) => ByStrict(kind),
            other => other,
        }
    }
}

fn sizes(cases: &mut Vec<Case>) {
    let mut case = |refused, what, dtype: &str, shape: &str, begin: u64, end: u64, data| {
        let header = format!(
            r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}}}"#
        );
        text(cases, refused, what, &header, data);
    };
    let most = u64::MAX;
    case(Always("size_mismatch"), "fewer bytes than the shape needs", "F32", "[4]", 0, 12, 12);
    case(Always("size_mismatch"), "more bytes than the shape needs", "F32", "[4]", 0, 20, 20);
    case(Always("size_mismatch"), "a scalar without bytes", "U8", "[]", 0, 0, 0);
    case(Always("size_mismatch"), "an empty shape with bytes", "U8", "[0]", 0, 1, 1);
    case(
        Always("shape_overflow"),
        "a product that wraps to 0",
        "U8",
        "[4294967296,4294967296]",
        0,
        0,
        0,
    );
    case(
        Always("shape_overflow"),
        "a product that wraps to the right size",
        "U8",
        "[9223372036854775809,2]",
        0,
        2,
        2,
    );
    case(
        Always("shape_overflow"),
        "a byte count that wraps to 0",
        "F64",
        "[2305843009213693952]",
        0,
        0,
        0,
    );
    case(Always("partial_byte"), "an F4 tensor that ends inside a byte", "F4", "[3]", 0, 2, 2);
    case(Always("partial_byte"), "an F6 tensor that ends inside a byte", "F6_E2M3", "[2]", 0, 2, 2);
    case(Always("data_truncated"), "more data than the file has", "U8", "[2]", 0, 2, 1);
    case(
        Always("data_truncated"),
        "an end of 2^64 - 1",
        "U8",
        "[18446744073709551615]",
        0,
        most,
        1,
    );
    case(Always("hole"), "data that begins outside the file", "U8", "[1]", most - 1, most, 1);
    case(Always("data_trailing"), "bytes after the last tensor", "U8", "[1]", 0, 1, 2);
    case(
        ByStrict("integer_too_large"),
        "an empty shape with a dimension of 2^64 - 1",
        "U8",
        "[18446744073709551615,2,0]",
        0,
        0,
        0,
    );
    case(
        ByStrict("integer_too_large"),
        "the same with the 0 first",
        "U8",
        "[0,18446744073709551615,2]",
        0,
        0,
        0,
    );
}

fn metadata(cases: &mut Vec<Case>) {
    let mut case = |refused, what, metadata: &str| {
        let metadata = format!(r#""__metadata__":{metadata}"#);
        text(cases, refused, what, &object(&[&metadata, A]), 1);
    };
    case(ByStrict("null_metadata"), "metadata that is null", "null");
    case(Always("wrong_type"), "metadata that is an array", "[]");
    case(Always("wrong_type"), "a metadata value that is a number", r#"{"step":1}"#);
    case(Always("wrong_type"), "a metadata value that is an object", r#"{"config":{}}"#);
    case(Always("duplicate_metadata_key"), "a duplicate metadata key", r#"{"a":"1","a":"2"}"#);
    case(
        Always("duplicate_metadata_key"),
        "a duplicate metadata key, one escaped",
        r#"{"a":"1","\u0061":"1"}"#,
    );
    case(Always("duplicate_metadata"), "two __metadata__", r#"{},"__metadata__":{}"#);
    case(
        Always("duplicate_metadata"),
        "two __metadata__, one escaped",
        r#"{},"__metadat\u0061__":{}"#,
    );
}

fn chains(cases: &mut Vec<Case>) {
    let mut case = |kind, what, entries: &[(&str, &str, u64, u64)], data| {
        let entries: Vec<String> = entries
            .iter()
            .map(|(name, shape, begin, end)| u8_entry(name, shape, *begin, *end))
            .collect();
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        text(cases, Always(kind), what, &object(&entries), data);
    };
    let (a, b) = (("a", "[2]", 0, 2), ("b", "[2]", 2, 4));
    case("duplicate_name", "a duplicate name", &[a, ("a", "[2]", 2, 4)], 4);
    case("duplicate_name", "a duplicate name, one escaped", &[a, ("\\u0061", "[2]", 2, 4)], 4);
    case("duplicate_name", "a duplicate name with the same data", &[a, a], 2);
    case(
        "duplicate_name",
        "a duplicate name without data",
        &[("a", "[0]", 0, 0), ("a", "[0]", 0, 0)],
        0,
    );
    case("hole", "a hole before the first tensor", &[("a", "[2]", 1, 3)], 3);
    case("hole", "a hole between tensors", &[a, ("b", "[2]", 3, 5)], 5);
    case("overlap", "tensors that overlap", &[a, ("b", "[2]", 1, 3)], 3);
    case("overlap", "two tensors with the same data", &[a, ("b", "[2]", 0, 2)], 2);
    case("overlap", "an empty tensor inside another", &[a, ("b", "[0]", 1, 1)], 2);
    case("data_truncated", "a second tensor beyond the file", &[a, b], 3);
    case("data_truncated", "entries out of order, and too few bytes", &[b, a], 3);
    case("hole", "an empty tensor beyond the file", &[a, ("b", "[0]", 9, 9)], 2);
}
