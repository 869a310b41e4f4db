//! Writing with an allocator: plans that own their names, and whole files as byte vectors.

use core::fmt;

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

#[cfg(not(target_has_atomic = "ptr"))]
use alloc::rc::Rc as Shared;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc as Shared;

use crate::base::dtype::Dtype;
use crate::base::error::ErrorKind;
use crate::header::shape::Shape;
use crate::table::owned::OwnedTable;
use crate::table::table::Table;
use crate::tensor::view::TensorView;
use crate::write::error::{WriteError, WriteErrorKind};
use crate::write::plan::{Plan, PlanOptions, PlanTensor};

/// A tensor that can be serialized.
///
/// [`TensorView`] implements it. Implement it for your own tensor types.
///
/// ```
/// use safetensors_zero::{serialize, Dtype, SafeTensors, Shape, View};
/// use std::borrow::Cow;
///
/// struct Bytes(Vec<u8>, [usize; 1]);
///
/// impl View for Bytes {
///     fn dtype(&self) -> Dtype {
///         Dtype::U8
///     }
///     fn shape(&self) -> Shape<'_> {
///         Shape::new(&self.1)
///     }
///     fn data(&self) -> Cow<'_, [u8]> {
///         Cow::Borrowed(&self.0)
///     }
/// }
///
/// let file = serialize([("a", Bytes(vec![1, 2, 3], [3]))], None)?;
/// assert_eq!(SafeTensors::deserialize(&file)?.tensor("a")?.data(), [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait View {
    /// Returns the type of the elements.
    fn dtype(&self) -> Dtype;
    /// Returns the dimensions.
    fn shape(&self) -> Shape<'_>;
    /// Returns the elements as little-endian bytes in row-major order. Called once, just before the
    /// data is written.
    fn data(&self) -> Cow<'_, [u8]>;
}

impl<V: View + ?Sized> View for &V {
    fn dtype(&self) -> Dtype {
        (**self).dtype()
    }

    fn shape(&self) -> Shape<'_> {
        (**self).shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        (**self).data()
    }
}

impl View for TensorView<'_> {
    fn dtype(&self) -> Dtype {
        TensorView::dtype(self)
    }

    fn shape(&self) -> Shape<'_> {
        TensorView::shape(self)
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(TensorView::data(self))
    }
}

/// Serializes tensors to a safetensors file in memory, with [`PlanOptions::default`].
///
/// The same tensors and metadata produce the same bytes, whatever order they are passed in.
/// Allocates the size of the file plus about 100 bytes per tensor.
///
/// ```
/// use safetensors_zero::{serialize, SafeTensors};
///
/// # let bytes = std::fs::read("examples/animals.safetensors")?;
/// let file = SafeTensors::deserialize(&bytes)?;
/// let wanted = ["embedding.weight"];
/// let tensors = wanted.map(|name| (name, file.tensor(name).unwrap()));
/// let metadata = [("format".to_string(), "pt".to_string())].into();
/// let smaller = serialize(tensors, Some(metadata))?;
/// assert_eq!(SafeTensors::deserialize(&smaller)?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error if the format does not allow the file, if a view's data does not have the
/// length that its dtype and shape need, or if there is not enough memory.
pub fn serialize<S: AsRef<str>, V: View>(
    tensors: impl IntoIterator<Item = (S, V)>,
    metadata: Option<BTreeMap<String, String>>,
) -> Result<Vec<u8>, WriteError> {
    serialize_with(tensors, metadata, &PlanOptions::DEFAULT)
}

/// Like [`serialize`], with the given options.
///
/// # Errors
/// Same as [`serialize`].
pub fn serialize_with<S: AsRef<str>, V: View>(
    tensors: impl IntoIterator<Item = (S, V)>,
    metadata: Option<BTreeMap<String, String>>,
    options: &PlanOptions,
) -> Result<Vec<u8>, WriteError> {
    let views: Vec<(S, V)> = tensors.into_iter().collect();
    with_plan(&views, metadata.as_ref(), options, |plan| {
        let bytes = plan.file_len();
        let no_memory = || WriteError::new(WriteErrorKind::OutOfMemory { bytes });
        let mut file = Vec::new();
        let len = usize::try_from(bytes).map_err(|_| no_memory())?;
        file.try_reserve_exact(len).map_err(|_| no_memory())?;
        file.extend_from_slice(&plan.frame());
        // Writing to a vector never fails.
        let _ = plan.write_header(&mut Utf8Vec(&mut file));
        for_each_view(plan, &views, |data| {
            file.extend_from_slice(data);
            Ok(())
        })?;
        Ok(file)
    })
}

/// Plans a file of views, and calls `run` with the plan.
pub(crate) fn with_plan<S: AsRef<str>, V: View, R>(
    views: &[(S, V)],
    metadata: Option<&BTreeMap<String, String>>,
    options: &PlanOptions,
    run: impl FnOnce(&Plan<'_, '_>) -> Result<R, WriteError>,
) -> Result<R, WriteError> {
    let mut tensors: Vec<_> = views
        .iter()
        .map(|(name, view)| PlanTensor::new(name.as_ref(), view.dtype(), view.shape()))
        .collect();
    let mut pairs = metadata.map(pairs);
    let plan = Plan::new(&mut tensors, pairs.as_deref_mut(), options).map_err(|error| {
        let tensor = error.tensor().and_then(|at| views.get(at));
        WriteError::refused(error.kind()).with_tensor(tensor.map(|(name, _)| name.as_ref()))
    })?;
    run(&plan)
}

