//! Headers designed to be slow to parse, each about as long as requested.

use super::file;

/// A kind of hostile header.
pub struct Hostile {
    pub name: &'static str,
    /// Whether such a header is valid.
    pub valid: bool,
    members: fn(usize) -> (Vec<String>, usize),
}

impl Hostile {
    /// Returns a file with a header of about `size` bytes.
    pub fn file(&self, size: usize) -> Vec<u8> {
        let (members, data_len) = (self.members)(size);
        file::zeros(format!("{{{}}}", members.join(",")), data_len)
    }
}

const fn valid(name: &'static str, members: fn(usize) -> (Vec<String>, usize)) -> Hostile {
    Hostile { name, valid: true, members }
}

const fn invalid(name: &'static str, members: fn(usize) -> (Vec<String>, usize)) -> Hostile {
    Hostile { name, valid: false, members }
}

/// The approximate length of an entry in bytes.
const ENTRY: usize = 60;

pub const KINDS: [Hostile; 28] = [
    valid("names of one hash", |size| empties(colliding((size / ENTRY).min(1_000), "n"))),
    // Enough collisions to make the table sort all names.
    valid("names, some of one hash", |size| empties(some_colliding(size / ENTRY, ""))),
    valid("long names of one hash", |size| {
        let prefix = prefix(size);
        empties(colliding(size / (prefix.len() + ENTRY), &prefix))
    }),
    valid("escaped names of one hash", |size| {
        let names = colliding((size / ENTRY / 3).min(1_000), "n");
        empties(names.iter().map(|name| escape(name)).collect())
    }),
    valid("long common prefixes", |size| {
        let prefix = prefix(size);
        empties(numbers(size / (prefix.len() + ENTRY)).map(|i| format!("{prefix}{i}")).collect())
    }),
    valid("a long name", |size| empties(vec!["n".repeat(size)])),
    valid("a long escaped name", |size| empties(vec![r"\u00e9\n\ud83d\ude00".repeat(size / 20)])),
    invalid("every name twice", |size| {
        let half = size / ENTRY / 2;
        empties(numbers(half).chain(numbers(half)).collect())
    }),
    valid("reversed chain", |size| chain(size / ENTRY, |i, n| n - 1 - i)),
    // Entries alternate between a rising first half and a falling second half.
    valid("alternating chain", |size| {
        chain(size / ENTRY, |i, n| if i % 2 == 0 { i / 2 } else { n - 1 - i / 2 })
    }),
    // Every other tensor has the same offsets as the one before it.
    invalid("overlapping chain", |size| chain(size / ENTRY, |i, n| n / 2 - i.div_ceil(2))),
    valid("empty tensors", |size| empties(numbers(size / ENTRY).collect())),
    valid("metadata keys", |size| metadata(numbers(size / 12), "last")),
    invalid("metadata keys, the last one twice", |size| metadata(numbers(size / 12), "0")),
    valid("metadata keys, some of one hash", |size| {
        metadata(some_colliding(size / 12, "").into_iter(), "last")
    }),
    valid("metadata keys of one beginning, some of one hash", |size| {
        metadata(some_colliding(size / 16, "nnnn").into_iter(), "last")
    }),
    valid("escaped metadata keys, some of one hash", |size| {
        metadata(some_colliding(size / 40, "").iter().map(|key| escape(key)), "last")
    }),
    valid("escaped metadata keys of one beginning, some of one hash", |size| {
        let keys = some_colliding(size / 40, "éé");
        metadata(keys.iter().map(|key| format!("éé{}", escape(&key["éé".len()..]))), "last")
    }),
    valid("metadata keys of long common prefixes", |size| {
        let prefix = prefix(size);
        metadata(numbers(size / prefix.len()).map(|i| format!("{prefix}{i}")), "last")
    }),
    valid("a long metadata value", |size| {
        (
            vec![format!(
                r#""__metadata__":{{"tags":"{}"}}"#,
                r#"{\"a b\": 1}, "#.repeat(size / 14)
            )],
            0,
        )
    }),
    valid("nested junk", |size| junk(format!("[{}0]", "[[[[{\"\":[]}]]]],".repeat(size / 17)))),
    valid("numeric junk", |size| junk(format!("[{}0]", "0,".repeat(size / 2)))),
    valid("long numbers", |size| {
        junk(format!("[{}0]", "1234567890123456789012345.5e-10,".repeat(size / 32)))
    }),
    valid("white space", |size| junk(format!("[{}0]", " \n\t\r".repeat(size / 4)))),
    valid("escapes", |size| junk(format!("\"{}\"", r"\u00e9\n\ud83d\ude00".repeat(size / 20)))),
    valid("long shape", |size| {
        let shape = "1,".repeat(size / 2);
        (vec![format!(r#""t":{{"dtype":"U8","shape":[{shape}0],"data_offsets":[0,0]}}"#)], 0)
    }),
    invalid("deep nesting", |size| junk("[".repeat(size))),
    invalid("deeply nested objects", |size| junk(r#"{"a":"#.repeat(size / 5))),
];

fn numbers(n: usize) -> impl Iterator<Item = String> {
    (0..n).map(|i| i.to_string())
}

/// Returns an entry without elements for each name.
fn empties(names: Vec<String>) -> (Vec<String>, usize) {
    let entry = |name| format!(r#""{name}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    (names.iter().map(entry).collect(), 0)
}

/// Returns `n` entries of one byte each; the `i`th begins at `offset(i, n)`.
fn chain(n: usize, offset: fn(usize, usize) -> usize) -> (Vec<String>, usize) {
    let entry = |i| {
        let (begin, end) = (offset(i, n), offset(i, n) + 1);
        format!(r#""{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{begin},{end}]}}"#)
    };
    ((0..n).map(entry).collect(), n)
}

/// Returns `n` names that all fall into one bucket of the name index of a table of `n` tensors.
fn colliding(n: usize, prefix: &str) -> Vec<String> {
    let bucket = |name: &str| safetensors_zero::internals::bucket_of_name(name, n);
    let wanted = bucket(prefix);
    let names = (0_u64..).map(|i| format!("{prefix}{i}"));
    names.filter(|name| bucket(name) == wanted).take(n).collect()
}

/// Returns `n` names. The first 100 fall into one bucket, which is more than are compared one by
/// one.
fn some_colliding(n: usize, prefix: &str) -> Vec<String> {
    const SOME: usize = 100;
    let bucket = |name: &str| safetensors_zero::internals::bucket_of_name(name, n);
    let wanted = bucket(prefix);
    let names = (0_u64..).map(|i| format!("{prefix}n{i}"));
    let colliding = names.filter(|name| bucket(name) == wanted).take(SOME.min(n));
    colliding.chain(numbers(n.saturating_sub(SOME)).map(|i| format!("{prefix}{i}"))).collect()
}

/// Returns a common prefix of names, long enough to dominate the cost of comparing them.
fn prefix(size: usize) -> String {
    "layer.".repeat((size / 3_000).max(50))
}

fn escape(name: &str) -> String {
    name.bytes().map(|byte| format!("\\u{byte:04x}")).collect()
}

fn metadata(keys: impl Iterator<Item = String>, last: &str) -> (Vec<String>, usize) {
    let keys = keys.chain([last.to_owned()]);
    let entries: Vec<String> = keys.map(|key| format!(r#""{key}":"""#)).collect();
    (vec![format!(r#""__metadata__":{{{}}}"#, entries.join(","))], 0)
}

/// Returns the entry of a tensor with an unknown key that has the given value.
fn junk(value: String) -> (Vec<String>, usize) {
    let known = r#""dtype":"U8","shape":[0],"data_offsets":[0,0]"#;
    (vec![format!(r#""t":{{"x":{value},{known}}}"#)], 0)
}
