//! Headers made to cost their reader time, each of about the size asked for.

use super::file;

/// A kind of hostile header.
pub struct Hostile {
    pub name: &'static str,
    /// Whether it is valid.
    pub valid: bool,
    members: fn(usize) -> (Vec<String>, usize),
}

impl Hostile {
    /// The file with a header of about `size` bytes.
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

/// Bytes of an entry.
const ENTRY: usize = 60;

pub const KINDS: [Hostile; 28] = [
    valid("names of one hash", |size| empties(colliding((size / ENTRY).min(1_000), "n"))),
    // Enough of one hash to have all names sorted.
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
    // The first half rises while the second falls.
    valid("alternating chain", |size| {
        chain(size / ENTRY, |i, n| if i % 2 == 0 { i / 2 } else { n - 1 - i / 2 })
    }),
    // Every other tensor lies where the one before lies.
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

/// Tensors without elements, of these names.
fn empties(names: Vec<String>) -> (Vec<String>, usize) {
    let entry = |name| format!(r#""{name}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    (names.iter().map(entry).collect(), 0)
}

/// Tensors of one byte each, the `i`th of `n` at the place that is given.
fn chain(n: usize, place: fn(usize, usize) -> usize) -> (Vec<String>, usize) {
    let entry = |i| {
        let (begin, end) = (place(i, n), place(i, n) + 1);
        format!(r#""{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{begin},{end}]}}"#)
    };
    ((0..n).map(entry).collect(), n)
}

/// Names that all fall into one bucket of the index of a table of `n` names, `n` of them.
fn colliding(n: usize, prefix: &str) -> Vec<String> {
    let bucket = |name: &str| safetensors_zero::internals::bucket_of_name(name, n);
    let wanted = bucket(prefix);
    let names = (0_u64..).map(|i| format!("{prefix}{i}"));
    names.filter(|name| bucket(name) == wanted).take(n).collect()
}

/// So many names, of which the first ones fall into one bucket: more than are looked through one by one.
fn some_colliding(n: usize, prefix: &str) -> Vec<String> {
    const SOME: usize = 100;
    let bucket = |name: &str| safetensors_zero::internals::bucket_of_name(name, n);
    let wanted = bucket(prefix);
    let names = (0_u64..).map(|i| format!("{prefix}n{i}"));
    let colliding = names.filter(|name| bucket(name) == wanted).take(SOME.min(n));
    colliding.chain(numbers(n.saturating_sub(SOME)).map(|i| format!("{prefix}{i}"))).collect()
}

/// What names have in common that is long enough to be felt.
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

/// A tensor with an unknown key of this value.
fn junk(value: String) -> (Vec<String>, usize) {
    let known = r#""dtype":"U8","shape":[0],"data_offsets":[0,0]"#;
    (vec![format!(r#""t":{{"x":{value},{known}}}"#)], 0)
}
