//! The files that `selftest` asks the library to write, and that it must not.

use safetensors_zero::{Dtype, PlanBuilder, PlanOptions, SafeTensors, StreamWriter};

/// What is to be written, and the kind of the refusal; none of an honest file.
type Case = (&'static str, fn(&mut PlanBuilder), Option<&'static str>);

const CASES: [Case; 8] = [
    (
        "a plan of two tensors",
        |plan| {
            plan.tensor("b", Dtype::F32, [2, 0]).tensor("a", Dtype::F4, [2]);
        },
        None,
    ),
    (
        "a plan of a tensor named __metadata__",
        |plan| {
            plan.tensor("__metadata__", Dtype::U8, [1]);
        },
        Some("reserved_name"),
    ),
    (
        "a plan of two tensors of one name",
        |plan| {
            plan.tensor("a", Dtype::U8, [1]).tensor("a", Dtype::F32, [1]);
        },
        Some("name_repeated"),
    ),
    (
        "a plan of F4 that ends inside a byte",
        |plan| {
            plan.tensor("a", Dtype::F4, [3]);
        },
        Some("partial_byte"),
    ),
    (
        "a plan of more elements than 64 bits count",
        |plan| {
            plan.tensor("a", Dtype::U8, [1 << 32, 1 << 32]);
        },
        Some("shape_overflow"),
    ),
    (
        "a plan of a file that is longer than 64 bits count",
        |plan| {
            plan.tensor("a", Dtype::U8, [1 << 63]).tensor("b", Dtype::U8, [1 << 63]);
        },
        Some("file_too_large"),
    ),
    (
        "a plan of a header of more than 100,000,000 bytes",
        |plan| {
            plan.metadata("k", "v".repeat(100_000_000)).tensor("a", Dtype::U8, [1]);
        },
        Some("header_too_large"),
    ),
    (
        "a plan aligned to 12",
        |plan| {
            let mut options = PlanOptions::default();
            options.align = 12;
            *plan = PlanBuilder::with_options(options);
        },
        Some("not_power_of_two"),
    ),
];

/// What each case is, what is expected of it, and what the library does where that is not it.
pub(super) fn outcomes() -> impl Iterator<Item = (&'static str, String, Result<(), String>)> {
    let planned = CASES.iter().map(|(what, fill, refused)| {
        let mut builder = PlanBuilder::new();
        fill(&mut builder);
        let found = builder.plan().err().and_then(|error| error.refusal()).map(|kind| kind.name());
        let expected = refused.map_or("accepted".to_owned(), |kind| format!("refused: {kind}"));
        let outcome = match found == *refused {
            true => Ok(()),
            false => Err(found.unwrap_or("accepted").to_owned()),
        };
        (*what, expected, outcome)
    });
    let written = [
        ("a byte too few", 3, "refused: data_missing"),
        ("a byte too many", 5, "refused: data_excess"),
        ("as many bytes as planned", 4, "read back"),
    ];
    planned.chain(written.map(|(what, bytes, expected)| {
        let found = write(bytes);
        let outcome = if found == expected { Ok(()) } else { Err(found) };
        (what, expected.to_owned(), outcome)
    }))
}

/// Writes a tensor of four bytes with so many, and tells what came of it.
fn write(bytes: usize) -> String {
    let mut builder = PlanBuilder::new();
    builder.tensor("a", Dtype::F32, []);
    let written = builder.plan().and_then(|plan| {
        let mut writer = StreamWriter::new(Vec::new(), plan)?;
        writer.tensor("a")?.write_bytes(&vec![7; bytes])?;
        writer.finish()
    });
    match written {
        Err(error) => {
            let kind = error.refusal().map_or("other", |kind| kind.name());
            format!("refused: {kind}")
        }
        Ok(file) => {
            let view = SafeTensors::deserialize(&file);
            let data = view.and_then(|tensors| Ok(tensors.tensor("a")?.data().to_vec()));
            if data == Ok(vec![7; 4]) { "read back" } else { "read back as something else" }
                .to_owned()
        }
    }
}
