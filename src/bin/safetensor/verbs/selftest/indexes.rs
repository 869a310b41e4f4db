//! Shard indexes for `selftest`: valid ones, and one for each rule that an index alone can break.
//! The most important are shard names that lead out of the index's folder.

use safetensors_zero::{ErrorKind, IndexLimits, ShardNameFault as Fault, WeightMap};

use super::Refused::{self, Always, ByStrict, Never};

/// An index, and which rules must refuse it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) what: String,
    pub(super) text: String,
    pub(super) refused: Refused,
    /// The expected fault of the shard's name.
    pub(super) fault: Option<Fault>,
}

impl Case {
    /// Checks the case. An error says what the library did instead.
    pub(super) fn check(&self) -> Result<(), String> {
        let default = self.verdict(&IndexLimits::DEFAULT);
        let strict = self.verdict(&IndexLimits::STRICT);
        let right = match self.refused {
            Never => (&default, &strict) == (&None, &None),
            ByStrict(kind) => default.is_none() && self.is_for(strict.as_ref(), kind),
            Always(kind) => self.is_for(default.as_ref(), kind) && strict.is_some(),
        };
        if right {
            return Ok(());
        }
        let describe = |verdict: &Option<ErrorKind>| match verdict {
            Some(kind) => kind.to_string(),
            None => "accepted".to_owned(),
        };
        Err(format!("by default {}, by the strict rules {}", describe(&default), describe(&strict)))
    }

    fn verdict(&self, limits: &IndexLimits) -> Option<ErrorKind> {
        WeightMap::parse(self.text.clone().into_bytes(), limits).err().map(|error| error.kind())
    }

    fn is_for(&self, verdict: Option<&ErrorKind>, kind: &str) -> bool {
        let fault = match verdict {
            Some(ErrorKind::ShardName { fault }) => Some(*fault),
            _ => None,
        };
        verdict.is_some_and(|verdict| verdict.name() == kind) && fault == self.fault
    }
}

const NAMES: [(&str, Refused, Option<Fault>); 23] = [
    ("model-00001-of-00002.safetensors", Never, None),
    ("übung (1).safetensors", Never, None),
    ("..model.safetensors", Never, None),
    ("sub/model.safetensors", ByStrict("shard_name"), Some(Fault::Subfolder)),
    ("./model.safetensors", ByStrict("shard_name"), Some(Fault::DotPrefix)),
    ("../model.safetensors", Always("shard_name"), Some(Fault::Parent)),
    ("sub/../../model.safetensors", Always("shard_name"), Some(Fault::Parent)),
    ("/etc/model.safetensors", Always("shard_name"), Some(Fault::Absolute)),
    ("//server/share/model.safetensors", Always("shard_name"), Some(Fault::Absolute)),
    (r"..\\model.safetensors", Always("shard_name"), Some(Fault::Backslash)),
    (r"\\\\server\\share\\model.safetensors", Always("shard_name"), Some(Fault::Backslash)),
    ("C:model.safetensors", Always("shard_name"), Some(Fault::Colon)),
    ("https://example.org/model.safetensors", Always("shard_name"), Some(Fault::Colon)),
    (r"model\u0000.safetensors", Always("shard_name"), Some(Fault::Control)),
    (r"\u002e\u002e/model.safetensors", Always("shard_name"), Some(Fault::Parent)),
    ("sub/./model.safetensors", Always("shard_name"), Some(Fault::Dot)),
    ("sub//model.safetensors", Always("shard_name"), Some(Fault::Empty)),
    ("", Always("shard_name"), Some(Fault::Empty)),
    ("sub /model.safetensors", Always("shard_name"), Some(Fault::TrailingDot)),
    ("nul.safetensors", Always("shard_name"), Some(Fault::Device)),
    ("con         .safetensors", Always("shard_name"), Some(Fault::Device)),
    ("model.bin", Always("shard_name"), Some(Fault::Extension)),
    ("model.safetensors.index.json", Always("shard_name"), Some(Fault::Extension)),
];

const INDEXES: [(&str, &str, Refused); 9] = [
    (
        "an index with additional keys",
        r#"{"metadata":{"total_size":1,"x":[]},"weight_map":{"a":"m.safetensors"},"more":{}}"#,
        Never,
    ),
    ("an index without metadata", r#"{"weight_map":{"a":"m.safetensors"}}"#, Never),
    (
        "an index whose metadata is null",
        r#"{"metadata":null,"weight_map":{"a":"m.safetensors"}}"#,
        ByStrict("null_metadata"),
    ),
    ("an index without tensors", r#"{"weight_map":{}}"#, ByStrict("empty_weight_map")),
    ("an index without a weight_map", r#"{"metadata":{}}"#, Always("missing_key")),
    ("two weight_maps", r#"{"weight_map":{},"weight_map":{}}"#, Always("duplicate_key")),
    ("a weight_map that is a list", r#"{"weight_map":[]}"#, Always("wrong_type")),
    ("a shard that is a number", r#"{"weight_map":{"a":1}}"#, Always("wrong_type")),
    (
        "a tensor in two shards, once with an escape",
        r#"{"weight_map":{"a":"m.safetensors","\u0061":"n.safetensors"}}"#,
        Always("duplicate_name"),
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let of_name = |(name, refused, fault): &(&str, _, _)| Case {
        what: format!("a shard named \"{name}\""),
        text: format!(r#"{{"weight_map":{{"a":"{name}"}}}}"#),
        refused: *refused,
        fault: *fault,
    };
    let of_index = |(what, text, refused): &(&str, &str, _)| Case {
        what: (*what).to_owned(),
        text: (*text).to_owned(),
        refused: *refused,
        fault: None,
    };
    INDEXES.iter().map(of_index).chain(NAMES.iter().map(of_name)).collect()
}
