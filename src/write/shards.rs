//! Planning a sharded model: how tensors are divided into files, and the text of the index.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::base::error::ErrorKind;
use crate::header::shape::Shape;
use crate::read::index::shard_name_fault;
use crate::write::build::{OwnedPlan, PlanBuilder, Spec};
use crate::write::error::WriteError;
use crate::write::plan::{write_header, write_string, Measure, TextWriter};

/// One file of a sharded model to write.
#[derive(Debug, Clone)]
pub struct ShardPlan {
    name: String,
    plan: OwnedPlan,
}

impl ShardPlan {
    /// Returns the file's name, such as `model-00001-of-00003.safetensors`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file's plan.
    #[must_use]
    pub fn plan(&self) -> &OwnedPlan {
        &self.plan
    }
}

/// A sharded model to write: its files, and the index that maps tensors to files.
#[derive(Debug, Clone)]
pub struct ShardPlans {
    shards: Vec<ShardPlan>,
    index_name: String,
    index: String,
}

impl ShardPlans {
    /// Returns the files in the order of their numbers.
    #[must_use]
    pub fn shards(&self) -> &[ShardPlan] {
        &self.shards
    }

    /// Returns the index's file name, such as `model.safetensors.index.json`.
    #[must_use]
    pub fn index_name(&self) -> &str {
        &self.index_name
    }

    /// Returns the text of the index.
    ///
    /// Write it last, so that readers of a new folder find no model until it is complete.
    #[must_use]
    pub fn index(&self) -> &str {
        &self.index
    }
}

impl PlanBuilder {
    /// Builds the plans of a sharded model and its index. No file is larger than `file_bytes`,
    /// except that a tensor too large for this gets a file of its own.
    ///
    /// Tensors are divided in the order in which they were added, so tensors of one layer stay
    /// together. `base` is the prefix of the file names, usually `model`. Every file gets the
    /// metadata.
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
    /// Returns an error if the format or the limits do not allow one of the files, or if `base`
    /// does not make a valid shard name.
    pub fn shards(&self, base: &str, file_bytes: u64) -> Result<ShardPlans, WriteError> {
        self.check_names()?;
        let parts = self.split(file_bytes);
        let count = parts.len();
        let mut shards = Vec::with_capacity(count);
        for (number, part) in (1_u64..).zip(parts) {
            let name = format!("{base}-{number:05}-of-{count:05}.safetensors");
            if let Some(fault) = shard_name_fault(&name) {
                return Err(WriteError::refused(ErrorKind::ShardName { fault }));
            }
            shards.push(ShardPlan { name, plan: self.plan_of(part)? });
        }
        let index = index_text(&shards);
        Ok(ShardPlans { shards, index_name: format!("{base}.safetensors.index.json"), index })
    }

    /// Rejects duplicate names. Checking each file alone would miss duplicates in different files.
    fn check_names(&self) -> Result<(), WriteError> {
        let mut names: Vec<_> = (0_u64..).zip(&self.tensors).collect();
        names.sort_by_key(|(_, spec)| spec.name.as_str());
        for pair in names.windows(2) {
            let [(first, a), (_, b)] = pair else { continue };
            if a.name == b.name {
                let error = WriteError::refused(ErrorKind::NameRepeated { first: *first });
                return Err(error.with_tensor(Some(&b.name)));
            }
        }
        Ok(())
    }

    /// Returns the tensors of each file.
    fn split(&self, file_bytes: u64) -> Vec<&[Spec]> {
        let fixed = self.fixed_bytes();
        let mut parts = Vec::new();
        let (mut rest, mut count, mut bytes) = (self.tensors.as_slice(), 0_usize, fixed);
        for spec in &self.tensors {
            let more = spec.max_bytes();
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

    /// Returns an upper bound of the length of a file without tensors, including padding.
    fn fixed_bytes(&self) -> u64 {
        let mut measure = Measure::default();
        let pairs = self.metadata.as_ref().map(crate::write::build::pairs);
        // `Measure` never fails.
        let _ = write_header(&mut measure, pairs.as_deref(), &[]);
        measure.len().saturating_add(8).saturating_add(self.options.align)
    }
}

impl Spec {
    /// Returns an upper bound of the bytes that the tensor adds to a file: its data and its entry.
    fn max_bytes(&self) -> u64 {
        /// The most digits that the two offsets add. In the measured entry both are 0.
        const OFFSETS: u64 = 2 * 19;
        let mut measure = Measure::default();
        // `Measure` never fails.
        let _ = write_header(&mut measure, None, &[self.plan()]);
        let elements = Shape::wide(&self.shape).elements();
        let data = elements.and_then(|elements| self.dtype.byte_len(elements).ok());
        measure.len().saturating_add(OFFSETS).saturating_add(data.unwrap_or(u64::MAX))
    }
}

/// Returns the text of the index, formatted as the Hugging Face libraries do: indented by two
/// spaces, with sorted names.
fn index_text(shards: &[ShardPlan]) -> String {
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
        // Writing to a string never fails.
        let _ = write_string(&mut TextWriter(&mut text), name);
        text.push_str(": ");
        let _ = write_string(&mut TextWriter(&mut text), shard);
        before = ",\n    ";
    }
    text.push_str(if names.is_empty() { "}\n}\n" } else { "\n  }\n}\n" });
    text
}
