//! Silero's voice-activity network (MIT) for 16 kHz, which computes the probability that a chunk of
//! sound contains speech.
//!
//! Nothing here needs `std` or an allocator. The example `voice_activity` and the firmware in
//! `examples/firmware` share this code. Weights are requested piece by piece through [`Weights`],
//! so they can be in memory, in flash, or behind a bus. Each weight is read once per chunk.
//!
//! The network:
//! - 512 samples, preceded by the last 64 and followed by 64 reflected ones
//! - a short-time Fourier transform, written as a convolution, and its magnitudes
//! - four convolutions, each with ReLU
//! - one step of an LSTM
//! - ReLU, one row of weights, and the sigmoid

pub mod weights;

use weights::{Tensor, Weights, PIECE};

/// The number of samples in a chunk.
pub const CHUNK: usize = 512;
/// The number of samples before a chunk that the network uses again.
const CONTEXT: usize = 64;
const WINDOW: usize = CONTEXT + CHUNK;
const REFLECTED: usize = 64;

/// The number of frequencies of the transform. Each has a real and an imaginary row.
const BINS: usize = 129;
/// The width of the LSTM.
const UNITS: usize = 128;
/// The number of frames of the transform. No layer has more places.
const FRAMES: usize = 4;

/// A convolution over time. Each row of its weights is applied to the input at several places.
struct Layer {
    weight: Tensor,
    bias: Option<Tensor>,
    rows: usize,
    /// A row has `channels` times `taps` elements.
    channels: usize,
    taps: usize,
    stride: usize,
    /// The number of elements in one channel of the input, padding included.
    width: usize,
}

impl Layer {
    const fn new(weight: Tensor, bias: Option<Tensor>, stride: usize, width: usize) -> Layer {
        let [rows, channels, taps] = weight.shape();
        Layer { weight, bias, rows, channels, taps, stride, width }
    }

    /// Returns the number of elements in the whole input.
    const fn input(&self) -> usize {
        self.channels * self.width
    }

    /// Returns the number of places where a row is applied, which is the number of elements in one
    /// channel of the output.
    const fn places(&self) -> usize {
        (self.width - self.taps) / self.stride + 1
    }

    /// Computes each row and calls `each` with its number and values.
    fn run<W: Weights>(
        &self,
        weights: &mut W,
        input: &[f32],
        mut each: impl FnMut(usize, &[f32]),
    ) -> Result<(), W::Error> {
        let row_len = self.channels * self.taps;
        // Whole channels, if at least one fits.
        let piece_len = if self.taps < PIECE { PIECE - PIECE % self.taps } else { PIECE };
        for row in 0..self.rows {
            let mut sums = [0.0; FRAMES];
            let sums = &mut sums[..self.places()];
            if let Some(bias) = self.bias {
                sums.fill(weights.piece(bias, row, 1)?[0]);
            }
            for first in (0..row_len).step_by(piece_len) {
                let len = piece_len.min(row_len - first);
                let piece = weights.piece(self.weight, row * row_len + first, len)?;
                let (mut channel, mut tap) = (first / self.taps, first % self.taps);
                for taps in piece.chunks(self.taps) {
                    let samples = &input[channel * self.width + tap..][..self.width - tap];
                    for (place, sum) in sums.iter_mut().enumerate() {
                        let samples = &samples[place * self.stride..];
                        *sum += taps.iter().zip(samples).map(|(weight, x)| weight * x).sum::<f32>();
                    }
                    (channel, tap) = (channel + 1, 0);
                }
            }
            each(row, sums);
        }
        Ok(())
    }

    /// Computes all rows with ReLU into `out`, with `padding` zeros at both ends of each row.
    fn relu<W: Weights>(
        &self,
        weights: &mut W,
        input: &[f32],
        out: &mut [f32],
        padding: usize,
    ) -> Result<(), W::Error> {
        let width = self.places() + 2 * padding;
        out.fill(0.0);
        self.run(weights, input, |row, values| {
            let places = &mut out[row * width + padding..][..values.len()];
            for (place, value) in places.iter_mut().zip(values) {
                *place = value.max(0.0);
            }
        })
    }
}

