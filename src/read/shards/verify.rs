//! Compares an index with its shards, and reports every difference.

use core::fmt;
use core::ops::ControlFlow;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::prelude::v1::*;

use super::{Opened, Shards};
use crate::json::text::{Quoted, Text};
use crate::read::file::FileError;
use crate::read::index::TotalSize;
use crate::read::weight_map::WeightMap;

/// A difference found by [`Shards::verify`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of the difference.
    pub kind: FindingKind,
    /// The file concerned: a shard, the index, or a file that the index does not mention.
    pub path: PathBuf,
    /// The name of the tensor concerned, if there is one.
    pub tensor: Option<String>,
    /// Whether the model must be refused because of it. This depends on the
    /// [`IndexLimits`](crate::IndexLimits) that the model was opened with.
    pub refused: bool,
}

/// The kind of a difference between an index and its shards.
#[derive(Debug)]
#[non_exhaustive]
pub enum FindingKind {
    /// A shard is missing, cannot be opened, or is invalid. Always refused.
    Shard(FileError),
    /// The index lists a tensor in this shard, but the shard does not have it. Always refused.
    NotInShard,
    /// The shard has a tensor that the index does not list.
    Unlisted,
    /// The shard has a tensor that the index lists in another shard.
    ElsewhereToo {
        /// The path of the other shard.
        listed: PathBuf,
    },
    /// The index's `total_size` is not the size of its tensors.
    TotalSize {
        /// The index's `total_size`.
        stated: u64,
        /// The sum of the tensors' sizes in bytes.
        sum: u64,
    },
    /// The index's `total_size` is not a natural number below 2^64.
    TotalSizeNotNatural,
    /// The folder contains a safetensors file that the index does not mention. Never refused.
    Stray,
}

impl FindingKind {
    /// Returns a short name for logs and scripts, which is stable across versions.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            FindingKind::Shard(_) => "shard",
            FindingKind::NotInShard => "not_in_shard",
            FindingKind::Unlisted => "unlisted",
            FindingKind::ElsewhereToo { .. } => "elsewhere_too",
            FindingKind::TotalSize { .. } => "total_size",
            FindingKind::TotalSizeNotNatural => "total_size_not_natural",
            FindingKind::Stray => "stray",
        }
    }
}

impl Finding {
    /// Returns the finding without the path: one sentence that names the tensor, if there is one.
    #[must_use]
    pub fn sentence(&self) -> impl fmt::Display + '_ {
        Sentence(self)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.sentence())
    }
}

struct Sentence<'f>(&'f Finding);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tensor) = &self.0.tensor {
            write!(f, "tensor {}: ", Quoted(tensor))?;
        }
        match &self.0.kind {
            FindingKind::Shard(error) => error.sentence().fmt(f),
            FindingKind::NotInShard => {
                f.write_str("the index lists it in this shard, but the shard does not have it")
            }
            FindingKind::Unlisted => f.write_str("the index does not list it"),
            FindingKind::ElsewhereToo { listed } => {
                let listed = listed.to_string_lossy();
                write!(f, "the index lists it in {}", Quoted(&listed))
            }
            FindingKind::TotalSize { stated, sum } => {
                write!(f, "total_size is {stated}, but the tensors have {sum} bytes")
            }
            FindingKind::TotalSizeNotNatural => {
                f.write_str("total_size is not a natural number that fits in 64 bits")
            }
            FindingKind::Stray => f.write_str("the index does not mention this file"),
        }
    }
}

impl Shards {
    /// Checks the index against the headers of all shards, and returns all findings. The model is
    /// valid unless one of them is [`refused`](Finding::refused).
    ///
    /// Reads no tensor data. Headers that were not read before are read one at a time and not kept.
    #[must_use]
    pub fn verify(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let _ = self.verify_each(|finding| {
            findings.push(finding);
            ControlFlow::<()>::Continue(())
        });
        findings
    }

