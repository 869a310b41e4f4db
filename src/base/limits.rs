//! The reader's bounds and strictness rules, as plain fields.

use crate::base::dtype::DtypeSet;

/// What a reader accepts: bounds on sizes and counts, and whether to follow the format's README or
/// its reference implementation where they differ.
///
/// Start from a preset and change what you need:
///
/// ```
/// use safetensors_zero::Limits;
///
/// let mut limits = Limits::TIGHT;
/// limits.tensors = 500;
/// limits.unknown_keys = true;
/// ```
///
/// Every bound is an inclusive maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the header's text, without the 8 bytes of its length. Headers of about 4 GiB or
    /// more are always rejected, since positions in them are stored in 32 bits.
    pub header_bytes: u64,
    /// Levels of nesting in the values of unknown keys, which are skipped. The header's object is
    /// level 1.
    pub depth: u8,
    /// Tensors in a file.
    pub tensors: u32,
    /// Keys of `__metadata__`.
    pub metadata_entries: u32,
    /// Bytes of a tensor's name, decoded to UTF-8.
    pub name_bytes: u32,
    /// Bytes of any other key or property, decoded to UTF-8: the keys of `__metadata__` and of
    /// entries, dtypes, and strings in the values of unknown keys.
    pub string_bytes: u32,
    /// Bytes of a value in `__metadata__`, decoded to UTF-8.
    pub metadata_value_bytes: u32,
    /// Dimensions of a tensor.
    pub rank: u32,
    /// The largest integer in `data_offsets`, and the largest dimension of a tensor that has
    /// elements.
    pub integer: u64,
    /// The largest dimension of a tensor that has no elements, such as `[0, 18446744073709551615]`.
    pub empty_dimension: u64,
    /// Dtypes that a tensor can have.
    pub dtypes: DtypeSet,
    /// Elements that one call can widen to `f32`.
    pub dequant_elements: u64,
    /// Accepts white space before the header's `{`. The README says that a header must begin with
    /// `{`, but the reference accepts white space on purpose.
    pub leading_whitespace: bool,
    /// Accepts any JSON white space as padding after the header's `}`. The README allows only
    /// spaces (0x20); the reference allows all four characters.
    pub any_padding: bool,
    /// Accepts keys other than `dtype`, `shape` and `data_offsets` in an entry and skips their
    /// values, which must still be valid JSON. The README does not mention them, the JSON schema
    /// next to it forbids them, some writers add them, and the reference ignores them.
    pub unknown_keys: bool,
    /// Accepts `"__metadata__": null` as no metadata. The README says that it is a map, but MLX
    /// writes null and the reference accepts it.
    pub null_metadata: bool,
}

impl Limits {
    /// Accepts every honest file that the reference implementation accepts. This is what
    /// [`Limits::default`] returns.
    pub const DEFAULT: Limits = Limits {
        header_bytes: 100_000_000,
        depth: 128,
        tensors: u32::MAX,
        metadata_entries: u32::MAX,
        name_bytes: u32::MAX,
        string_bytes: u32::MAX,
        metadata_value_bytes: u32::MAX,
        rank: u32::MAX,
        integer: u64::MAX,
        empty_dimension: u64::MAX,
        dtypes: DtypeSet::ALL,
        dequant_elements: u64::MAX,
        leading_whitespace: true,
        any_padding: true,
        unknown_keys: true,
        null_metadata: true,
    };

    /// Follows the format's README to the letter. Bounds are those of [`Limits::DEFAULT`], except
    /// for NumPy's limit of 64 dimensions and integers of at most 2^48 - 1, from the JSON schema
    /// next to the README. Dimensions of a tensor without elements can be up to 2^63 - 1, the
    /// largest that frameworks support.
    pub const STRICT: Limits = Limits {
        rank: 64,
        integer: (1 << 48) - 1,
        empty_dimension: (1 << 63) - 1,
        leading_whitespace: false,
        any_padding: false,
        unknown_keys: false,
        null_metadata: false,
        ..Limits::DEFAULT
    };

    /// [`Limits::STRICT`] with bounds for services that accept untrusted files. Honest models stay
    /// far below them. Dtypes smaller than a byte and 8-bit floats are rejected.
    pub const TIGHT: Limits = Limits {
        header_bytes: 8 << 20,
        depth: 8,
        tensors: 50_000,
        metadata_entries: 50_000,
        name_bytes: 1024,
        string_bytes: 1024,
        metadata_value_bytes: 64 << 10,
        rank: 16,
        dtypes: DtypeSet::WHOLE_BYTES.difference(DtypeSet::FLOAT8),
        dequant_elements: 1 << 27,
        ..Limits::STRICT
    };
}

impl Default for Limits {
    /// Returns [`Limits::DEFAULT`].
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// What a reader of shard indexes accepts, including differences between an index and its shards.
///
/// Every bound is an inclusive maximum. Each shard is also subject to [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexLimits {
    /// Bytes of the index. Indexes of about 4 GiB or more are always rejected.
    pub bytes: u64,
    /// Levels of nesting in values that are skipped. The index's object is level 1.
    pub depth: u8,
    /// Tensors in the index.
    pub tensors: u32,
    /// Shards in the index.
    pub shards: u32,
    /// Bytes of a tensor's name, decoded to UTF-8.
    pub name_bytes: u32,
    /// Bytes of a shard's name, decoded to UTF-8.
    pub shard_name_bytes: u32,
    /// Bytes of any other string, decoded to UTF-8.
    pub string_bytes: u32,
    /// Accepts shards in subfolders of the index's folder.
    pub subfolders: bool,
    /// Accepts `./` before a shard's name.
    pub dot_prefix: bool,
    /// Accepts an empty `weight_map`.
    pub empty_weight_map: bool,
    /// Accepts `"metadata": null` as no metadata.
    pub null_metadata: bool,
    /// Accepts a `total_size` that is not a natural number, or not the sum of the tensors' sizes.
    pub any_total_size: bool,
    /// Accepts tensors in shards that the index does not list. They are not part of the model.
    pub unlisted_tensors: bool,
    /// Accepts a tensor that is present in more than one shard. The index decides which one is
    /// used.
    pub tensors_in_two_shards: bool,
}

impl IndexLimits {
    /// Accepts every honest index that common loaders accept. This is what [`IndexLimits::default`]
    /// returns.
    pub const DEFAULT: IndexLimits = IndexLimits {
        bytes: 250_000_000,
        depth: 128,
        tensors: u32::MAX,
        shards: 10_000,
        name_bytes: u32::MAX,
        shard_name_bytes: 4096,
        string_bytes: u32::MAX,
        subfolders: true,
        dot_prefix: true,
        empty_weight_map: true,
        null_metadata: true,
        any_total_size: true,
        unlisted_tensors: true,
        tensors_in_two_shards: true,
    };

    /// Accepts an index only if it agrees exactly with its shards, and is in the plainest form.
    pub const STRICT: IndexLimits = IndexLimits {
        subfolders: false,
        dot_prefix: false,
        empty_weight_map: false,
        null_metadata: false,
        any_total_size: false,
        unlisted_tensors: false,
        tensors_in_two_shards: false,
        ..IndexLimits::DEFAULT
    };
}

impl Default for IndexLimits {
    /// Returns [`IndexLimits::DEFAULT`].
    fn default() -> Self {
        IndexLimits::DEFAULT
    }
}
