//! Where the network's weights come from: views of a file in memory or in flash, or a source that
//! is read a piece at a time.

use core::fmt;

use safetensors_zero::{Dtype, Error, ReadError, Reader, SafeTensors, Source, Table};

/// Elements that are asked for at once, at most: 512 bytes.
pub const PIECE: usize = 128;

/// What the network has to do with its weights.
pub trait Weights {
    /// Why weights could not be read.
    type Error;

    /// Elements of a tensor, from `first` on: as many as asked for, which are in the tensor, and at
    /// most [`PIECE`].
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

    /// Names and shapes in the file, in the order of the variants.
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

    /// The first three dimensions, ones where there are fewer.
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

/// What a file has to be for this network and is not.
#[derive(Debug, Clone, Copy)]
pub enum Unfit {
    /// It has not this tensor, or not as elements that can be viewed in place.
    Tensor(&'static str, Error),
    /// This tensor has another dtype than F32, or another shape than this.
    Shape(&'static str, &'static [u64]),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Tensor(name, error) => write!(f, "tensor {name:?}: {error}"),
            Unfit::Shape(name, shape) => write!(f, "tensor {name:?} is not F32 {shape:?}"),
        }
    }
}

/// Whether the file has all of the network's tensors, in their shapes.
fn check(table: &Table<'_, '_>) -> Result<(), Unfit> {
    for (name, shape) in Tensor::FILE {
        let info = table.info(name).map_err(|error| Unfit::Tensor(name, error))?;
        if info.dtype != Dtype::F32 || !info.shape.iter().eq(shape.iter().copied()) {
            return Err(Unfit::Shape(name, shape));
        }
    }
    Ok(())
}

/// Weights of a file that is in memory, as it is there: nothing is copied.
pub struct Resident<'a> {
    tensors: [&'a [f32]; Tensor::COUNT],
}

impl<'a> Resident<'a> {
    pub fn open(file: &SafeTensors<'a, '_>) -> Result<Self, Unfit> {
        check(file.table())?;
        let mut tensors: [&[f32]; Tensor::COUNT] = [&[]; Tensor::COUNT];
        for (place, (name, _)) in tensors.iter_mut().zip(Tensor::FILE) {
            let elements = file.tensor(name).and_then(|view| view.as_slice::<f32>());
            *place = elements.map_err(|error| Unfit::Tensor(name, error))?;
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

/// Weights that stay where they are: what is in memory of them is one piece.
pub struct Streamed<'r, 'a, 's, S> {
    reader: &'r Reader<'a, 's, S>,
    piece: [f32; PIECE],
}

impl<'r, 'a, 's, S: Source> Streamed<'r, 'a, 's, S> {
    pub fn open(reader: &'r Reader<'a, 's, S>) -> Result<Self, Unfit> {
        check(reader.table())?;
        Ok(Streamed { reader, piece: [0.0; PIECE] })
    }
}

impl<S: Source> Weights for Streamed<'_, '_, '_, S> {
    type Error = ReadError<S::Error>;

    fn piece(&mut self, tensor: Tensor, first: usize, len: usize) -> Result<&[f32], Self::Error> {
        let piece = &mut self.piece[..len];
        // A tensor is found by some 400 instructions; to keep all 15 takes 1.5 KB.
        let tensor = self.reader.tensor(tensor.name())?;
        // F32 passes through another buffer on big-endian machines only.
        tensor.dequant_range(first as u64, piece, &mut [0; 8])?;
        Ok(piece)
    }
}