    /// Like [`Shards::verify`], but calls `each` with every finding as soon as it is found, until
    /// it returns [`ControlFlow::Break`].
    pub fn verify_each<B>(
        &self,
        mut each: impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let Some(index) = &self.index else {
            return match self.with_opened(0, |_| ControlFlow::Continue(())) {
                Ok(done) => done,
                Err(error) => each(self.shard_finding(0, error)),
            };
        };
        let limits = &self.options.index;
        let mut sum = Some(0_u128);
        let listed = Listed::of(&index.map);
        for shard in 0..self.shards() {
            let checked = self.with_opened(shard, |opened| {
                self.verify_shard(shard, opened, &index.map, listed.of_shard(shard), &mut each)
            });
            match checked {
                Ok(ControlFlow::Continue(bytes)) => sum = sum.map(|sum| sum.saturating_add(bytes)),
                Ok(ControlFlow::Break(value)) => return ControlFlow::Break(value),
                Err(error) => {
                    sum = None;
                    each(self.shard_finding(shard, error))?;
                }
            }
        }
        let index_finding = |kind| Finding {
            kind,
            path: index.path.clone(),
            tensor: None,
            refused: !limits.any_total_size,
        };
        match (index.map.total_size(), sum) {
            (TotalSize::Other, _) => each(index_finding(FindingKind::TotalSizeNotNatural))?,
            (TotalSize::Bytes(stated), Some(sum)) if u128::from(stated) != sum => {
                let sum = u64::try_from(sum).unwrap_or(u64::MAX);
                each(index_finding(FindingKind::TotalSize { stated, sum }))?;
            }
            _ => {}
        }
        self.strays(&index.map, &mut each)
    }

    fn shard_finding(&self, shard: usize, error: FileError) -> Finding {
        let path = self.path(shard).to_path_buf();
        Finding { kind: FindingKind::Shard(error), path, tensor: None, refused: true }
    }

    /// Runs a function on a shard. Reads its header if it has not been read, and does not keep it.
    fn with_opened<T>(&self, shard: usize, run: impl FnOnce(&Opened) -> T) -> Result<T, FileError> {
        if let Some(opened) = self.shards.get(shard).and_then(|shard| shard.opened.get()) {
            return Ok(run(opened));
        }
        let (_, opened) = self.read(self.path(shard))?;
        Ok(run(&opened))
    }

    /// Checks one shard. Returns the size of its listed tensors in bytes.
    fn verify_shard<B>(
        &self,
        shard: usize,
        opened: &Opened,
        map: &WeightMap,
        listed: &[Text<'_>],
        each: &mut impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B, u128> {
        let limits = &self.options.index;
        let table = opened.table.table();
        let mut found = |kind, tensor: &str, refused| {
            let path = self.path(shard).to_path_buf();
            each(Finding { kind, path, tensor: Some(tensor.into()), refused })
        };
        let mut bytes = 0_u128;
        for info in &table {
            let name = info.name.to_cow();
            match map.shard_of(&name) {
                None => found(FindingKind::Unlisted, &name, !limits.unlisted_tensors)?,
                Some(other) if other != shard => {
                    let listed = self.path(other).to_path_buf();
                    let refused = !limits.tensors_in_two_shards;
                    found(FindingKind::ElsewhereToo { listed }, &name, refused)?;
                }
                Some(_) => bytes = bytes.saturating_add(u128::from(info.byte_len())),
            }
        }
        for name in listed {
            let name = name.to_cow();
            if table.info(&name).is_err() {
                found(FindingKind::NotInShard, &name, true)?;
            }
        }
        ControlFlow::Continue(bytes)
    }

    /// Reports the safetensors files in the index's folder that it does not mention.
    fn strays<B>(
        &self,
        map: &WeightMap,
        each: &mut impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let folder = self.index_path().and_then(|path| path.parent());
        let folder = match folder {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mentioned: HashSet<&String> = map.shards().iter().collect();
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut strays: Vec<String> = names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".safetensors"))
            .filter(|name| !mentioned.contains(name))
            .collect();
        strays.sort_unstable();
        for name in strays {
            let path = folder.join(name);
            each(Finding { kind: FindingKind::Stray, path, tensor: None, refused: false })?;
        }
        ControlFlow::Continue(())
    }
}

/// The names in an index, grouped by shard.
struct Listed<'m> {
    names: Vec<Text<'m>>,
    /// The position of each shard's first name.
    starts: Vec<usize>,
}

impl<'m> Listed<'m> {
    fn of(map: &'m WeightMap) -> Listed<'m> {
        let mut pairs: Vec<(usize, Text<'m>)> =
            map.iter().map(|(name, shard)| (shard, name)).collect();
        pairs.sort_by_key(|(shard, _)| *shard);
        let starts = (0..map.shards().len())
            .map(|shard| pairs.partition_point(|(of, _)| *of < shard))
            .collect();
        Listed { names: pairs.into_iter().map(|(_, name)| name).collect(), starts }
    }

    fn of_shard(&self, shard: usize) -> &[Text<'m>] {
        let start = |shard| self.starts.get(shard).copied().unwrap_or(self.names.len());
        self.names.get(start(shard)..start(shard.saturating_add(1))).unwrap_or_default()
    }
}
