//! The sources of the network's weights: views of a file in memory or in flash, or a source that is
//! read piece by piece.

use core::fmt;

use safetensors_zero::{Dtype, Error, ReadError, Reader, SafeTensors, Source, Table};

/// The maximum number of elements in a piece: 512 bytes.
pub const PIECE: usize = 128;

/// Access to the network's weights.
pub trait Weights {
    /// The error of a failed read.
    type Error;

    /// Returns `len` elements of a tensor from `first` on. They have to be inside the tensor, and
    /// `len` is at most [`PIECE`].
    fn piece(&mut self, tensor: Tensor, first: usize, len: usize) -> Result<&[f32], Self::Error>;
}

/// The network's tensors.
#[derive(Clone, Copy)]
pub enum Tensor {
    Stft,
    Conv1,
    Conv1Bias,
    Conv2,
    Conv2Bias,
    Conv3,
    Conv3Bias,
    Conv4,
    Conv4Bias,
    LstmInput,
    LstmState,
    LstmInputBias,
    LstmStateBias,
    Last,
    LastBias,
}

impl Tensor {
    pub const COUNT: usize = 15;

    /// The tensors' names and shapes in the file, in the order of the variants.
    const FILE: [(&'static str, &'static [u64]); Tensor::COUNT] = [
        ("stft_conv.weight", &[258, 1, 256]),
        ("conv1.weight", &[128, 129, 3]),
        ("conv1.bias", &[128]),
        ("conv2.weight", &[64, 128, 3]),
        ("conv2.bias", &[64]),
        ("conv3.weight", &[64, 64, 3]),
        ("conv3.bias", &[64]),
        ("conv4.weight", &[128, 64, 3]),
        ("conv4.bias", &[128]),
        ("lstm_cell.weight_ih", &[512, 128]),
        ("lstm_cell.weight_hh", &[512, 128]),
        ("lstm_cell.bias_ih", &[512]),
        ("lstm_cell.bias_hh", &[512]),
        ("final_conv.weight", &[1, 128, 1]),
        ("final_conv.bias", &[1]),
    ];

    const fn name(self) -> &'static str {
        Tensor::FILE[self as usize].0
    }

    /// Returns the first three dimensions, padded with ones.
    pub(super) const fn shape(self) -> [usize; 3] {
        let dimensions = Tensor::FILE[self as usize].1;
        let mut shape = [1; 3];
        let mut at = 0;
        while at < dimensions.len() {
            shape[at] = dimensions[at] as usize;
            at += 1;
        }
        shape
    }
}

/// Why a file doesn't fit the network.
#[derive(Debug, Clone, Copy)]
pub enum Mismatch {
    /// The tensor is missing, or can't be viewed in place.
    Tensor(&'static str, Error),
    /// The tensor's dtype isn't F32, or its shape isn't this one.
    Shape(&'static str, &'static [u64]),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Tensor(name, error) => write!(f, "tensor {name:?}: {error}"),
            Mismatch::Shape(name, shape) => write!(f, "tensor {name:?} is not F32 {shape:?}"),
        }
    }
}

/// Checks that the file has all of the network's tensors with their shapes.
fn check(table: &Table<'_, '_>) -> Result<(), Mismatch> {
    for (name, shape) in Tensor::FILE {
        let info = table.info(name).map_err(|error| Mismatch::Tensor(name, error))?;
        if info.dtype != Dtype::F32 || !info.shape.iter().eq(shape.iter().copied()) {
            return Err(Mismatch::Shape(name, shape));
        }
    }
    Ok(())
}

/// Weights of a file in memory, used in place without copying.
pub struct Resident<'a> {
    tensors: [&'a [f32]; Tensor::COUNT],
}

impl<'a> Resident<'a> {
    pub fn open(file: &SafeTensors<'a, '_>) -> Result<Self, Mismatch> {
        check(file.table())?;
        let mut tensors: [&[f32]; Tensor::COUNT] = [&[]; Tensor::COUNT];
        for (place, (name, _)) in tensors.iter_mut().zip(Tensor::FILE) {
            let elements = file.tensor(name).and_then(|view| view.as_slice::<f32>());
            *place = elements.map_err(|error| Mismatch::Tensor(name, error))?;
        }
        Ok(Resident { tensors })
    }
}

impl Weights for Resident<'_> {
    type Error = core::convert::Infallible;

    fn piece(&mut self, tensor: Tensor, first: usize, len: usize) -> Result<&[f32], Self::Error> {
        Ok(&self.tensors[tensor as usize][first..][..len])
    }
}

/// Weights that stay in their source. Only one piece is in memory at a time.
pub struct Streamed<'r, 'a, 's, S> {
    reader: &'r Reader<'a, 's, S>,
    piece: [f32; PIECE],
}

impl<'r, 'a, 's, S: Source> Streamed<'r, 'a, 's, S> {
    pub fn open(reader: &'r Reader<'a, 's, S>) -> Result<Self, Mismatch> {
        check(reader.table())?;
        Ok(Streamed { reader, piece: [0.0; PIECE] })
    }
}

impl<S: Source> Weights for Streamed<'_, '_, '_, S> {
    type Error = ReadError<S::Error>;

    fn piece(&mut self, tensor: Tensor, first: usize, len: usize) -> Result<&[f32], Self::Error> {
        let piece = &mut self.piece[..len];
        // A look-up takes about 400 instructions. Keeping all 15 tensors would take 1.5 KB.
        let tensor = self.reader.tensor(tensor.name())?;
        // F32 needs the extra buffer only on big-endian machines.
        tensor.dequant_range(first as u64, piece, &mut [0; 8])?;
        Ok(piece)
    }
}
