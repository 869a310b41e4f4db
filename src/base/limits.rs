//! Every bound and every strictness rule of the reader, as plain fields.

use crate::base::dtype::DtypeSet;

/// What a reader accepts: bounds on sizes and counts, and the rules on which the format's README
/// and its reference implementation differ.
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
/// Every bound is inclusive: what is equal to it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the header's text, without the 8 bytes of its length. Whatever is set here, a header
    /// of about 4 GiB or more is refused, since positions in it are kept in 32 bits.
    pub header_bytes: u64,
    /// Levels of nesting, counted from the header's own object as level 1, in values that are
    /// skipped (those of unknown keys).
    pub depth: u8,
    /// Tensors in a file.
    pub tensors: u32,
    /// Keys of `__metadata__`.
    pub metadata_entries: u32,
    /// Bytes of a tensor's name, decoded, as UTF-8.
    pub name_bytes: u32,
    /// Bytes of any other string that is a key or a property, decoded, as UTF-8: the keys of
    /// `__metadata__` and of entries, dtypes, and strings in the values of unknown keys.
    pub string_bytes: u32,
    /// Bytes of a value in `__metadata__`, decoded, as UTF-8.
    pub metadata_value_bytes: u32,
    /// Dimensions of a tensor.
    pub rank: u32,
    /// Value of an integer: both `data_offsets`, and each dimension of a tensor that has elements.
    pub integer: u64,
    /// Value of a dimension of a tensor that has no elements, such as `[0, 18446744073709551615]`.
    pub empty_dimension: u64,
    /// Dtypes that a tensor may have.
    pub dtypes: DtypeSet,
    /// Elements that one call may widen to `f32`.
    pub dequant_elements: u64,
    /// Accept white space before the header's `{`. The README says that a header must begin with
    /// `{`; the reference accepts white space on purpose.
    pub leading_whitespace: bool,
    /// Accept every JSON white space as padding after the header's `}`. The README allows only
    /// spaces (0x20); the reference allows all.
    pub any_padding: bool,
    /// Accept keys other than `dtype`, `shape` and `data_offsets` in an entry, and skip their
    /// values, which still have to be valid JSON. The README is silent, the schema beside it forbids
    /// them, some writers add them and the reference ignores them.
    pub unknown_keys: bool,
    /// Accept `"__metadata__": null` as no metadata. The README says that it is a map; MLX writes
    /// null and the reference accepts it.
    pub null_metadata: bool,
}

impl Limits {
    /// Accepts what the reference implementation accepts of honest files. It is what
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

    /// The format's README to the letter, with the default's bounds, the 64 dimensions of NumPy and
    /// the integers of the JSON schema beside the README: at most 2^48 - 1. The dimensions of a
    /// tensor without elements, which measure nothing, are bounded by 2^63 - 1 instead, the largest
    /// that frameworks can hold.
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

    /// [`Limits::STRICT`] with bounds for services that take files from strangers: sizes that
    /// honest models stay far below, and no dtypes smaller than a byte nor 8-bit floats unless asked
    /// for.
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
    /// [`Limits::DEFAULT`].
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// What a reader of shard indexes accepts, and what it makes of an index whose shards do not fit it.
///
/// Every bound is inclusive: what is equal to it is accepted. Each shard has [`Limits`] besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexLimits {
    /// Bytes of the index. Whatever is set here, one of about 4 GiB or more is refused.
    pub bytes: u64,
    /// Levels of nesting, counted from the index's own object as level 1, in values that are skipped.
    pub depth: u8,
    /// Tensors of the index.
    pub tensors: u32,
    /// Shards of the index.
    pub shards: u32,
    /// Bytes of a tensor's name, decoded, as UTF-8.
    pub name_bytes: u32,
    /// Bytes of a shard's name, decoded, as UTF-8.
    pub shard_name_bytes: u32,
    /// Bytes of any other string, decoded, as UTF-8.
    pub string_bytes: u32,
    /// Accept shards in subfolders of the index's folder.
    pub subfolders: bool,
    /// Accept `./` before a shard's name.
    pub dot_prefix: bool,
    /// Accept a `weight_map` without tensors.
    pub empty_weight_map: bool,
    /// Accept `"metadata": null` as no metadata.
    pub null_metadata: bool,
    /// Accept a `total_size` that is no natural number, or not the sum of the tensors' bytes.
    pub any_total_size: bool,
    /// Accept tensors in shards that the index does not list. They are no part of the model.
    pub unlisted_tensors: bool,
    /// Accept a tensor that more than one shard has. The index tells which one counts.
    pub tensors_in_two_shards: bool,
}

impl IndexLimits {
    /// Accepts what loaders accept of honest indexes. It is what [`IndexLimits::default`] returns.
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

    /// Accepts an index only if it and its shards say exactly the same, in the plainest form.
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
    /// [`IndexLimits::DEFAULT`].
    fn default() -> Self {
        IndexLimits::DEFAULT
    }
}