const TRANSFORM: Layer = Layer::new(Tensor::Stft, None, 128, WINDOW + REFLECTED);
const CONV1: Layer = Layer::new(Tensor::Conv1, Some(Tensor::Conv1Bias), 1, FRAMES + 2);
const CONV2: Layer = Layer::new(Tensor::Conv2, Some(Tensor::Conv2Bias), 2, FRAMES + 2);
const CONV3: Layer = Layer::new(Tensor::Conv3, Some(Tensor::Conv3Bias), 2, 2 + 2);
const CONV4: Layer = Layer::new(Tensor::Conv4, Some(Tensor::Conv4Bias), 1, 1 + 2);
const LSTM_INPUT: Layer = Layer::new(Tensor::LstmInput, Some(Tensor::LstmInputBias), 1, 1);
const LSTM_STATE: Layer = Layer::new(Tensor::LstmState, Some(Tensor::LstmStateBias), 1, 1);
const LAST: Layer = Layer::new(Tensor::Last, Some(Tensor::LastBias), 1, 1);

/// The network's state between chunks, and its buffers: 10 KB.
pub struct Network {
    context: [f32; CONTEXT],
    /// The LSTM's output and its cell.
    state: [f32; UNITS],
    cell: [f32; UNITS],
    samples: [f32; TRANSFORM.input()],
    even: [f32; CONV1.input()],
    odd: [f32; CONV2.input()],
}

impl Network {
    /// Creates a network in its initial state.
    pub const fn fresh() -> Network {
        Network {
            context: [0.0; CONTEXT],
            state: [0.0; UNITS],
            cell: [0.0; UNITS],
            samples: [0.0; TRANSFORM.input()],
            even: [0.0; CONV1.input()],
            odd: [0.0; CONV2.input()],
        }
    }

    /// Returns the probability that a chunk contains speech. Chunks have to be passed in order.
    pub fn hear<W: Weights>(
        &mut self,
        chunk: &[i16; CHUNK],
        weights: &mut W,
    ) -> Result<f32, W::Error> {
        self.load(chunk);
        self.magnitudes(weights)?;
        let Network { even, odd, .. } = self;
        CONV1.relu(weights, even, &mut odd[..CONV2.input()], 1)?;
        CONV2.relu(weights, odd, &mut even[..CONV3.input()], 1)?;
        CONV3.relu(weights, even, &mut odd[..CONV4.input()], 1)?;
        CONV4.relu(weights, odd, &mut even[..UNITS], 0)?;
        self.step_lstm(weights)?;

        let Network { state, even, .. } = self;
        for (place, value) in even.iter_mut().zip(&*state) {
            *place = value.max(0.0);
        }
        let mut logit = 0.0;
        LAST.run(weights, even, |_, values| logit = values[0])?;
        Ok(sigmoid(logit))
    }

    /// Fills the window: the context, the chunk, and its reflected end.
    fn load(&mut self, chunk: &[i16; CHUNK]) {
        let (before, rest) = self.samples.split_at_mut(CONTEXT);
        before.copy_from_slice(&self.context);
        for (place, sample) in rest.iter_mut().zip(chunk) {
            *place = f32::from(*sample) / 32768.0;
        }
        let (window, reflected) = self.samples.split_at_mut(WINDOW);
        self.context.copy_from_slice(&window[CHUNK..]);
        for (place, sample) in reflected.iter_mut().zip(window.iter().rev().skip(1)) {
            *place = *sample;
        }
    }

    /// Transforms the samples into magnitudes, with a zero at both ends of each frequency's row.
    fn magnitudes<W: Weights>(&mut self, weights: &mut W) -> Result<(), W::Error> {
        let Network { samples, even, .. } = self;
        even.fill(0.0);
        TRANSFORM.run(weights, samples, |row, values| {
            // The real rows come first, then the imaginary ones.
            let bin = row % BINS;
            let places = &mut even[bin * CONV1.width + 1..][..FRAMES];
            for (place, value) in places.iter_mut().zip(values) {
                *place += value * value;
                if row >= BINS {
                    *place = libm::sqrtf(*place);
                }
            }
        })
    }

    /// Runs one step of the LSTM. Its gates are stored in the order input, forget, cell, output.
    fn step_lstm<W: Weights>(&mut self, weights: &mut W) -> Result<(), W::Error> {
        let Network { state, cell, even, odd, .. } = self;
        let gates = &mut odd[..4 * UNITS];
        LSTM_INPUT.run(weights, even, |row, values| gates[row] = values[0])?;
        LSTM_STATE.run(weights, state, |row, values| gates[row] += values[0])?;
        for (unit, (state, cell)) in state.iter_mut().zip(cell).enumerate() {
            let gate = |number: usize| gates[number * UNITS + unit];
            *cell = sigmoid(gate(1)) * *cell + sigmoid(gate(0)) * libm::tanhf(gate(2));
            *state = sigmoid(gate(3)) * libm::tanhf(*cell);
        }
        Ok(())
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}
