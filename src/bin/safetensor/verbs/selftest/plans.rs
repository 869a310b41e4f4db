//! Plans for `selftest`: valid ones, and ones that the library must refuse to write.

use safetensors_zero::{Dtype, PlanBuilder, PlanOptions, SafeTensors, StreamWriter};

/// A description, a function that fills the plan, and the expected kind of error.
type Case = (&'static str, fn(&mut PlanBuilder), Option<&'static str>);

const CASES: [Case; 8] = [
    (
        "a plan with two tensors",
        |plan| {
            plan.tensor("b", Dtype::F32, [2, 0]).tensor("a", Dtype::F4, [2]);
        },
        None,
    ),
    (
        "a plan with a tensor named __metadata__",
        |plan| {
            plan.tensor("__metadata__", Dtype::U8, [1]);
        },
        Some("reserved_name"),
    ),
    (
        "a plan with a duplicate name",
        |plan| {
            plan.tensor("a", Dtype::U8, [1]).tensor("a", Dtype::F32, [1]);
        },
        Some("name_repeated"),
    ),
    (
        "a plan with an F4 tensor that ends inside a byte",
        |plan| {
            plan.tensor("a", Dtype::F4, [3]);
        },
        Some("partial_byte"),
    ),
    (
        "a plan with more than 2^64 - 1 elements",
        |plan| {
            plan.tensor("a", Dtype::U8, [1 << 32, 1 << 32]);
        },
        Some("shape_overflow"),
    ),
    (
        "a plan for a file of more than 2^64 - 1 bytes",
        |plan| {
            plan.tensor("a", Dtype::U8, [1 << 63]).tensor("b", Dtype::U8, [1 << 63]);
        },
        Some("file_too_large"),
    ),
    (
        "a plan with a header of more than 100,000,000 bytes",
        |plan| {
            plan.metadata("k", "v".repeat(100_000_000)).tensor("a", Dtype::U8, [1]);
        },
        Some("header_too_large"),
    ),
    (
        "a plan with an alignment of 12",
        |plan| {
            let mut options = PlanOptions::default();
            options.align = 12;
            *plan = PlanBuilder::with_options(options);
        },
        Some("not_power_of_two"),
    ),
];

/// Returns for each case its description, the expected outcome, and the outcome if it differs.
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

/// Writes this many bytes for a tensor of four bytes, and returns the outcome.
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
