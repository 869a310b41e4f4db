//! A model as several files: which tensor goes to which, and the index that tells it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::base::error::ErrorKind;
use crate::header::shape::Shape;
use crate::read::index::shard_name_fault;
use crate::write::build::{OwnedPlan, PlanBuilder, Spec};
use crate::write::error::WriteError;
use crate::write::plan::{write_header, write_string, Measure, Writing};

/// One file of a model that is to be written as several.
#[derive(Debug, Clone)]
pub struct ShardPlan {
    name: String,
    plan: OwnedPlan,
}

impl ShardPlan {
    /// The file's name: `model-00001-of-00003.safetensors`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    #[must_use]
    pub fn plan(&self) -> &OwnedPlan {
        &self.plan
    }
}

/// A model that is to be written as several files, and the index that finds its tensors in them.
#[derive(Debug, Clone)]
pub struct ShardPlans {
    shards: Vec<ShardPlan>,
    index_name: String,
    index: String,
}

impl ShardPlans {
    /// The files, in the order of their numbers.
    #[must_use]
    pub fn shards(&self) -> &[ShardPlan] {
        &self.shards
    }

    /// The name of the index: `model.safetensors.index.json`.
    #[must_use]
    pub fn index_name(&self) -> &str {
        &self.index_name
    }

    /// The text of the index. It has to be written last: until then, readers find the model that was
    /// there before, or none.
    #[must_use]
    pub fn index(&self) -> &str {
        &self.index
    }
}

impl PlanBuilder {
    /// The plans of several files, none larger than `file_bytes`, and of the index beside them. A
    /// tensor that does not fit such a file has one to itself.
    ///
    /// The tensors are divided in the order in which they were added, so that those of a layer stay
    /// together. `base` is what the files' names begin with: usually `model`. The metadata stands in
    /// every file.
    ///
    /// ```
    /// use safetensors_zero::{Dtype, PlanBuilder};
    ///
    /// let mut builder = PlanBuilder::new();
    /// for layer in 0..4 {
    ///     builder.tensor(format!("layers.{layer}.weight"), Dtype::BF16, [1000, 1000]);
    /// }
    /// let model = builder.shards("model", 5_000_000)?;
    /// assert_eq!(model.shards().len(), 2);
    /// assert_eq!(model.shards()[1].name(), "model-00002-of-00002.safetensors");
    /// # Ok::<(), safetensors_zero::WriteError>(())
    /// ```
    ///
    /// # Errors
    /// What the format, or the limits, do not allow; a `base` that makes no name of a shard.
    pub fn shards(&self, base: &str, file_bytes: u64) -> Result<ShardPlans, WriteError> {
        self.check_names()?;
        let parts = self.divide(file_bytes);
        let count = parts.len();
        let mut shards = Vec::with_capacity(count);
        for (number, part) in (1_u64..).zip(parts) {
            let name = format!("{base}-{number:05}-of-{count:05}.safetensors");
            if let Some(fault) = shard_name_fault(&name) {
                return Err(WriteError::refused(ErrorKind::ShardName { fault }));
            }
            shards.push(ShardPlan { name, plan: self.plan_of(part)? });
        }
        let index = index_of(&shards);
        Ok(ShardPlans { shards, index_name: format!("{base}.safetensors.index.json"), index })
    }

    /// Refuses a name that two tensors have, which could go to different files.
    fn check_names(&self) -> Result<(), WriteError> {
        let mut names: Vec<_> = (0_u64..).zip(&self.tensors).collect();
        names.sort_by_key(|(_, spec)| spec.name.as_str());
        for pair in names.windows(2) {
            let [(first, a), (_, b)] = pair else { continue };
            if a.name == b.name {
                let error = WriteError::refused(ErrorKind::NameRepeated { first: *first });
                return Err(error.of(Some(&b.name)));
            }
        }
        Ok(())
    }

    /// The tensors of each file.
    fn divide(&self, file_bytes: u64) -> Vec<&[Spec]> {
        let fixed = self.fixed_bytes();
        let mut parts = Vec::new();
        let (mut rest, mut count, mut bytes) = (self.tensors.as_slice(), 0_usize, fixed);
        for spec in &self.tensors {
            let more = spec.most_bytes();
            if count > 0 && bytes.saturating_add(more) > file_bytes {
                let (part, others) = rest.split_at_checked(count).unwrap_or_default();
                parts.push(part);
                (rest, count, bytes) = (others, 0, fixed);
            }
            count = count.saturating_add(1);
            bytes = bytes.saturating_add(more);
        }
        parts.push(rest);
        parts
    }

    /// Bytes of a file without tensors, and the most of its padding.
    fn fixed_bytes(&self) -> u64 {
        let mut measure = Measure::default();
        let pairs = self.metadata.as_ref().map(crate::write::build::pairs);
        // A measure takes everything.
        let _ = write_header(&mut measure, pairs.as_deref(), &[]);
        measure.len().saturating_add(8).saturating_add(self.options.align)
    }
}

impl Spec {
    /// The most bytes that the tensor can take in a file, its entry included.
    fn most_bytes(&self) -> u64 {
        /// Digits of the two offsets, which are 0 in the entry that is measured.
        const OFFSETS: u64 = 2 * 19;
        let mut measure = Measure::default();
        // A measure takes everything.
        let _ = write_header(&mut measure, None, &[self.plan()]);
        let elements = Shape::wide(&self.shape).elements();
        let data = elements.and_then(|elements| self.dtype.byte_len(elements).ok());
        measure.len().saturating_add(OFFSETS).saturating_add(data.unwrap_or(u64::MAX))
    }
}

/// The index of these files, as the Hugging Face libraries write it: two spaces a level, names in
/// order.
fn index_of(shards: &[ShardPlan]) -> String {
    let total = shards.iter().map(|shard| shard.plan.data_len());
    let total = total.fold(0_u64, u64::saturating_add);
    let mut names: Vec<(String, &str)> = Vec::new();
    for shard in shards {
        for name in shard.plan.table().names() {
            names.push((name.to_cow().into_owned(), &shard.name));
        }
    }
    names.sort_unstable();
    let mut text = format!("{{\n  \"metadata\": {{\n    \"total_size\": {total}\n  }},\n");
    text.push_str("  \"weight_map\": {");
    let mut before = "\n    ";
    for (name, shard) in &names {
        text.push_str(before);
        // A string takes everything.
        let _ = write_string(&mut Writing(&mut text), name);
        text.push_str(": ");
        let _ = write_string(&mut Writing(&mut text), shard);
        before = ",\n    ";
    }
    text.push_str(if names.is_empty() { "}\n}\n" } else { "\n  }\n}\n" });
    text
}