/// Calls `each` with the data of each view, in the plan's order. Checks that its length is the
/// planned one.
pub(crate) fn for_each_view<S: AsRef<str>, V: View>(
    plan: &Plan<'_, '_>,
    views: &[(S, V)],
    mut each: impl FnMut(&[u8]) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    for tensor in plan.tensors() {
        let Some((_, view)) = views.get(tensor.index()) else { continue };
        let data = view.data();
        check_len(tensor.byte_len(), data.len())
            .and_then(|()| each(&data))
            .map_err(|error| error.with_tensor(Some(tensor.name())))?;
    }
    Ok(())
}

fn check_len(needed: u64, given: usize) -> Result<(), WriteError> {
    let written = crate::base::convert::to_u64(given);
    if written == needed {
        return Ok(());
    }
    Err(WriteError::refused(if written < needed {
        ErrorKind::DataMissing { needed, written }
    } else {
        ErrorKind::DataExcess { needed, written }
    }))
}

pub(super) fn pairs(metadata: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

/// A byte vector that text is appended to.
struct Utf8Vec<'v>(&'v mut Vec<u8>);

impl fmt::Write for Utf8Vec<'_> {
    fn write_str(&mut self, string: &str) -> fmt::Result {
        self.0.extend_from_slice(string.as_bytes());
        Ok(())
    }
}

/// A tensor to write: everything but its data.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<u64>,
}

impl Spec {
    pub(super) fn plan(&self) -> PlanTensor<'_> {
        PlanTensor::new(&self.name, self.dtype, Shape::wide(&self.shape))
    }
}

/// A builder that collects names, dtypes, shapes and metadata for an [`OwnedPlan`].
///
/// ```
/// use safetensors_zero::{Dtype, PlanBuilder};
///
/// let mut builder = PlanBuilder::new();
/// builder.metadata("format", "pt");
/// builder.tensor("embedding.weight", Dtype::F16, [1000, 64]);
/// builder.tensor("embedding.scale", Dtype::F32, []);
/// let plan = builder.plan()?;
/// assert_eq!(plan.data_len(), 1000 * 64 * 2 + 4);
/// # Ok::<(), safetensors_zero::WriteError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PlanBuilder {
    pub(super) tensors: Vec<Spec>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
    pub(super) options: PlanOptions,
}

impl PlanBuilder {
    /// Creates a builder without tensors and without metadata.
    #[must_use]
    pub fn new() -> Self {
        PlanBuilder::default()
    }

    /// Like [`PlanBuilder::new`], with the given options.
    #[must_use]
    pub fn with_options(options: PlanOptions) -> Self {
        PlanBuilder { options, ..PlanBuilder::default() }
    }

    /// Adds a tensor. It is checked when the plan is built.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        dtype: Dtype,
        shape: impl IntoIterator<Item = u64>,
    ) -> &mut Self {
        let shape = shape.into_iter().collect();
        self.tensors.push(Spec { name: name.into(), dtype, shape });
        self
    }

    /// Sets a metadata key to a value. Replaces an earlier value.
    pub fn metadata(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.metadata.get_or_insert_with(BTreeMap::new).insert(key.into(), value.into());
        self
    }

    /// Replaces all metadata. An empty map is written as an empty `__metadata__`; `None` writes no
    /// `__metadata__`.
    pub fn all_metadata(&mut self, metadata: Option<BTreeMap<String, String>>) -> &mut Self {
        self.metadata = metadata;
        self
    }

    /// Builds the plan of one file with all tensors.
    ///
    /// # Errors
    /// Returns an error if the format or the limits do not allow the file.
    pub fn plan(&self) -> Result<OwnedPlan, WriteError> {
        self.plan_of(&self.tensors)
    }

    /// Builds the plan of a file with some of the tensors.
    pub(super) fn plan_of(&self, specs: &[Spec]) -> Result<OwnedPlan, WriteError> {
        let mut tensors: Vec<_> = specs.iter().map(Spec::plan).collect();
        let mut pairs = self.metadata.as_ref().map(pairs);
        let plan = Plan::new(&mut tensors, pairs.as_deref_mut(), &self.options);
        let plan = plan.map_err(|error| {
            let tensor = error.tensor().and_then(|at| specs.get(at));
            WriteError::refused(error.kind()).with_tensor(tensor.map(|spec| spec.name.as_str()))
        })?;
        OwnedPlan::from_plan(&plan, &self.options)
    }
}

/// A [`Plan`] that owns its names: the header of a file to write, already checked by the reader.
///
/// Cloning is cheap: clones share the header and the table.
#[derive(Debug, Clone)]
pub struct OwnedPlan {
    table: Shared<OwnedTable>,
}

impl OwnedPlan {
    fn from_plan(plan: &Plan<'_, '_>, options: &PlanOptions) -> Result<OwnedPlan, WriteError> {
        let mut text = Vec::new();
        // Writing to a vector never fails.
        let _ = plan.write_header(&mut Utf8Vec(&mut text));
        let table = OwnedTable::parse(text, plan.data_len(), &options.limits)
            .map_err(|error| WriteError::refused(error.kind()))?;
        Ok(OwnedPlan { table: Shared::new(table) })
    }

    /// Returns the first 8 bytes of the file: the header's length.
    #[must_use]
    pub fn frame(&self) -> [u8; 8] {
        crate::base::convert::to_u64(self.header().len()).to_le_bytes()
    }

    /// Returns the header's text, including padding.
    #[must_use]
    pub fn header(&self) -> &str {
        self.table.header()
    }

    /// Returns the table of the planned tensors, in data order.
    #[must_use]
    pub fn table(&self) -> Table<'_, '_> {
        self.table.table()
    }

    /// Returns the offset of the data region in the file.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        self.table().data_start()
    }

    /// Returns the length of the data region in bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.table().data_len()
    }

    /// Returns the length of the file in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.data_start().saturating_add(self.data_len())
    }
}
